#include "onnx/external_data.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>

#include "kiln/base/error.h"
#include "kiln/base/file_descriptor.h"
#include "kiln/base/printable.h"

namespace kiln::onnx_frontend {
namespace {

[[noreturn]] void fail_external(const onnx::TensorProto& tensor, const std::string& what,
                                const std::string& hint = {}) {
  throw Error(ErrorCode::parse_error, fmt::format("tensor '{}' {}", printable_name(tensor.name()), what), hint);
}

/// Where the tensor's entries say that its elements are.
struct Place {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

uint64_t number_of(const onnx::TensorProto& tensor, const std::string& key, std::string_view text) {
  uint64_t number = 0;
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || stop != text.data() + text.size()) {
    fail_external(
        tensor, fmt::format("has the {} '{}' of external data, expected a number of bytes", key, printable_name(text)));
  }
  return number;
}

Place place_of(const onnx::TensorProto& tensor) {
  Place place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = number_of(tensor, entry.key(), entry.value());
    if (entry.key() == "length") place.length = number_of(tensor, entry.key(), entry.value());
  }
  const std::filesystem::path relative(place.location);
  bool leaves = place.location.empty() || relative.is_absolute();
  for (const auto& part : relative) leaves = leaves || part == "..";
  if (leaves || place.location.find('\0') != std::string::npos) {
    fail_external(tensor, fmt::format("has its data at '{}', expected a path inside the model's folder",
                                      printable_name(place.location)));
  }
  return place;
}

// Without O_NONBLOCK a pipe would wait for somebody who writes.
constexpr int open_flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;

/// openat2() where the system does not have it: part by part, and no symbolic links at all.
FileDescriptor open_part_by_part(const FileDescriptor& folder, const std::string& location) {
  FileDescriptor at(::openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::filesystem::path relative(location);
  for (auto part = relative.begin(); at.is_open() && part != relative.end(); ++part) {
    const bool is_last = std::next(part) == relative.end();
    at = FileDescriptor(
        ::openat(at.get(), part->c_str(), (is_last ? open_flags : O_RDONLY | O_DIRECTORY | O_CLOEXEC) | O_NOFOLLOW));
  }
  return at;
}

/// The file at `location` below `folder`. Symbolic links are followed as long as they stay below it.
FileDescriptor open_beneath(const std::string& folder, const std::string& location) {
  const FileDescriptor base(::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!base.is_open()) return FileDescriptor();
  open_how how{};
  how.flags = static_cast<uint64_t>(open_flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  FileDescriptor file(static_cast<int>(::syscall(SYS_openat2, base.get(), location.c_str(), &how, sizeof how)));
  // EPERM: a sandbox that does not know the call.
  if (!file.is_open() && (errno == ENOSYS || errno == EPERM)) return open_part_by_part(base, location);
  return file;
}

/// The file that the link at `path` leads to, if that lies in the folder `store` itself.
FileDescriptor open_stored(const std::string& store, const std::filesystem::path& path) {
  std::error_code failure;
  const std::filesystem::path file = std::filesystem::canonical(path, failure);
  if (store.empty() || failure || file.parent_path() != store) return FileDescriptor();
  const FileDescriptor folder(::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return FileDescriptor(::openat(folder.get(), file.filename().c_str(), open_flags | O_NOFOLLOW));
}

/// Bytes of the file that are not in holes.
uint64_t data_in(const FileDescriptor& file, uint64_t size) {
  constexpr int most_parts = 4096;  // no file of weights is in more
  uint64_t data = 0;
  off_t at = 0;
  for (int part = 0; part < most_parts; ++part) {
    const off_t begin = ::lseek(file.get(), at, SEEK_DATA);
    if (begin < 0) return errno == ENXIO ? data : size;  // no more data; or a file system that does not tell
    at = ::lseek(file.get(), begin, SEEK_HOLE);
    if (at < 0) return size;
    data += static_cast<uint64_t>(at - begin);
  }
  return data;
}

}  // namespace

ExternalData::ExternalData(const std::string& model) : folder_(std::filesystem::path(model).parent_path().string()) {
  std::error_code failure;
  if (!std::filesystem::is_symlink(model, failure)) return;
  const std::filesystem::path file = std::filesystem::canonical(model, failure);
  if (!failure) store_ = file.parent_path().string();
}

std::string ExternalData::read(const onnx::TensorProto& tensor, uint64_t bytes) {
  const Place place = place_of(tensor);
  const std::string path = (std::filesystem::path(folder_) / place.location).string();
  const auto unreadable = [&](const std::string& why) {
    throw Error(ErrorCode::io_error,
                fmt::format("the data of tensor '{}' cannot be read from {}: {}", printable_name(tensor.name()),
                            printable_line(path), why),
                "keep it beside the model's file");
  };
  FileDescriptor file = open_beneath(folder_, place.location);
  const bool leaves = !file.is_open() && (errno == EXDEV || errno == ELOOP);
  if (leaves) file = open_stored(store_, path);
  if (leaves && !file.is_open()) {
    fail_external(
        tensor,
        fmt::format("has its data at '{}', a symbolic link that leaves the model's folder, or leads back to itself",
                    printable_name(place.location)),
        "copy the file there");
  }
  struct stat state {};
  if (!file.is_open() || ::fstat(file.get(), &state) != 0) unreadable(std::strerror(errno));
  if (!S_ISREG(state.st_mode)) {
    fail_external(tensor,
                  fmt::format("has its data at '{}', which is no regular file", printable_name(place.location)));
  }
  const auto size = static_cast<uint64_t>(state.st_size);
  if (place.length.value_or(bytes) != bytes) {
    fail_external(tensor, fmt::format("has {} bytes of external data, expected {}", *place.length, bytes));
  }
  if (place.offset > size || bytes > size - place.offset) {
    fail_external(tensor, fmt::format("has its data behind the end of {}", path));
  }
  if (seen_.insert(std::filesystem::path(place.location).lexically_normal().string()).second)
    most_ += 2 * data_in(file, size);
  read_ += bytes;
  if (read_ > most_) {
    throw Error(ErrorCode::unsupported,
                fmt::format("tensor '{}' and those before it take {} bytes of files that hold far fewer, which share "
                            "parts or have holes",
                            printable_name(tensor.name()), read_),
                "write each tensor's data once, without holes");
  }
  std::string result(bytes, '\0');
  for (uint64_t done = 0; done < bytes;) {
    const ssize_t got =
        ::pread(file.get(), result.data() + done, bytes - done, static_cast<off_t>(place.offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) unreadable(got < 0 ? std::strerror(errno) : "it ends before its size");
    done += static_cast<uint64_t>(got);
  }
  return result;
}

std::vector<std::string> ExternalData::files() const {
  std::vector<std::string> paths;
  const std::filesystem::path folder = std::filesystem::absolute(folder_.empty() ? "." : folder_);
  for (const std::string& location : seen_) paths.push_back((folder / location).lexically_normal().string());
  return paths;
}

}  // namespace kiln::onnx_frontend
