// Expression: a user's CUDA code that Kiln compiles into its kernels, as a value.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// CUDA code over named values: what becomes of each element on its way out of a kernel (an epilogue), and of each
/// element of the input on its way in (a prologue). docs/user-code.md lists the values and functions that it may use.
///
/// Each part is an expression (`acc * sigmoid(acc)`), or statements that end in `;` or `}` and return a float. A text
/// without marks is an epilogue. Functions that the parts call may stand before them; a line `--- prologue` begins a
/// prologue, or a line `--- rounded prologue`, whose results are rounded to the type of the input, as if they had been
/// stored; after functions or a prologue a line `---` begins the epilogue. Lists of names say which tensors and scalars
/// it reads besides; what they are is given at the call. A tensor is read by the prologue, which has to name it, or by
/// the epilogue.
///
/// Immutable; copies are cheap and share the text. Moving one copies it: there is no empty Expression.
class Expression {
 public:
  static constexpr size_t max_tensors = 8;
  static constexpr size_t max_scalars = 8;

  /// Throws Error(parse_error) with line and column if the text is empty, too long (64 KiB), not printable UTF-8, has a
  /// bracket that does not match, a directive other than `#pragma unroll`, or anything else that docs/user-code.md
  /// ("What is refused") names; Error(invalid_argument) for too many names, or one that is no identifier, is reserved
  /// or stands twice, or a tensor that both parts name.
  explicit Expression(std::string_view text, std::vector<std::string> tensors = {},
                      std::vector<std::string> scalars = {});
  Expression(const Expression&) = default;
  Expression& operator=(const Expression&) = default;

  /// The text as it is compiled and digested: lines end in \n, without trailing blanks.
  const std::string& text() const { return content_->text; }
  /// Names of the tensors, those that the epilogue reads and then the prologue's, each sorted: their order in requests
  /// and plans.
  const std::vector<std::string>& tensors() const { return content_->tensors; }
  /// How many of them the epilogue reads.
  size_t epilogue_tensors() const { return content_->epilogue_tensors; }
  /// Names of the scalars as given: their order in RunValues.
  const std::vector<std::string>& scalars() const { return content_->scalars; }
  /// 32 hexadecimal digits over the text and both lists: what stands in a request's key.
  const std::string& digest() const { return content_->digest; }
  /// The same 128 bits, for keys of calls.
  const std::array<int64_t, 2>& digest_words() const { return content_->words; }

  /// A part of the text, and the line of the text that it starts at (from 1).
  struct Part {
    std::string text;
    int line = 1;
    bool one_expression = true;  ///< Not statements.
    size_t long_calls = 0;       ///< Calls of functions but those of an instruction or two. For estimates.
    bool empty() const { return text.empty(); }
  };
  const Part& functions() const { return content_->functions; }
  const Part& prologue() const { return content_->prologue; }
  /// Whether the prologue's results are rounded to the type of the input.
  bool rounds_prologue() const { return content_->rounds_prologue; }
  const Part& epilogue() const { return content_->epilogue; }

  bool operator==(const Expression& other) const { return content_->digest == other.content_->digest; }

 private:
  struct Content {
    std::string text;
    std::vector<std::string> tensors, scalars;
    size_t epilogue_tensors = 0;
    std::string digest;
    std::array<int64_t, 2> words{};
    Part functions, prologue, epilogue;
    bool rounds_prologue = false;
  };
  std::shared_ptr<const Content> content_;
};

/// Expressions by name: what `user:swish` in a request line that a person wrote may mean.
using Expressions = std::map<std::string, Expression, std::less<>>;

/// A request's user code. The key holds its digest; its text may be unknown (a line out of a pack).
class UserCode {
 public:
  UserCode() = default;
  explicit UserCode(std::string digest) : digest_(std::move(digest)) {}
  explicit UserCode(const Expression& expression)
      : digest_(expression.digest()), expression_(std::make_shared<const Expression>(expression)) {}

  explicit operator bool() const { return !digest_.empty(); }
  const std::string& digest() const { return digest_; }
  /// Null where only the digest is known.
  const Expression* expression() const { return expression_.get(); }
  bool operator==(const UserCode& other) const { return digest_ == other.digest_; }

 private:
  std::string digest_;
  std::shared_ptr<const Expression> expression_;
};

/// The name that the compiler's messages give to the text (`#line`).
inline constexpr std::string_view user_code_file = "user code";

/// Whether `text` is a digest as Expression::digest() gives it.
bool is_expression_digest(std::string_view text);

/// The lines with which a requests file defines an expression: `expression NAME(tensors; scalars)`, the text,
/// `end expression`. Throws Error(invalid_argument) for a name of other than letters, digits, _ and -, and for the
/// digest of another expression.
std::string print_definition(std::string_view name, const Expression& expression);

}  // namespace kiln
