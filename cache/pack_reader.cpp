#include "pack_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "kiln/base/error.h"

namespace kiln::cache {
namespace {

constexpr std::size_t block_size = std::size_t{256} << 10;  // stays in the second-level cache while it is parsed

[[noreturn]] void fail(std::string_view action, const std::string& path, int code) {
  throw Error(ErrorCode::io_error, fmt::format("cannot {} the pack {}: {}", action, path, std::strerror(code)));
}

}  // namespace

PackReader::PackReader(const std::string& path)
    : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), buffer_(block_size) {
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

std::string read_pack_text(const std::string& path) {
  PackReader reader(path);
  std::string text;
  for (std::string_view block = reader.next_block(); !block.empty(); block = reader.next_block()) text += block;
  return text;
}

}  // namespace kiln::cache
