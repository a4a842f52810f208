#include "kiln/generator/code_text.h"

#include <algorithm>
#include <cctype>

namespace kiln {
namespace {

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// Ends a run of characters that are code and nothing else.
constexpr std::string_view special = "/\"' \t\n\r\v\f";

class Reader {
 public:
  explicit Reader(std::string_view source) : rest_(source) { code_.reserve(source.size()); }

  std::string read() && {
    while (!rest_.empty()) step();
    while (!code_.empty() && code_.back() == '\n') code_.pop_back();
    return std::move(code_);
  }

 private:
  void step() {
    switch (rest_.front()) {
      case '/':
        return comment_or_division();
      case '"':
        return take(is_raw() ? raw_literal() : literal('"'));
      case '\'':
        return take(separates_digits() ? 1 : literal('\''));
      case '\n':
        end_line();
        return skip(1);
      case ' ':
      case '\t':
      case '\r':
      case '\v':
      case '\f':
        blank_ = true;
        return skip(1);
      default:
        take(std::min(rest_.find_first_of(special), rest_.size()));
    }
  }

  void comment_or_division() {
    if (rest_.starts_with("//")) return line_comment();
    if (!rest_.starts_with("/*")) return take(1);
    const size_t end = rest_.find("*/", 2);
    skip(end == std::string_view::npos ? end : end + 2);
    blank_ = true;
  }

  // A backslash at its end carries it on to the next line. So that nothing depends on what a compiler makes of blanks
  // behind the backslash, all that follows stays as it is.
  void line_comment() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const size_t last = rest_.find_last_not_of(" \t\r\v\f", end == 0 ? 0 : end - 1);
    if (last != std::string_view::npos && rest_[last] == '\\') return take(rest_.size());
    skip(end);
  }

  void skip(size_t count) { rest_.remove_prefix(std::min(count, rest_.size())); }

  void take(size_t count) {
    if (blank_ && !code_.empty() && code_.back() != '\n') code_ += ' ';
    blank_ = false;
    code_ += rest_.substr(0, count);
    skip(count);
  }

  void end_line() {
    // Behind a backslash blanks may keep the line from going on, and an empty line is where it ends.
    const bool goes_on = code_.ends_with('\\'), went_on = code_.ends_with("\\\n") || code_.ends_with("\\ \n");
    if (goes_on && blank_) code_ += ' ';
    blank_ = false;
    if (went_on || (!code_.empty() && code_.back() != '\n')) code_ += '\n';
  }

  // The letters, digits and what stands between digits that the next character follows at once: a name, or a number.
  std::string_view word_before() const {
    if (blank_) return {};
    const std::string_view code = code_;
    size_t begin = code.size();
    while (begin > 0 && (is_word(code[begin - 1]) || code[begin - 1] == '\'' || code[begin - 1] == '.')) --begin;
    return code.substr(begin);
  }

  bool separates_digits() const {
    const std::string_view word = word_before();
    return !word.empty() && (is_digit(word[0]) || (word[0] == '.' && word.size() > 1 && is_digit(word[1])));
  }

  // R"(...)", with a prefix or without.
  bool is_raw() const {
    const std::string_view word = word_before();
    return word == "R" || word == "LR" || word == "uR" || word == "UR" || word == "u8R";
  }

  // Lengths of the literal that the rest begins with; all of the rest if it does not end.
  size_t literal(char quote) const {
    size_t end = 1;
    while (end < rest_.size() && rest_[end] != quote && rest_[end] != '\n') end += rest_[end] == '\\' ? 2 : 1;
    return std::min(end + 1, rest_.size());
  }
  size_t raw_literal() const {
    const size_t open = rest_.find('(');
    if (open == std::string_view::npos) return rest_.size();
    const std::string close = ")" + std::string(rest_.substr(1, open - 1)) + "\"";
    const size_t end = rest_.find(close, open);
    return end == std::string_view::npos ? rest_.size() : end + close.size();
  }

  std::string_view rest_;
  std::string code_;
  bool blank_ = false;  // between what was taken and what comes next
};

}  // namespace

std::string code_of(std::string_view source) {
  return Reader(source).read();
}

}  // namespace kiln
