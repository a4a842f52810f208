#include "field_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"

namespace kiln::cache {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";
constexpr std::string_view cut_mark = " ... (cut)";

// Bytes at the start of `text` that are plain ASCII, in steps of eight.
std::size_t ascii_prefix(std::string_view text) {
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + at, 8);
    if ((word & 0x8080808080808080u) != 0) break;
  }
  return at;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  return std::nullopt;
}

// The character that the escape at the front of `text` stands for (after the backslash), and its length.
std::optional<std::pair<char, std::size_t>> escaped_character(std::string_view text) {
  if (text.empty()) return std::nullopt;
  switch (text[0]) {
    case '\\':
      return std::pair('\\', std::size_t{1});
    case 't':
      return std::pair('\t', std::size_t{1});
    case 'n':
      return std::pair('\n', std::size_t{1});
    case 'r':
      return std::pair('\r', std::size_t{1});
    default:
      break;
  }
  if (text[0] != 'x' || text.size() < 3) return std::nullopt;
  const auto high = hex_digit(text[1]);
  const auto low = hex_digit(text[2]);
  if (!high || !low) return std::nullopt;
  const char value = static_cast<char>(*high * 16 + *low);
  if (!is_control(value) || value == '\0') return std::nullopt;  // one spelling per text; NUL never travels
  return std::pair(value, std::size_t{3});
}

}  // namespace

bool valid_utf8(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return true;
    const std::size_t length = sequence_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
}

bool has_hidden(std::string_view text) {
  while (true) {
    text.remove_prefix(ascii_prefix(text));
    if (text.empty()) return false;
    const std::size_t length = std::max<std::size_t>(sequence_length(text), 1);
    if (is_hidden(text.substr(0, length))) return true;
    text.remove_prefix(length);
  }
}

bool has_control(std::string_view text) {
  return std::any_of(text.begin(), text.end(), is_control) || has_hidden(text);
}

std::string clean_text(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t cut = 0;  // the last character boundary that leaves room for the mark
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const bool keep = length != 0 && text[0] != '\0' && !is_hidden(text.substr(0, length));
    const std::string_view piece = keep ? text.substr(0, length) : replacement;
    if (out.size() + piece.size() > limit) return out.substr(0, cut).append(cut_mark);
    out += piece;
    if (out.size() + cut_mark.size() <= limit) cut = out.size();
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

void escape_to(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (is_control(c)) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    } else {
      out += c;
    }
  }
}

std::string escape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  escape_to(out, text);
  return out;
}

std::optional<std::string> unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    if (text[0] != '\\') {
      out += text[0];
      text.remove_prefix(1);
      continue;
    }
    const auto character = escaped_character(text.substr(1));
    if (!character) return std::nullopt;
    out += character->first;
    text.remove_prefix(1 + character->second);
  }
  return out;
}

void require_line(std::string_view field, std::string_view text, std::size_t limit, bool may_be_empty) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, fmt::format("{} {}", field, why));
  };
  if (text.empty() && !may_be_empty) refuse("is empty");
  if (text.size() > limit) refuse(fmt::format("has {} bytes, more than {}", text.size(), limit));
  if (!valid_utf8(text)) refuse(fmt::format("{} is not valid UTF-8", quoted(text)));
  if (has_control(text)) refuse(fmt::format("{} contains a control or hidden character", quoted(text)));
}

std::string quoted(std::string_view text) {
  constexpr std::size_t readable = 120;
  return "'" + escape(clean_text(text, readable)) + "'";
}

}  // namespace kiln::cache
