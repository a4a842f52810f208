// How the texts of templates/ are embedded: what repeats is said by where it stood before.
//
// Compressed bytes are a sequence of steps. A step is a byte whose upper half is the number of literal bytes and whose
// lower half is the length of a match less shortest_match; a half of 15 goes on in bytes that add to it, the last of
// them below 255. In order: the byte, the rest of the number of literals, these, two bytes that say how far back the
// match begins (the lower one first), the rest of its length. A match may reach into what it writes. The last step ends
// after its literals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln {

constexpr size_t shortest_match = 4;
constexpr size_t farthest_match = 65535;

/// For embed.cpp: the library holds no code that compresses.
std::string compressed(std::string_view text);

/// The text of which compressed() made `bytes`. Others are not checked: it is for what the library itself holds.
std::string decompressed(std::string_view bytes);

}  // namespace kiln
