// File system operations of the store.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::store {

/// The bytes of a file, and a failure to read them that is worth telling.
struct ReadFile {
  std::optional<std::string> bytes;  ///< Nothing if there is no such file or it cannot be read.
  std::string failure;               ///< Empty unless the file is there and cannot be read.
};

/// Reads a regular file of at most `limit` bytes and, where that is permitted, marks it as used now: its modification
/// time, since access times depend on how the file system is mounted. A file that cannot be an entry is read as far as
/// its first byte, or not at all: a larger file, a symbolic link, and unless `of_anybody` one that another user owns or
/// may write.
ReadFile read_and_touch(const std::string& path, uint64_t limit, bool of_anybody);

/// Time by the clock that gives the files beside `path` their times, a server's in a folder on a network: marks that
/// file as written now. Nothing where that is not permitted.
std::optional<std::filesystem::file_time_type> time_there(const std::string& path);

}  // namespace kiln::store
