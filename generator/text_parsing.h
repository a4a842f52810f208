// Small pieces of text handling that the parsers of this room share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::text {

/// The parts between separators; one empty part for empty text.
std::vector<std::string_view> split(std::string_view text, char separator);
/// A whole decimal integer that fits; nothing otherwise.
std::optional<int64_t> parse_int(std::string_view text);
/// "1,2,3".
std::string join(const std::vector<int64_t>& values, std::string_view separator);
/// Whether it stands between the words of a request. Line ends do: a line of a file may end in what ends lines.
constexpr bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}
/// `text` without the blanks around it.
std::string_view trimmed(std::string_view text);
/// Whether a requests file may define an expression of that name: letters, digits, _ and -.
bool is_definition_name(std::string_view name);
/// The line that ends such a definition.
inline constexpr std::string_view definition_end = "end expression";

}  // namespace kiln::text
