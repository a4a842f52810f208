// The first bytes of a file that may be in use.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace kiln {

/// At most `size` bytes from the start of the regular file at `path`; fewer where it is shorter, nothing where it
/// cannot be read. Where this process has the file open for reading, they are read by that descriptor: POSIX takes all
/// locks of a process off a file when it closes any descriptor of it, also SQLite's off a database that is written just
/// then.
std::optional<std::string> file_start(const std::string& path, std::size_t size);

/// Whether there is a SQLite database at `path`. Whoever opens a file that a user names for something else asks before.
bool is_database(const std::string& path);

}  // namespace kiln
