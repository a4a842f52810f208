// Splits PTX text into tokens. Comments and white space disappear; every token knows its line and its place in the
// text.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace kiln::emulator::ptx {

enum class TokenKind : uint8_t {
  word,         ///< identifier, register, directive (".reg") or a whole opcode with its modifiers ("ld.global.v4.f32")
  number,       ///< 42, 0x2A, 0f3F800000, 0d..., 1.5
  string,       ///< without its quotes
  punctuation,  ///< one character
  end,          ///< after the last token
};

struct Token {
  TokenKind kind = TokenKind::end;
  uint32_t line = 0;      ///< Counted from 1.
  std::string_view text;  ///< Into the text that was given.

  bool is(char c) const { return kind == TokenKind::punctuation && text[0] == c; }
  bool is(std::string_view word) const { return kind == TokenKind::word && text == word; }
};

/// The tokens of `text`, then one of kind end. The views stay valid as long as `text`.
/// Throws LoadError for a character that PTX does not use and for an unterminated string or comment.
std::vector<Token> tokenize(std::string_view text);

}  // namespace kiln::emulator::ptx
