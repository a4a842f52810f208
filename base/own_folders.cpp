#include "kiln/base/own_folders.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <system_error>

namespace kiln {
namespace {

namespace fs = std::filesystem;

void add_folder_of(const fs::path& binary, std::vector<fs::path>& folders) {
  std::error_code failed;
  const fs::path folder = fs::canonical(binary, failed).parent_path();
  if (!failed && std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
}

}  // namespace

std::vector<fs::path> own_folders() {
  std::vector<fs::path> folders;
  Dl_info place{};
  link_map* object = nullptr;
  // For the main program dli_fname is argv[0], whatever its caller wrote there; the loader's own name for it is empty.
  if (::dladdr1(reinterpret_cast<const void*>(&own_folders), &place, reinterpret_cast<void**>(&object),
                RTLD_DL_LINKMAP) != 0 &&
      object != nullptr && object->l_name[0] == '/') {
    add_folder_of(object->l_name, folders);
  }
  add_folder_of("/proc/self/exe", folders);
  return folders;
}

}  // namespace kiln
