// The form of an entry's file: a line that names format, key, length and checksum, then the content.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::store {

/// The line that stands before `content`.
std::string entry_header(std::string_view key, std::string_view content);

/// The content in the bytes of a file; nothing unless they are exactly what was written for `key`.
std::optional<std::string_view> entry_content(std::string_view key, std::string_view bytes);

}  // namespace kiln::store
