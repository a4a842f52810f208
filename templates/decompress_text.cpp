#include <cstdint>

#include "compressed_text.h"

namespace kiln {
namespace {

size_t take_byte(std::string_view& bytes) {
  const auto byte = static_cast<uint8_t>(bytes.front());
  bytes.remove_prefix(1);
  return byte;
}

// A number of which `half` is the half of a byte.
size_t whole_number(size_t half, std::string_view& bytes) {
  size_t number = half;
  for (size_t more = half == 15 ? 255 : 0; more == 255; number += more) more = take_byte(bytes);
  return number;
}

}  // namespace

std::string decompressed(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t step = take_byte(bytes);
    const size_t literals = whole_number(step >> 4, bytes);
    text += bytes.substr(0, literals);
    bytes.remove_prefix(literals);
    if (bytes.empty()) break;
    const size_t low = take_byte(bytes), distance = take_byte(bytes) << 8 | low;
    const size_t length = whole_number(step & 15, bytes) + shortest_match;
    const size_t from = text.size() - distance;
    for (size_t i = 0; i < length; ++i) text.push_back(text[from + i]);
  }
  return text;
}

}  // namespace kiln
