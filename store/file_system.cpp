#include "file_system.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "kiln/base/file_descriptor.h"
#include "kiln/base/trusted_place.h"

namespace kiln::store {
namespace {

constexpr std::array<timespec, 2> written_now = {timespec{0, UTIME_OMIT}, timespec{0, UTIME_NOW}};

std::string reason() {
  return std::strerror(errno);
}

bool read_all(int descriptor, std::string& bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::read(descriptor, bytes.data() + done, bytes.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return false;
    if (got == 0) break;  // cut off since its size was asked for
    done += static_cast<size_t>(got);
  }
  bytes.resize(done);
  return true;
}

}  // namespace

ReadFile read_and_touch(const std::string& path, uint64_t limit, bool of_anybody) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  if (!file.is_open() && errno == ELOOP) return {std::string(), {}};
  if (!file.is_open()) return {std::nullopt, errno == ENOENT ? std::string() : reason()};
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0) return {std::nullopt, reason()};
  if (!S_ISREG(info.st_mode) || (!of_anybody && why_not_own(info))) return {std::string(), {}};
  const auto size = static_cast<uint64_t>(info.st_size);
  std::string bytes(size <= limit ? size : 1, '\0');
  if (!read_all(file.get(), bytes)) return {std::nullopt, reason()};
  (void)::futimens(file.get(), written_now.data());  // a store that may only be read is of use too
  return {std::move(bytes), {}};
}

std::optional<std::filesystem::file_time_type> time_there(const std::string& path) {
  if (::utimensat(AT_FDCWD, path.c_str(), written_now.data(), AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  std::error_code failed;
  const std::filesystem::file_time_type now = std::filesystem::last_write_time(path, failed);
  if (failed) return std::nullopt;
  return now;
}

}  // namespace kiln::store
