// Entries that appear whole or not at all. Files that a user names are for OutputFile: a store replaces whatever stands
// in its folder by the name of an entry.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>

namespace kiln::store {

/// How the names of files begin that write_atomically() has not renamed yet, or never will because its process died.
inline constexpr std::string_view aside_prefix = "aside-";

/// Writes `header` and then `content` to a new file beside `path` with the rights `mode` less the umask, flushes it to
/// the disk, and renames it to `path`: a reader sees the old file or the new one. Returns the fault, in the system's
/// words, or nothing; then nothing is left behind. Thread-safe.
std::optional<std::string> write_atomically(const std::string& path, mode_t mode, std::string_view header,
                                            std::string_view content);

}  // namespace kiln::store
