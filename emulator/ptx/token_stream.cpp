#include "token_stream.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cstdlib>
#include <string>

#include "ptx/load_error.h"

namespace kiln::emulator::ptx {

const Token& TokenStream::peek(size_t ahead) const {
  return at_ + ahead < tokens_.size() ? tokens_[at_ + ahead] : tokens_.back();
}

Token TokenStream::take() {
  const Token token = peek();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

bool TokenStream::accept(char punctuation) {
  if (!peek().is(punctuation)) return false;
  take();
  return true;
}

bool TokenStream::accept(std::string_view word) {
  if (!peek().is(word)) return false;
  take();
  return true;
}

void TokenStream::expect(char punctuation, std::string_view context) {
  if (!accept(punctuation)) fail(fmt::format("'{}' {}", punctuation, context));
}

std::string_view TokenStream::word(std::string_view what) {
  if (peek().kind != TokenKind::word) fail(what);
  return take().text;
}

uint64_t TokenStream::count(std::string_view what) {
  if (peek().kind != TokenKind::number) fail(what);
  const Operand number = parse_number(*this);
  if (number.kind != Operand::Kind::integer) fail(what);
  return number.bits;
}

uint64_t TokenStream::count(std::string_view what, uint64_t most) {
  const uint32_t line = peek().line;
  const uint64_t number = count(what);
  if (number > most) throw LoadError(line, fmt::format("{} is {}, expected at most {}", what, number, most));
  return number;
}

TokenStream::Nesting::Nesting(TokenStream& tokens) : tokens_(tokens) {
  constexpr int deepest = 500;
  if (tokens.depth_ == deepest) {
    throw LoadError(tokens.peek().line,
                    fmt::format("braces and groups inside each other are {} deep at most", deepest));
  }
  ++tokens.depth_;
}

void TokenStream::skip_line(uint32_t line) {
  while (peek().kind != TokenKind::end && peek().line == line) take();
}

void TokenStream::fail(std::string_view expected) const {
  const Token& token = peek();
  const std::string in = instruction_.empty() ? std::string() : fmt::format(", in an instruction {}", instruction_);
  if (token.kind == TokenKind::end) {
    throw LoadError(token.line, fmt::format("the text ends; expected {}{}", expected, in));
  }
  throw LoadError(token.line, fmt::format("found '{}'; expected {}{}", token.text, expected, in));
}

namespace {

uint64_t parse_digits(const Token& token, std::string_view digits, int base) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (error != std::errc() || end != digits.data() + digits.size()) {
    throw LoadError(token.line, fmt::format("'{}' is not a number", token.text));
  }
  return value;
}

Operand parse_bit_pattern(const Token& token, Operand::Kind kind, size_t digits) {
  if (token.text.size() != 2 + digits) {
    throw LoadError(token.line, fmt::format("'{}' needs {} hexadecimal digits", token.text, digits));
  }
  Operand number{.kind = kind, .line = token.line};
  number.bits = parse_digits(token, token.text.substr(2), 16);
  return number;
}

Operand parse_integer(const Token& token, std::string_view text) {
  Operand number{.kind = Operand::Kind::integer, .line = token.line};
  if (text.ends_with('U') || text.ends_with('u')) text.remove_suffix(1);
  if (text.size() > 2 && (text[1] == 'x' || text[1] == 'X')) {
    number.bits = parse_digits(token, text.substr(2), 16);
  } else if (text.size() > 2 && (text[1] == 'b' || text[1] == 'B')) {
    number.bits = parse_digits(token, text.substr(2), 2);
  } else if (text.size() > 1 && text[0] == '0') {
    number.bits = parse_digits(token, text.substr(1), 8);
  } else {
    number.bits = parse_digits(token, text, 10);
  }
  return number;
}

/// 1.5, 1e10, 1.0e-5; not 0x1e10.
bool is_decimal_fraction(std::string_view text) {
  return !text.starts_with("0x") && !text.starts_with("0X") && text.find_first_of(".eE") != std::string_view::npos;
}

void negate(Operand& number) {
  switch (number.kind) {
    case Operand::Kind::f32:
      number.bits ^= uint64_t{1} << 31;
      break;
    case Operand::Kind::f64:
      number.bits ^= uint64_t{1} << 63;
      break;
    default:
      number.bits = ~number.bits + 1;
      break;
  }
}

}  // namespace

Operand parse_number(TokenStream& tokens) {
  const bool negative = tokens.accept('-');
  if (!negative) tokens.accept('+');
  if (tokens.peek().kind != TokenKind::number) tokens.fail("a number");
  const Token token = tokens.take();
  const std::string_view text = token.text;
  Operand number;
  if (text.starts_with("0f") || text.starts_with("0F")) {
    number = parse_bit_pattern(token, Operand::Kind::f32, 8);
  } else if (text.starts_with("0d") || text.starts_with("0D")) {
    number = parse_bit_pattern(token, Operand::Kind::f64, 16);
  } else if (is_decimal_fraction(text)) {
    number = Operand{.kind = Operand::Kind::f64, .line = token.line};
    number.bits = std::bit_cast<uint64_t>(std::strtod(std::string(text).c_str(), nullptr));
  } else {
    number = parse_integer(token, text);
  }
  if (negative) negate(number);
  return number;
}

}  // namespace kiln::emulator::ptx
