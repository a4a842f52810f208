#include "key_lock.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

namespace kiln::store {
namespace {

using Clock = std::chrono::steady_clock;

// A holder works for a quarter of a second or more: waiting in such steps costs little beside it.
constexpr std::chrono::milliseconds shortest_nap{1}, longest_nap{10};

}  // namespace

int64_t KeyLock::number_of(std::string_view key) {
  constexpr size_t digits = 15;
  return static_cast<int64_t>(std::strtoull(std::string(key.substr(0, digits)).c_str(), nullptr, 16));
}

KeyLock::KeyLock(const std::string& path, mode_t mode, int64_t number, std::chrono::milliseconds patience)
    : file_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, mode)) {
  if (!file_.is_open()) {
    failure_ = std::strerror(errno);
    return;
  }
  struct flock range = {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = number;
  range.l_len = 1;
  const Clock::time_point end = Clock::now() + patience;
  for (auto nap = shortest_nap;; nap = std::min(2 * nap, longest_nap)) {
    held_ = ::fcntl(file_.get(), F_OFD_SETLK, &range) == 0;
    if (held_ || (errno != EAGAIN && errno != EACCES && errno != EINTR) || Clock::now() >= end) return;
    std::this_thread::sleep_for(nap);
  }
}

}  // namespace kiln::store
