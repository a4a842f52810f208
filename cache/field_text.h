// Text that may stand in a database field or a pack line.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace kiln::cache {

/// Well-formed UTF-8: no overlong forms, surrogates or code points beyond U+10FFFF. NUL is well formed.
bool valid_utf8(std::string_view text);

/// Whether `text`, which is valid UTF-8, has a hidden character (kiln/base/printable.h).
bool has_hidden(std::string_view text);

/// Any byte below space, DEL, or anything hidden.
bool has_control(std::string_view text);

/// `text` with every broken sequence, NUL and hidden character replaced by U+FFFD, cut at a character boundary to
/// `limit` bytes and a mark.
std::string clean_text(std::string_view text, std::size_t limit);

/// Backslash and control characters as \\ \t \n \r \xHH; everything else as it is.
std::string escape(std::string_view text);
void escape_to(std::string& out, std::string_view text);

/// The reverse; nullopt for an escape that escape() does not write.
std::optional<std::string> unescape(std::string_view text);

/// Throws Error(invalid_argument), naming `field`, unless `text` is valid UTF-8 without control characters, at most
/// `limit` bytes, and not empty where that is not allowed.
void require_line(std::string_view field, std::string_view text, std::size_t limit, bool may_be_empty);

/// For messages: escaped, quoted, and cut to a readable length. For a std::string it is called cache::quoted(): the
/// unqualified name means std::quoted() too, where <iomanip> is included.
std::string quoted(std::string_view text);

}  // namespace kiln::cache
