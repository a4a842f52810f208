#include "lexer.h"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/load_error.h"

namespace kiln::emulator::ptx {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool starts_word(char c) {
  return is_letter(c) || c == '_' || c == '$' || c == '%' || c == '.';
}
bool continues_word(char c) {
  return starts_word(c) || is_digit(c);
}

/// "1.0e": what a signed exponent may follow. Not "0x1e", a hexadecimal number.
bool is_decimal_with_e(std::string_view text) {
  const char last = text.back();
  return (last == 'e' || last == 'E') &&
         std::all_of(text.begin(), text.end() - 1, [](char c) { return is_digit(c) || c == '.'; });
}

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    for (skip_blank(); at_ < text_.size(); skip_blank()) next();
    tokens_.push_back({TokenKind::end, line_, text_.substr(text_.size())});
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }

  void skip_blank() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++line_;
        ++at_;
      } else if (c == ' ' || c == '\t' || c == '\r' || c == '\0') {
        ++at_;
      } else if (c == '/' && peek(1) == '/') {
        while (at_ < text_.size() && text_[at_] != '\n') ++at_;
      } else if (c == '/' && peek(1) == '*') {
        skip_long_comment();
      } else {
        return;
      }
    }
  }

  void skip_long_comment() {
    const uint32_t first = line_;
    for (at_ += 2; peek() != '*' || peek(1) != '/'; ++at_) {
      if (at_ >= text_.size()) throw LoadError(first, "this comment has no end; expected */");
      if (text_[at_] == '\n') ++line_;
    }
    at_ += 2;
  }

  void next() {
    const char c = peek();
    if (is_digit(c)) return number();
    if (starts_word(c)) return word();
    if (c == '"') return string();
    if (std::string_view(",;[]{}()<>@!+-|:=*/&~^?").find(c) == std::string_view::npos) {
      throw LoadError(line_, fmt::format("unexpected character '{}'", c));
    }
    emit(TokenKind::punctuation, at_, at_ + 1);
  }

  void word() {
    size_t end = at_ + 1;
    while (end < text_.size()) {
      if (continues_word(text_[end])) {
        ++end;
      } else if (text_.substr(end, 2) == "::" && end + 2 < text_.size() && continues_word(text_[end + 2])) {
        end += 3;  // a modifier such as .L1::no_allocate, .L2::128B or .cta_group::2
      } else {
        break;
      }
    }
    emit(TokenKind::word, at_, end);
  }

  void number() {
    size_t end = at_ + 1;
    while (end < text_.size()) {
      const char c = text_[end];
      const bool before_digit = end + 1 < text_.size() && is_digit(text_[end + 1]);
      const bool fraction = c == '.' && before_digit;
      const bool exponent = (c == '+' || c == '-') && before_digit && is_decimal_with_e(text_.substr(at_, end - at_));
      if (!is_digit(c) && !is_letter(c) && !fraction && !exponent) break;
      ++end;
    }
    emit(TokenKind::number, at_, end);
  }

  void string() {
    const size_t close = text_.find_first_of("\"\n", at_ + 1);
    if (close == std::string_view::npos || text_[close] == '\n') {
      throw LoadError(line_, "this string has no closing quote");
    }
    emit(TokenKind::string, at_ + 1, close);
    at_ = close + 1;
  }

  void emit(TokenKind kind, size_t begin, size_t end) {
    tokens_.push_back({kind, line_, text_.substr(begin, end - begin)});
    at_ = end;
  }

  std::string_view text_;
  size_t at_ = 0;
  uint32_t line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> tokenize(std::string_view text) {
  return Lexer(text).run();
}

}  // namespace kiln::emulator::ptx
