// Files that take their names when they are complete.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace kiln {

/// Kind of thing at a path other than a regular file, for messages: "a folder", "a device", "a pipe", "a socket". Empty
/// for a regular file, for nothing at all, and for a file that cannot be examined.
std::string_view kind_of_no_file(std::filesystem::file_type type);

/// Throws Error(io_error) if no OutputFile can replace `path`, so that this is known before the work whose result it is
/// to hold: there is something that is no regular file, or a SQLite database, which holds what was measured. `what`:
/// "the pack".
void require_replaceable(std::string_view what, const std::string& path);

/// 32 digits that no other process, also on another machine, comes upon.
std::string unused_number();

/// A new file that takes another's name when it is complete, and is gone without a trace unless it does. A function
/// that fails leaves its reason in errno.
class AsideFile {
 public:
  /// `mode`: its rights, less the umask.
  explicit AsideFile(std::string path, mode_t mode = 0666);
  ~AsideFile();
  AsideFile(const AsideFile&) = delete;
  AsideFile& operator=(const AsideFile&) = delete;

  bool is_open() const { return descriptor_ >= 0; }
  bool write(std::string_view bytes);
  /// Flushes it to the disk, and renames it to `path`, in the same folder, in place of what was there. Last.
  bool rename_to(const std::string& path);

 private:
  std::string path_;  // empty once it has another name
  int descriptor_;
};

/// Replaces a file that a user named, whole or not at all: an AsideFile in the same folder takes its name. A symbolic
/// link is followed: what it points to is replaced, and the link stays. Pipes, devices and sockets are refused, since a
/// rename would remove them, and so are databases.
class OutputFile {
 public:
  /// Makes the file beside `path`. `what` is for messages: "the pack". Throws Error(io_error) as require_replaceable(),
  /// and if the folder cannot be written.
  OutputFile(std::string_view what, const std::string& path);

  /// Throws Error(io_error).
  void write(std::string_view bytes);
  /// Flushes, and gives it the path's name in place of what was there. Last. Throws Error(io_error), also if there is
  /// something now that cannot be replaced.
  void publish();

 private:
  [[noreturn]] void fail() const;

  std::string what_, path_;  // as the user named it
  std::string target_;       // behind links
  AsideFile file_;
};

}  // namespace kiln
