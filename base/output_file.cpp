#include "kiln/base/output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <random>
#include <system_error>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/file_start.h"

namespace kiln {
namespace {

namespace fs = std::filesystem;

// Where `path` leads, also if nothing is there yet: fs::canonical() wants the file.
std::string behind_links(fs::path path) {
  constexpr int most_links = 40;  // as Linux itself; a loop was found by fs::status() before
  std::error_code error;
  for (int links = 0; links < most_links && fs::is_symlink(fs::symlink_status(path, error)); ++links) {
    const fs::path target = fs::read_symlink(path, error);
    if (error) break;
    path = target.is_absolute() ? target : path.parent_path() / target;
  }
  return path.string();
}

// Path of the file to be replaced for `path`.
std::string target_of(std::string_view what, const std::string& path) {
  require_replaceable(what, path);
  return behind_links(path);
}

// The file's name is in its folder's own data. Some file systems cannot flush that; the rename stands all the same.
void flush_folder_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  const int folder = ::open(parent.empty() ? "." : parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);
  ::close(folder);
}

}  // namespace

std::string_view kind_of_no_file(fs::file_type type) {
  switch (type) {
    case fs::file_type::directory:
      return "a folder";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::fifo:
      return "a pipe";
    case fs::file_type::socket:
      return "a socket";
    default:
      return {};
  }
}

void require_replaceable(std::string_view what, const std::string& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (const std::string_view kind = kind_of_no_file(type); !kind.empty()) {
    throw Error(ErrorCode::io_error, fmt::format("cannot write {} {}: it is {}, not a file", what, path, kind),
                "name a file, or one that is to be made: it is written beside and takes the name when it is complete");
  }
  if (error && type != fs::file_type::not_found) {
    throw Error(ErrorCode::io_error, fmt::format("cannot write {} {}: {}", what, path, error.message()));
  }
  if (type == fs::file_type::regular && is_database(path)) {
    throw Error(ErrorCode::io_error, fmt::format("cannot write {} {}: it is a database", what, path),
                "name another file; this one was left as it is");
  }
}

std::string unused_number() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

AsideFile::AsideFile(std::string path, mode_t mode)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)) {
  if (!is_open()) path_.clear();
}

AsideFile::~AsideFile() {
  if (is_open()) ::close(descriptor_);
  if (!path_.empty()) ::unlink(path_.c_str());
}

bool AsideFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written == 0) errno = ENOSPC;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

bool AsideFile::rename_to(const std::string& path) {
  if (::fsync(descriptor_) != 0 || ::close(std::exchange(descriptor_, -1)) != 0) return false;
  if (std::rename(path_.c_str(), path.c_str()) != 0) return false;
  path_.clear();
  return true;
}

// The end of the other name tells what a killed process left.
OutputFile::OutputFile(std::string_view what, const std::string& path)
    : what_(what),
      path_(path),
      target_(target_of(what, path)),
      file_(fmt::format("{}.{}.partial", target_, unused_number())) {
  if (!file_.is_open()) fail();
}

void OutputFile::fail() const {
  throw Error(ErrorCode::io_error, fmt::format("cannot write {} {}: {}", what_, path_, std::strerror(errno)));
}

void OutputFile::write(std::string_view bytes) {
  if (!file_.write(bytes)) fail();
}

void OutputFile::publish() {
  require_replaceable(what_, path_);  // a database may have been made there meanwhile
  if (!file_.rename_to(target_)) fail();
  flush_folder_of(target_);
}

}  // namespace kiln
