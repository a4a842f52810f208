#include "report/html_text.h"

#include <array>
#include <cstddef>

namespace kiln::cli {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 if there is none (Unicode 15, table 3-7).
size_t sequence_length(std::string_view text) {
  struct Form {
    unsigned char first, last, second_low, second_high;
    size_t length;
  };
  constexpr std::array<Form, 9> forms = {{{0x00, 0x7F, 0, 0, 1},
                                          {0xC2, 0xDF, 0x80, 0xBF, 2},
                                          {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                          {0xE1, 0xEC, 0x80, 0xBF, 3},
                                          {0xED, 0xED, 0x80, 0x9F, 3},
                                          {0xEE, 0xEF, 0x80, 0xBF, 3},
                                          {0xF0, 0xF0, 0x90, 0xBF, 4},
                                          {0xF1, 0xF3, 0x80, 0xBF, 4},
                                          {0xF4, 0xF4, 0x80, 0x8F, 4}}};
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  for (const Form& form : forms) {
    if (byte(0) < form.first || byte(0) > form.last) continue;
    if (text.size() < form.length) return 0;
    if (form.length > 1 && (byte(1) < form.second_low || byte(1) > form.second_high)) return 0;
    for (size_t i = 2; i < form.length; ++i) {
      if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
    }
    return form.length;
  }
  return 0;
}

// Markup for one character.
std::string_view in_markup(std::string_view character) {
  const char c = character.front();
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      break;
  }
  const bool control = (c >= 0 && c < ' ' && c != '\n' && c != '\t') || c == '\x7F';
  return control ? replacement : character;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const size_t length = sequence_length(text);
    result += length == 0 ? replacement : in_markup(text.substr(0, length));
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return result;
}

std::string breakable(std::string_view text, std::string_view ends) {
  std::string broken;
  for (const char c : escaped(text)) {
    broken += c;
    if (ends.find(c) != std::string_view::npos) broken += "<wbr>";
  }
  return broken;
}

}  // namespace kiln::cli
