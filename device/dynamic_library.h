// Shared libraries loaded at run time.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::device {

/// A shared library, or the reason why it could not be loaded.
///
/// Loaded with all symbols resolved and kept local, so that two libraries may export the same names. Never unloaded:
/// drivers and compilers keep threads and exit handlers of their own.
class DynamicLibrary {
 public:
  /// A path with a slash is that file; a bare name is searched on the loader's path.
  explicit DynamicLibrary(std::string path);

  bool loaded() const { return handle_ != nullptr; }
  const std::string& path() const { return path_; }
  /// The loader's reason if not loaded.
  const std::string& error() const { return error_; }

  /// The address of `symbol`; null if the library lacks it.
  void* find(const char* symbol) const;

 private:
  std::string path_;
  std::string error_;
  void* handle_;
};

/// Folders in which libraries that come with Kiln may stand: that of the binary that contains this code, that of the
/// running program, and ../lib beside each. Without duplicates.
std::vector<std::filesystem::path> own_library_folders();

/// The first of `names` that exists in one of `folders` (folder by folder) and loads; a file that exists but does not
/// load adds its reason to `reasons`. Empty if there is none.
std::optional<DynamicLibrary> first_in_folders(std::span<const std::string_view> names,
                                               std::span<const std::filesystem::path> folders,
                                               std::vector<std::string>& reasons);

}  // namespace kiln::device
