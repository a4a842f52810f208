// Integer expressions, in the descriptors of user templates, `ceil_div(P * Q, THREADS)`, and in open extents,
// `(h-1)/2+1`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// An expression over named 64-bit integers: + - * / %, comparisons, && || !, ?: and brackets with the meaning and
/// precedence of C, and the functions min(a, b), max(a, b), ceil_div(a, b) and round_up(a, b). The operators && || ?:
/// evaluate only the operands that they need. Immutable. Nothing in it can run long, read memory or overflow: an
/// overflow is an Error.
class IntegerExpression {
 public:
  static constexpr size_t longest_text = 2000;

  /// The value of a name; nothing if there is none.
  using Lookup = std::function<std::optional<int64_t>(std::string_view name)>;

  /// Throws Error(parse_error) with the column for a text that is no expression, is too long or nests too deeply.
  explicit IntegerExpression(std::string_view text);

  /// Throws Error(invalid_argument) with the column: an unknown name, an overflow, a division by zero or of a negative
  /// number, whose rounding nobody expects.
  int64_t evaluate(const Lookup& lookup) const;

  const std::string& text() const { return text_; }
  /// Every name that is in it, with its column from 1.
  struct Name {
    std::string name;
    size_t column;
  };
  std::vector<Name> names() const;

 private:
  enum class Kind { number, name, unary, binary, conditional, call };
  struct Node {
    Kind kind;
    std::string symbol;  // a name, an operator or a function
    int64_t number = 0;
    size_t column = 0;
    std::vector<size_t> operands;  // indices into nodes_
  };
  class Parser;

  int64_t evaluate(size_t node, const Lookup& lookup) const;
  int64_t evaluate_binary(const Node& node, const Lookup& lookup) const;
  [[noreturn]] void fail(const Node& node, std::string_view what) const;

  std::string text_;
  std::vector<Node> nodes_;
  size_t root_ = 0;
};

}  // namespace kiln
