#include "pack_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <tuple>

#include "kiln/base/error.h"
#include "kiln/base/file_start.h"
#include "kiln/cache/pack.h"

namespace kiln::cache {
namespace {

constexpr std::size_t block_size = std::size_t{256} << 10;  // stays in the second-level cache while it is parsed
constexpr std::size_t too_long = max_pack_line + 64;        // with its tag, a line of this length is refused

[[noreturn]] void fail(std::string_view action, const std::string& path, int code) {
  throw Error(ErrorCode::io_error, fmt::format("cannot {} the pack {}: {}", action, path, std::strerror(code)));
}

// Not blocking: opening a FIFO would wait for a writer. It makes no difference to regular files.
int open_pack(const std::string& path) {
  if (is_database(path))
    throw Error(ErrorCode::io_error, fmt::format("cannot read the pack {}: it is a database", path));
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

// Not the time of the last change of its inode: that changes too when another file takes its name.
auto identity(const struct stat& info) {
  return std::tuple(info.st_dev, info.st_ino, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

}  // namespace

PackFile::PackFile(const std::string& path) : path_(path), descriptor_(open_pack(path)) {
  if (descriptor_ >= 0 && path_.find('\0') != std::string::npos) {  // what opened is not what was named
    ::close(descriptor_);
    fail("open", path_, EINVAL);
  }
  if (descriptor_ < 0) fail("open", path_, errno);
  int problem = ::fstat(descriptor_, &opened_) != 0 ? errno : 0;
  if (problem == 0 && !S_ISREG(opened_.st_mode)) problem = S_ISDIR(opened_.st_mode) ? EISDIR : EINVAL;
  if (problem == 0 && static_cast<std::size_t>(opened_.st_size) > max_pack_file) problem = EFBIG;
  if (problem == 0) return;
  ::close(descriptor_);
  fail("read", path_, problem);
}

PackFile::~PackFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::size_t PackFile::read(std::size_t offset, char* to, std::size_t room) const {
  if (descriptor_ < 0) {
    const std::size_t begin = std::min(offset, text_.size());
    return text_.copy(to, room, begin);
  }
  while (true) {
    const ssize_t got = ::pread(descriptor_, to, room, static_cast<off_t>(offset));
    if (got >= 0) return static_cast<std::size_t>(got);
    if (errno != EINTR) fail("read", path_, errno);
  }
}

void PackFile::require_unchanged() const {
  if (descriptor_ < 0) return;
  struct stat now = {};
  if (::fstat(descriptor_, &now) == 0 && identity(now) == identity(opened_)) return;
  throw Error(ErrorCode::io_error,
              fmt::format("the pack {} was changed while it was in use: its unread lines are not used", path_),
              "let a new file take its name instead (as `kiln cache export` does), and start the application again");
}

PackReader::PackReader(const PackFile& file, PackRange range)
    : file_(file), position_(range.begin), end_(range.end), buffer_(std::min(block_size, end_ - position_)) {}

std::size_t PackReader::read_some(char* to, std::size_t room) {
  const std::size_t got = file_.read(position_, to, std::min(room, end_ - position_));
  position_ += got;
  return got;
}

std::string_view PackReader::next_block() {
  std::copy_n(buffer_.data() + given_, carried_, buffer_.data());
  std::size_t filled = carried_;
  block_begin_ = position_ - filled;
  while (true) {
    if (filled > too_long) return cut_line();
    if (filled == buffer_.size() && position_ < end_) buffer_.resize(2 * buffer_.size());  // one line fills it
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
    position_ -= got - line_break - 1;
    break;
  }
  buffer_[too_long] = '\n';
  given_ = too_long + 1;
  carried_ = 0;
  return {buffer_.data(), given_};
}

std::string read_pack_text(const std::string& path) {
  const PackFile file(path);
  PackReader reader(file);
  std::string text;
  for (std::string_view block = reader.next_block(); !block.empty(); block = reader.next_block()) text += block;
  return text;
}

}  // namespace kiln::cache
