// Text on its way into an HTML page.
#pragma once

#include <string>
#include <string_view>

namespace kiln::cli {

/// `text` as it may stand in an element or in a quoted attribute, whatever it holds: the five characters of markup are
/// escaped; control characters (but line breaks and tabs) and bytes that are no UTF-8 become U+FFFD.
std::string escaped(std::string_view text);

/// As escaped(). Lines may be broken behind each of `ends`, which are none of the characters of markup.
std::string breakable(std::string_view text, std::string_view ends);

}  // namespace kiln::cli
