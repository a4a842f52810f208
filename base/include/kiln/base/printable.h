// Text from outside as a terminal may show it: names in models, texts of packs and databases, messages with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

/// Length of the well-formed UTF-8 sequence that `text`, which is not empty, starts with; 0 if it is broken.
std::size_t sequence_length(std::string_view text);

/// The code point of one well-formed sequence.
std::uint32_t code_point(std::string_view sequence);

/// Whether one well-formed sequence makes a text look other than it is: a control beyond ASCII, a separator of lines,
/// or one of those that reorder what follows (Unicode Technical Report 36).
bool is_hidden(std::string_view sequence);

/// `text` without anything that a terminal would obey. A tab becomes a blank, and line breaks stay. Other control
/// characters and bytes that are no UTF-8 stand as \x1b, hidden characters as \u202e.
std::string printable(std::string_view text);
/// The same in one line: a line break stands as \n.
std::string printable_line(std::string_view text);
/// A name in one line, which a message quotes: of one of more than 200 bytes, the beginning and "...".
std::string printable_name(std::string_view name);

}  // namespace kiln
