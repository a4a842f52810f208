#include "kiln/base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace kiln {
namespace {

void append(std::string& out, std::string_view sequence, bool keeps_lines) {
  const char c = sequence[0];
  const auto byte = static_cast<unsigned char>(c);
  if (c == '\t') {
    out += ' ';
  } else if (c == '\n') {
    out += keeps_lines ? "\n" : "\\n";
  } else if (byte < 0x20 || byte == 0x7f) {
    out += fmt::format("\\x{:02x}", byte);
  } else if (is_hidden(sequence)) {
    out += fmt::format("\\u{:04x}", code_point(sequence));
  } else {
    out += sequence;
  }
}

std::string shown(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
    } else {
      append(out, text.substr(0, length), keeps_lines);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

}  // namespace

// Unicode, table 3-7.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return i < text.size() && byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    const unsigned low = lead == 0xE0 ? 0xA0 : 0x80;
    const unsigned high = lead == 0xED ? 0x9F : 0xBF;
    return continues(1, low, high) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    const unsigned low = lead == 0xF0 ? 0x90 : 0x80;
    const unsigned high = lead == 0xF4 ? 0x8F : 0xBF;
    return continues(1, low, high) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

std::uint32_t code_point(std::string_view sequence) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(sequence[i]); };
  constexpr unsigned lead_bits[] = {0x7f, 0x7f, 0x1f, 0x0f, 0x07};
  std::uint32_t value = byte(0) & lead_bits[sequence.size()];
  for (std::size_t i = 1; i < sequence.size(); ++i) value = value << 6 | (byte(i) & 0x3fU);
  return value;
}

bool is_hidden(std::string_view sequence) {
  const std::uint32_t code = code_point(sequence);
  const auto is_within = [&](std::uint32_t first, std::uint32_t last) { return code >= first && code <= last; };
  return is_within(0x80, 0x9F) || code == 0x061C || is_within(0x200E, 0x200F) || is_within(0x2028, 0x202E) ||
         is_within(0x2066, 0x2069);
}

std::string printable(std::string_view text) {
  return shown(text, true);
}

std::string printable_line(std::string_view text) {
  return shown(text, false);
}

std::string printable_name(std::string_view name) {
  constexpr std::size_t longest = 200;
  if (name.size() <= longest) return printable_line(name);
  std::size_t end = longest;
  while (end > longest - 4 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80) --end;  // in a sequence
  return printable_line(name.substr(0, end)) + "...";
}

}  // namespace kiln
