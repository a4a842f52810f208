#include "recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "kiln/base/error.h"

namespace kiln {

RecordFile::RecordFile(const std::string& path)
    : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_ >= 0) return;
  throw Error(ErrorCode::io_error, fmt::format("cannot record requests to {}: {}", path, std::strerror(errno)),
              "KILN_RECORD names a file that can be written");
}

RecordFile::~RecordFile() {
  close(file_);
}

void RecordFile::append(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  if (ended_) return;
  const std::string text = lines + "\n";
  const ssize_t written = write(file_, text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return;
  ended_ = true;
  trouble_ = fmt::format("no more requests are recorded to {}: {}", path_,
                         written < 0 ? std::strerror(errno) : "only a part of a line could be written");
}

std::optional<std::string> RecordFile::trouble() {
  const std::lock_guard lock(mutex_);
  if (trouble_.empty()) return std::nullopt;
  return std::exchange(trouble_, {});
}

void CallCount::write_up_to(uint64_t calls) {
  const std::lock_guard lock(mutex_);
  if (calls <= written_) return;
  file_->append(fmt::format("{} *{}", key_, calls - written_));
  written_ = calls;
}

std::optional<std::string> Recorder::record(const std::string& lines) {
  {
    const std::lock_guard lock(mutex_);
    if (seen_.insert(lines).second) file_->append(lines);
  }
  return file_->trouble();
}

std::shared_ptr<CallCount> Recorder::count_of(const std::string& key) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<CallCount>& count = counts_[key];
  if (!count) count = std::make_shared<CallCount>(file_, key);
  return count;
}

}  // namespace kiln
