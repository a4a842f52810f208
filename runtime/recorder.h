// KILN_RECORD: the requests that an application makes, as a requests file that `kiln tune` reads.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

namespace kiln {

/// A file that only grows. Each line is one write() to a file opened for appending, so several processes may record
/// into one file, and one that is killed loses nothing that it has written. Thread-safe.
class RecordFile {
 public:
  /// Throws Error(io_error) if `path` cannot be opened for writing.
  explicit RecordFile(const std::string& path);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  /// Appends `lines` and the end of the last one, unless an earlier write failed.
  void append(const std::string& lines);
  /// Why nothing is written any more; said once.
  std::optional<std::string> trouble();

 private:
  std::string path_;
  int file_;
  std::mutex mutex_;
  bool ended_ = false;
  std::string trouble_;
};

/// How often a request is called. Thread-safe.
///
/// A line for the first call is there before it; then one for those since the last line, whenever the number of calls
/// has doubled and in the end: a request has few lines, their counts add up, and a process that is killed has written
/// more than half of them.
class CallCount {
 public:
  CallCount(std::shared_ptr<RecordFile> file, std::string key) : file_(std::move(file)), key_(std::move(key)) {}
  ~CallCount() { write_up_to(calls_.load()); }
  CallCount(const CallCount&) = delete;
  CallCount& operator=(const CallCount&) = delete;

  void add() {
    const uint64_t calls = calls_.fetch_add(1, std::memory_order_relaxed) + 1;
    if ((calls & (calls - 1)) == 0) write_up_to(calls);
  }

 private:
  void write_up_to(uint64_t calls);

  std::shared_ptr<RecordFile> file_;
  std::string key_;
  std::atomic<uint64_t> calls_{0};
  std::mutex mutex_;
  uint64_t written_ = 1;  // the first line's
};

/// Records each distinct request and each definition of an expression, and how often requests are called. Thread-safe.
class Recorder {
 public:
  /// Throws Error(io_error) if `path` cannot be opened for writing.
  explicit Recorder(const std::string& path) : file_(std::make_shared<RecordFile>(path)) {}

  /// Appends `lines`, once. Nothing, or why recording has ended: said once.
  std::optional<std::string> record(const std::string& lines);
  /// The count of a request that was recorded; it may outlive the Recorder.
  std::shared_ptr<CallCount> count_of(const std::string& key);

 private:
  std::shared_ptr<RecordFile> file_;
  std::mutex mutex_;
  std::set<std::string> seen_;
  std::map<std::string, std::shared_ptr<CallCount>> counts_;
};

}  // namespace kiln
