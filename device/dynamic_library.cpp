#include "dynamic_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace kiln::device {
namespace {

namespace fs = std::filesystem;

void add_folder_of(const fs::path& binary, std::vector<fs::path>& folders) {
  std::error_code failed;
  const fs::path real = fs::canonical(binary, failed);
  if (failed) return;
  // Beside the binary, in ../lib as a build has it, and where an installation has it.
  for (const char* place : {".", "../lib", KILN_LIBDIR_FROM_BINDIR}) {
    const fs::path folder = fs::weakly_canonical(real.parent_path() / place, failed);
    if (failed) continue;
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
  }
}

}  // namespace

DynamicLibrary::DynamicLibrary(std::string path)
    : path_(std::move(path)), handle_(dlopen(path_.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
  if (handle_ != nullptr) return;
  const char* reason = dlerror();
  error_ = reason != nullptr ? reason : path_ + ": unknown reason";
}

void* DynamicLibrary::find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

std::vector<fs::path> own_library_folders() {
  std::vector<fs::path> folders;
  Dl_info here = {};
  // For code in the main program the loader reports argv[0], which may be relative to a folder we have left.
  if (dladdr(reinterpret_cast<const void*>(&own_library_folders), &here) != 0 && here.dli_fname[0] == '/') {
    add_folder_of(here.dli_fname, folders);
  }
  add_folder_of("/proc/self/exe", folders);
  return folders;
}

std::optional<DynamicLibrary> first_in_folders(std::span<const std::string_view> names,
                                               std::span<const fs::path> folders, std::vector<std::string>& reasons) {
  for (const fs::path& folder : folders) {
    for (const std::string_view name : names) {
      const fs::path file = folder / name;
      std::error_code failed;
      if (!fs::exists(file, failed)) continue;
      DynamicLibrary library(file.string());
      if (library.loaded()) return library;
      reasons.push_back(library.error());
    }
  }
  return std::nullopt;
}

}  // namespace kiln::device
