// OutputFile: a file that a user named and that takes its name when it is complete.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace kiln {

/// What a path that no file stands at is, for messages: "a folder", "a device", "a pipe", "a socket". Empty for a
/// regular file, for nothing at all, and for what cannot be examined.
std::string_view kind_of_no_file(std::filesystem::file_type type);

/// Throws Error(io_error) if no OutputFile can replace `path`, so that this is known before the work whose result it is
/// to hold: there is something that is no regular file. `what`: "the pack".
void require_replaceable(std::string_view what, const std::string& path);

/// Replaces a file whole or not at all: what is written goes to another file in the same folder, which is flushed to
/// the disk and renamed by publish(). Without that it is gone without a trace. A symbolic link is followed: what it
/// points to is replaced, and the link stays. Pipes, devices and sockets are refused, since a rename would remove them.
class OutputFile {
 public:
  /// Makes the file beside `path`. `what` is for messages: "the pack". Throws Error(io_error) as require_replaceable(),
  /// and if the folder cannot be written.
  OutputFile(std::string_view what, const std::string& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws Error(io_error).
  void write(std::string_view bytes);
  /// Flushes, and gives it the path's name in place of what was there. Last. Throws Error(io_error).
  void publish();

 private:
  [[noreturn]] void fail(int code) const;

  std::string what_, path_;     // as the user named it
  std::string target_, aside_;  // behind links; empty once it has its name
  int descriptor_ = -1;
};

}  // namespace kiln
