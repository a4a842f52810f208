#include "atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <random>

#include "file_system.h"

namespace kiln::store {
namespace {

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

// A name that no other process, also on another machine, has taken.
std::string aside_name(const std::string& path) {
  std::random_device random;
  const auto number = [&random] { return uint64_t{random()} << 32 | random(); };
  const std::string name = fmt::format("{}{:016x}{:016x}", aside_prefix, number(), number());
  return (std::filesystem::path(path).parent_path() / name).string();
}

std::optional<std::string> give_up(const std::string& aside) {
  std::string what = std::strerror(errno);
  ::unlink(aside.c_str());
  return what;
}

}  // namespace

std::optional<std::string> write_atomically(const std::string& path, std::string_view header,
                                            std::string_view content) {
  const std::string aside = aside_name(path);
  {
    const File file(::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!file.is_open()) return std::strerror(errno);
    if (!write_all(file.get(), header) || !write_all(file.get(), content) || ::fsync(file.get()) != 0) {
      return give_up(aside);
    }
  }
  if (std::rename(aside.c_str(), path.c_str()) != 0) return give_up(aside);
  return std::nullopt;
}

}  // namespace kiln::store
