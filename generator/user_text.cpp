#include "user_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/printable.h"

namespace kiln {
namespace {

bool is_ascii_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_ascii_digit(c) || c == '_';
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

bool is_control(std::uint32_t point) {
  return (point < 0x20 && point != '\n' && point != '\t') || (point >= 0x7f && point < 0xa0);
}

// Shows a text in another order than it has, or as lines that are none to the compiler, or does not show itself.
bool is_deceptive(std::string_view sequence) {
  constexpr std::uint32_t byte_order_mark = 0xfeff;
  return is_hidden(sequence) || code_point(sequence) == byte_order_mark;
}

// Words that leave the function or the language; those between two underscores are kept out by is_qualifier().
bool is_refused_word(std::string_view word) {
  static const std::set<std::string_view> words = {"asm",    "__asm",       "_Pragma",   "__pragma",
                                                   "extern", "__attribute", "__declspec"};
  return words.contains(word);
}

// Words that begin and end in two underscores and may stand in user code.
bool is_qualifier(std::string_view word) {
  static const std::set<std::string_view> words = {"__device__",    "__host__",     "__forceinline__", "__noinline__",
                                                   "__inline__",    "__restrict__", "__constant__",    "__shared__",
                                                   "__CUDA_ARCH__", "__align__"};
  return words.contains(word);
}

class Tokeniser {
 public:
  explicit Tokeniser(std::string_view text) : text_(text) {}

  std::vector<CodeToken> read() && {
    while (at_ < text_.size()) step();
    if (!open_.empty()) refuse(open_.back(), fmt::format("this '{}' is never closed", text_[open_.back()]));
    return std::move(tokens_);
  }

 private:
  void step() {
    const char c = text_[at_];
    if (is_blank(c)) {
      ++at_;
    } else if (starts("//")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (starts("/*")) {
      const size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) refuse(at_, "this comment does not end");
      at_ = end + 2;
    } else if (c == '"' || c == '\'') {
      literal();
    } else if (is_ascii_digit(c) || (c == '.' && is_ascii_digit(next(1)))) {
      take(CodeToken::Kind::number, length_of_number());
    } else if (is_word_character(c)) {
      word();
    } else if (c == '#') {
      directive();
    } else {
      mark();
    }
  }

  [[noreturn]] void refuse(size_t at, std::string_view what, std::string_view hint = {}) const {
    refuse_user_text(text_, at, what, hint);
  }

  bool starts(std::string_view what) const { return text_.substr(at_).starts_with(what); }

  char next(size_t distance) const { return at_ + distance < text_.size() ? text_[at_ + distance] : '\0'; }

  void take(CodeToken::Kind kind, size_t length) {
    tokens_.push_back({kind, at_, text_.substr(at_, length)});
    at_ += length;
  }

  // A preprocessing number: `1'000`, `1e+5` and `0x1p-3` are one each.
  size_t length_of_number() const {
    size_t length = 1;
    while (true) {
      const char c = next(length), before = next(length - 1);
      const bool exponent = before == 'e' || before == 'E' || before == 'p' || before == 'P';
      if (is_word_character(c) || c == '.' || ((c == '+' || c == '-') && exponent))
        ++length;
      else if (c == '\'' && is_word_character(next(length + 1)))
        length += 2;
      else
        return length;
    }
  }

  void literal() {
    const bool behind_a_word = at_ > 0 && is_word_character(text_[at_ - 1]);
    if (behind_a_word) {
      refuse(at_, "there is no place for a literal with a prefix, raw ones among them", "write it without the prefix");
    }
    const char quote = text_[at_];
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || text_[end] != quote) refuse(at_, "this quotation mark has no other half");
    take(CodeToken::Kind::literal, end + 1 - at_);
  }

  void word() {
    size_t length = 1;
    while (is_word_character(next(length))) ++length;
    const std::string_view word = text_.substr(at_, length);
    const bool reserved = length > 4 && word.starts_with("__") && word.ends_with("__") && !is_qualifier(word);
    if (reserved || is_refused_word(word)) {
      refuse(at_, fmt::format("there is no place for '{}' in user code", word),
             "write functions and expressions of CUDA C++: no assembly, attributes, kernels or linkage");
    }
    take(CodeToken::Kind::word, length);
  }

  // `#pragma unroll`, alone in its line but for a count; what else stands there is no code to the compiler.
  void directive() {
    const size_t begin = text_.rfind('\n', at_) + 1, end = std::min(text_.find('\n', at_), text_.size());
    std::string_view line = text_.substr(at_, end - at_);
    constexpr std::string_view unroll = "#pragma unroll";
    const bool is_first = text_.substr(begin, at_ - begin).find_first_not_of(" \t") == std::string_view::npos;
    if (is_first && line.starts_with(unroll)) {
      line.remove_prefix(unroll.size());
      const size_t blanks = std::min(line.find_first_not_of(" \t"), line.size());
      std::string_view count = line.substr(blanks);
      count = count.substr(0, count.find_last_not_of(" \t") + 1);
      if (count.starts_with('(') && count.ends_with(')')) count = count.substr(1, count.size() - 2);
      if (std::all_of(count.begin(), count.end(), is_word_character) &&
          (blanks > 0 || line.empty() || line[0] == '(')) {
        at_ = end;
        return;
      }
    }
    refuse(at_, "only #pragma unroll may stand in user code, with a count or without, in a line of its own",
           "use constants and functions instead of the preprocessor");
  }

  void mark() {
    constexpr std::array<std::pair<std::string_view, char>, 5> spellings = {
        {{"<%", '{'}, {"%>", '}'}, {"<:", '['}, {":>", ']'}, {"%:", '#'}}};
    for (const auto& [spelling, meant] : spellings) {
      if (!starts(spelling)) continue;
      refuse(at_, fmt::format("'{}' is another spelling of '{}'", spelling, meant),
             fmt::format("write {}, or a blank between the two characters", meant));
    }
    constexpr std::string_view marks = "()[]{}<>+-*/%=!&|^~?:;,.";
    const char c = text_[at_];
    if (c == '\\') refuse(at_, "there is no place for a backslash here");
    if (marks.find(c) == std::string_view::npos) {
      refuse(at_, "this character is no code", "names are of ASCII letters, digits and underscores");
    }
    bracket(c);
    take(CodeToken::Kind::mark, 1);
  }

  // Code that closes more than it opens would end the function that it is placed in.
  void bracket(char c) {
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (c == '[' && !tokens_.empty() && tokens_.back().text == "[") {
      refuse(tokens_.back().at, "there is no place for attributes in user code");
    }
    if (opening.find(c) != std::string_view::npos) open_.push_back(at_);
    const size_t kind = closing.find(c);
    if (kind == std::string_view::npos) return;
    if (open_.empty()) refuse(at_, fmt::format("this '{}' closes nothing", c));
    if (text_[open_.back()] != opening[kind]) {
      refuse(at_, fmt::format("this '{}' does not close the '{}' before it", c, text_[open_.back()]));
    }
    open_.pop_back();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<CodeToken> tokens_;
  std::vector<size_t> open_;  // places of brackets
};

}  // namespace

void refuse_user_text(std::string_view text, size_t at, std::string_view what, std::string_view hint) {
  const std::string_view before = text.substr(0, at);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t start = before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  const std::string_view shown = text.substr(start, text.find('\n', start) - start);
  throw Error(ErrorCode::parse_error,
              fmt::format("user code, line {}, column {}: {}\n  {}\n  {:>{}}", line, at - start + 1, what, shown, '^',
                          at - start + 1),
              std::string(hint));
}

void check_user_characters(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const size_t length = sequence_length(text.substr(at));
    if (length == 0) refuse_user_text(text, at, "this is not UTF-8");
    const std::string_view sequence = text.substr(at, length);
    const std::uint32_t point = code_point(sequence);
    if (is_control(point)) refuse_user_text(text, at, "this is a control character");
    if (is_deceptive(sequence)) {
      refuse_user_text(text, at, fmt::format("U+{:04X} hides what the text says", point));
    }
    if (text[at] == '\\' && (at + 1 == text.size() || text[at + 1] == '\n')) {
      refuse_user_text(text, at, "there is no place for a backslash at the end of a line: it joins the next one to it",
                       "write both in one line");
    }
    constexpr std::string_view trigraphs = "=/'()!<>-";
    if (text.substr(at).starts_with("\?\?") && at + 2 < text.size() &&
        trigraphs.find(text[at + 2]) != std::string_view::npos) {
      refuse_user_text(text, at,
                       fmt::format("'{}' is a trigraph, another character to some compilers", text.substr(at, 3)),
                       "put a blank between its characters");
    }
    at += length;
  }
}

std::vector<CodeToken> tokens_of_user_code(std::string_view text) {
  return Tokeniser(text).read();
}

}  // namespace kiln
