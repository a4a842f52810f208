#include "kiln/templates/integer_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "kiln/base/error.h"

namespace kiln {
namespace {

constexpr int deepest = 64;

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}
bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Operators by precedence, the loosest first; a longer one stands before one that it begins with.
constexpr std::array<std::array<std::string_view, 4>, 6> levels = {{{"||", "", "", ""},
                                                                    {"&&", "", "", ""},
                                                                    {"==", "!=", "", ""},
                                                                    {"<=", ">=", "<", ">"},
                                                                    {"+", "-", "", ""},
                                                                    {"*", "/", "%", ""}}};

bool is_function(std::string_view name) {
  return name == "min" || name == "max" || name == "ceil_div" || name == "round_up";
}

}  // namespace

// Recursive descent; depth is bounded, so no text can exhaust the stack.
class IntegerExpression::Parser {
 public:
  Parser(std::string_view text, std::vector<Node>& nodes) : text_(text), nodes_(nodes) {}

  size_t parse() {
    const size_t root = conditional(0);
    skip_blanks();
    if (at_ < text_.size()) fail(fmt::format("'{}' was not expected here", text_[at_]));
    return root;
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw Error(ErrorCode::parse_error, fmt::format("column {}: {}", at_ + 1, what));
  }

  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (!text_.substr(at_).starts_with(token)) return false;
    // `!` is not the beginning of `!=`.
    if (token == "!" && text_.substr(at_).starts_with("!=")) return false;
    at_ += token.size();
    return true;
  }

  void expect(std::string_view token) {
    if (!take(token)) fail(fmt::format("expected '{}'", token));
  }

  size_t add(Kind kind, std::string_view symbol, size_t column, std::vector<size_t> operands = {}) {
    nodes_.push_back({kind, std::string(symbol), 0, column, std::move(operands)});
    return nodes_.size() - 1;
  }

  size_t conditional(int depth) {
    if (depth > deepest) fail(fmt::format("it nests more than {} deep", deepest));
    const size_t condition = binary(0, depth);
    skip_blanks();
    const size_t column = at_ + 1;
    if (!take("?")) return condition;
    const size_t yes = conditional(depth + 1);
    expect(":");
    const size_t no = conditional(depth + 1);
    return add(Kind::conditional, "?", column, {condition, yes, no});
  }

  size_t binary(size_t level, int depth) {
    if (level == levels.size()) return unary(depth);
    size_t left = binary(level + 1, depth);
    while (true) {
      skip_blanks();
      const size_t column = at_ + 1;
      const auto& operators = levels[level];
      const auto found = std::find_if(operators.begin(), operators.end(),
                                      [&](std::string_view symbol) { return !symbol.empty() && take(symbol); });
      if (found == operators.end()) return left;
      left = add(Kind::binary, *found, column, {left, binary(level + 1, depth)});
    }
  }

  size_t unary(int depth) {
    if (depth > deepest) fail(fmt::format("it nests more than {} deep", deepest));
    skip_blanks();
    const size_t column = at_ + 1;
    for (const std::string_view symbol : {"!", "-"}) {
      if (take(symbol)) return add(Kind::unary, symbol, column, {unary(depth + 1)});
    }
    return primary(depth);
  }

  size_t primary(int depth) {
    skip_blanks();
    const size_t column = at_ + 1;
    if (take("(")) {
      const size_t inside = conditional(depth + 1);
      expect(")");
      return inside;
    }
    if (at_ < text_.size() && is_digit(text_[at_])) return number(column);
    if (at_ < text_.size() && is_letter(text_[at_])) return name_or_call(column, depth);
    fail(at_ == text_.size() ? "the expression ends where a value was expected" : "expected a number, a name or '('");
  }

  size_t number(size_t column) {
    int64_t value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc()) fail("the number does not fit 64 bits");
    at_ += static_cast<size_t>(end - begin);
    const size_t node = add(Kind::number, "", column);
    nodes_[node].number = value;
    return node;
  }

  size_t name_or_call(size_t column, int depth) {
    const size_t begin = at_;
    while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
    const std::string_view name = text_.substr(begin, at_ - begin);
    if (!take("(")) return add(Kind::name, name, column);
    if (!is_function(name)) {
      at_ = begin;
      fail(fmt::format("there is no function {}; known are min, max, ceil_div, round_up", name));
    }
    const size_t first = conditional(depth + 1);
    expect(",");
    const size_t second = conditional(depth + 1);
    expect(")");
    return add(Kind::call, name, column, {first, second});
  }

  std::string_view text_;
  std::vector<Node>& nodes_;
  size_t at_ = 0;
};

IntegerExpression::IntegerExpression(std::string_view text) : text_(text) {
  if (text.size() > longest_text) {
    throw Error(ErrorCode::parse_error,
                fmt::format("the expression has {} characters, the most is {}", text.size(), longest_text));
  }
  root_ = Parser(text_, nodes_).parse();
}

std::vector<IntegerExpression::Name> IntegerExpression::names() const {
  std::vector<Name> found;
  for (const Node& node : nodes_) {
    if (node.kind == Kind::name) found.push_back({node.symbol, node.column});
  }
  return found;
}

void IntegerExpression::fail(const Node& node, std::string_view what) const {
  throw Error(ErrorCode::invalid_argument, fmt::format("'{}', column {}: {}", text_, node.column, what));
}

int64_t IntegerExpression::evaluate(const Lookup& lookup) const {
  return evaluate(root_, lookup);
}

int64_t IntegerExpression::evaluate(size_t index, const Lookup& lookup) const {
  const Node& node = nodes_[index];
  const auto operand = [&](size_t i) { return evaluate(node.operands[i], lookup); };
  switch (node.kind) {
    case Kind::number:
      return node.number;
    case Kind::name: {
      const std::optional<int64_t> value = lookup(node.symbol);
      if (!value) fail(node, fmt::format("there is no {}", node.symbol));
      return *value;
    }
    case Kind::unary: {
      if (node.symbol == "!") return operand(0) == 0 ? 1 : 0;
      int64_t result = 0;
      if (__builtin_sub_overflow(int64_t{0}, operand(0), &result)) fail(node, "the result does not fit 64 bits");
      return result;
    }
    case Kind::conditional:
      return operand(0) != 0 ? operand(1) : operand(2);
    case Kind::binary:
    case Kind::call:
      return evaluate_binary(node, lookup);
  }
  return 0;
}

int64_t IntegerExpression::evaluate_binary(const Node& node, const Lookup& lookup) const {
  const std::string_view symbol = node.symbol;
  const int64_t a = evaluate(node.operands[0], lookup);
  if (symbol == "&&" && a == 0) return 0;
  if (symbol == "||" && a != 0) return 1;
  const int64_t b = evaluate(node.operands[1], lookup);
  if (symbol == "&&" || symbol == "||") return b != 0 ? 1 : 0;
  if (symbol == "==") return a == b ? 1 : 0;
  if (symbol == "!=") return a != b ? 1 : 0;
  if (symbol == "<=") return a <= b ? 1 : 0;
  if (symbol == ">=") return a >= b ? 1 : 0;
  if (symbol == "<") return a < b ? 1 : 0;
  if (symbol == ">") return a > b ? 1 : 0;
  if (symbol == "min") return std::min(a, b);
  if (symbol == "max") return std::max(a, b);

  int64_t result = 0;
  bool overflow = false;
  if (symbol == "+") overflow = __builtin_add_overflow(a, b, &result);
  if (symbol == "-") overflow = __builtin_sub_overflow(a, b, &result);
  if (symbol == "*") overflow = __builtin_mul_overflow(a, b, &result);
  if (symbol == "/" || symbol == "%" || node.kind == Kind::call) {
    if (b <= 0 || a < 0) fail(node, fmt::format("{} divided by {}", a, b));
    const int64_t quotient = a / b, rest = a % b, up = quotient + (rest != 0 ? 1 : 0);
    result = symbol == "/" ? quotient : symbol == "%" ? rest : up;
    if (symbol == "round_up") overflow = __builtin_mul_overflow(up, b, &result);
  }
  if (overflow) fail(node, "the result does not fit 64 bits");
  return result;
}

}  // namespace kiln
