#include "dynamic_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <system_error>
#include <utility>

#include "kiln/base/own_folders.h"

namespace kiln::device {

namespace fs = std::filesystem;

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
  for (const fs::path& home : own_folders()) {
    // Beside the binary, in ../lib as a build has it, and where an installation has it.
    for (const char* place : {".", "../lib", KILN_LIBDIR_FROM_BINDIR}) {
      std::error_code failed;
      const fs::path folder = fs::weakly_canonical(home / place, failed);
      if (failed) continue;
      if (std::find(folders.begin(), folders.end(), folder) == folders.end()) folders.push_back(folder);
    }
  }
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
