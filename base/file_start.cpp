#include "kiln/base/file_start.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "kiln/base/file_descriptor.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

bool is_same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Nothing where the descriptor is not for reading.
std::optional<std::string> read_start(int file, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file, bytes.data() + done, size - done, static_cast<off_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

// The descriptors are other owners', which may close one at any time and get its number for another file: it is looked
// at before and after.
std::optional<std::string> read_by_open_descriptor(const struct stat& wanted, std::size_t size) {
  std::error_code error;
  for (fs::directory_iterator it("/proc/self/fd", error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    int descriptor = -1;
    std::from_chars(name.data(), name.data() + name.size(), descriptor);
    struct stat info {};
    if (::fstat(descriptor, &info) != 0 || !is_same(info, wanted)) continue;
    std::optional<std::string> start = read_start(descriptor, size);
    if (start && ::fstat(descriptor, &info) == 0 && is_same(info, wanted)) return start;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> file_start(const std::string& path, std::size_t size) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  if (std::optional<std::string> start = read_by_open_descriptor(info, size)) return start;
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file.is_open() ? read_start(file.get(), size) : std::nullopt;
}

bool is_database(const std::string& path) {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  return file_start(path, magic.size()) == magic;
}

}  // namespace kiln
