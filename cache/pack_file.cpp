// Packs as files.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/cache/pack.h"
#include "pack_reader.h"

namespace kiln::cache {
namespace {

[[noreturn]] void fail(std::string_view action, const std::string& path, int code) {
  throw Error(ErrorCode::io_error, fmt::format("cannot {} the pack {}: {}", action, path, std::strerror(code)));
}

class File {
 public:
  explicit File(int descriptor) : descriptor_(descriptor) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { close(); }

  int descriptor() const { return descriptor_; }
  bool close() {
    const int descriptor = std::exchange(descriptor_, -1);
    return descriptor < 0 || ::close(descriptor) == 0;
  }

 private:
  int descriptor_;
};

// Removes a half-written file unless it got its final name.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  void keep() { path_.clear(); }

 private:
  std::string path_;
};

void write_all(const File& file, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t written = ::write(file.descriptor(), text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail("write", path, written < 0 ? errno : ENOSPC);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void flush_folder(const std::string& path) {
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const File folder(::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.descriptor() >= 0)
    ::fsync(folder.descriptor());  // some file systems cannot; the rename stands all the same
}

}  // namespace

ParsedPack read_pack_file(const std::string& path, const PackValidator& validator) {
  const std::string text = read_pack_text(path);
  try {
    return parse_pack(text, validator);
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", path, error.message()), error.hint());
  }
}

void write_pack_file(const std::string& path, const Pack& pack, std::string_view library_version) {
  std::string aside = path + ".XXXXXX";
  File file(::mkostemp(aside.data(), O_CLOEXEC));
  if (file.descriptor() < 0) fail("create", path, errno);
  Scratch scratch(aside);
  write_all(file, print_pack(pack, library_version), path);
  constexpr mode_t shared = 0644;  // mkostemp makes private files; packs are made to be shipped
  if (::fchmod(file.descriptor(), shared) != 0 || ::fsync(file.descriptor()) != 0 || !file.close()) {
    fail("write", path, errno);
  }
  if (::rename(aside.c_str(), path.c_str()) != 0) fail("write", path, errno);
  scratch.keep();
  flush_folder(path);
}

}  // namespace kiln::cache
