// KILN_RECORD: the requests that an application makes, as a requests file that `kiln tune` reads.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace kiln {

/// Appends each distinct request, and each definition of an expression, once. Each is one write() to a file opened for
/// appending, so several processes may record into one file. Thread-safe.
class Recorder {
 public:
  /// Throws Error(io_error) if `path` cannot be opened for writing.
  explicit Recorder(const std::string& path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Appends `lines` and the end of the last one. Nothing, or why they could not be written: said once, for recording
  /// ends with it.
  std::optional<std::string> record(const std::string& lines);

 private:
  std::string path_;
  int file_;
  std::mutex mutex_;
  std::set<std::string> seen_;
  bool ended_ = false;
};

}  // namespace kiln
