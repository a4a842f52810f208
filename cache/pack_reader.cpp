#include "pack_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "kiln/base/error.h"
#include "kiln/cache/pack.h"

namespace kiln::cache {
namespace {

constexpr std::size_t block_size = std::size_t{256} << 10;  // stays in the second-level cache while it is parsed
constexpr std::size_t too_long = max_pack_line + 64;        // with its tag, a line of this length is refused

[[noreturn]] void fail(std::string_view action, const std::string& path, int code) {
  throw Error(ErrorCode::io_error, fmt::format("cannot {} the pack {}: {}", action, path, std::strerror(code)));
}

}  // namespace

PackReader::PackReader(const std::string& path)
    // Not blocking: opening a FIFO would wait for a writer. It makes no difference to regular files.
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)), buffer_(block_size) {
  if (descriptor_ >= 0 && path_.find('\0') != std::string::npos) {  // what opened is not what was named
    ::close(descriptor_);
    fail("open", path_, EINVAL);
  }
  if (descriptor_ < 0) fail("open", path_, errno);
  struct stat info = {};
  int problem = ::fstat(descriptor_, &info) != 0 ? errno : 0;
  if (problem == 0 && !S_ISREG(info.st_mode)) problem = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  if (problem == 0 && static_cast<std::size_t>(info.st_size) > max_pack_file) problem = EFBIG;
  if (problem == 0) return;
  ::close(descriptor_);
  fail("read", path_, problem);
}

PackReader::~PackReader() {
  ::close(descriptor_);
}

std::size_t PackReader::read_some(char* to, std::size_t room) {
  while (true) {
    const ssize_t got = ::read(descriptor_, to, room);
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail("read", path_, errno);
  }
}

std::string_view PackReader::next_block() {
  std::copy_n(buffer_.data() + given_, carried_, buffer_.data());
  std::size_t filled = carried_;
  while (true) {
    if (filled > too_long) return cut_line();
    if (filled == buffer_.size()) buffer_.resize(2 * buffer_.size());  // one line fills it
    const std::size_t got = read_some(buffer_.data() + filled, buffer_.size() - filled);
    const std::string_view fresh(buffer_.data() + filled, got);
    filled += got;
    const std::size_t line_break = fresh.rfind('\n');
    if (got != 0 && line_break == std::string_view::npos) continue;
    given_ = got == 0 ? filled : filled - got + line_break + 1;
    carried_ = filled - given_;
    return {buffer_.data(), given_};
  }
}

// buffer_ starts with more than too_long bytes of one line: gives the start of it and goes to its end.
std::string_view PackReader::cut_line() {
  std::array<char, 4096> skipped{};
  while (const std::size_t got = read_some(skipped.data(), skipped.size())) {
    const std::string_view bytes(skipped.data(), got);
    const std::size_t line_break = bytes.find('\n');
    if (line_break == std::string_view::npos) continue;
    const std::size_t after = got - line_break - 1;
    if (::lseek(descriptor_, -static_cast<off_t>(after), SEEK_CUR) < 0) fail("read", path_, errno);
    break;
  }
  buffer_[too_long] = '\n';
  given_ = too_long + 1;
  carried_ = 0;
  return {buffer_.data(), given_};
}

std::string read_pack_text(const std::string& path) {
  PackReader reader(path);
  std::string text;
  for (std::string_view block = reader.next_block(); !block.empty(); block = reader.next_block()) text += block;
  return text;
}

}  // namespace kiln::cache
