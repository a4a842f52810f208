#include "recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kiln/base/error.h"

namespace kiln {

Recorder::Recorder(const std::string& path)
    : path_(path), file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666)) {
  if (file_ >= 0) return;
  throw Error(ErrorCode::io_error, fmt::format("cannot record requests to {}: {}", path, std::strerror(errno)),
              "KILN_RECORD names a file that can be written");
}

Recorder::~Recorder() {
  close(file_);
}

std::optional<std::string> Recorder::record(const std::string& lines) {
  const std::lock_guard lock(mutex_);
  if (ended_ || !seen_.insert(lines).second) return std::nullopt;
  const std::string line = lines + "\n";
  const ssize_t written = write(file_, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) return std::nullopt;
  ended_ = true;
  return fmt::format("no more requests are recorded to {}: {}", path_,
                     written < 0 ? std::strerror(errno) : "only a part of a line could be written");
}

}  // namespace kiln
