// KILN_RECORD: the requests that an application makes, as a requests file that `kiln tune` reads.
#pragma once

#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace kiln {

/// Appends each distinct request once. A line is one write() to a file opened for appending, so several processes may
/// record into one file. Thread-safe.
class Recorder {
 public:
  /// Throws Error(io_error) if `path` cannot be opened for writing.
  explicit Recorder(const std::string& path);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  /// Nothing, or why the line could not be written: said once, for recording ends with it.
  std::optional<std::string> record(const std::string& key);

 private:
  std::string path_;
  int file_;
  std::mutex mutex_;
  std::set<std::string> seen_;
  bool ended_ = false;
};

}  // namespace kiln
