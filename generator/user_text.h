// User code as the compiler reads it, and what of it is refused.
#pragma once

#include <string_view>
#include <vector>

namespace kiln {

/// A word, number, literal or mark of a text; comments are none.
struct CodeToken {
  enum class Kind { word, number, literal, mark };
  Kind kind;
  size_t at;              ///< Its place in the text.
  std::string_view text;  ///< One character, if it is a mark.
};

/// Throws Error(parse_error): `what` is wrong with user code at `at`, which is shown with its line and column.
[[noreturn]] void refuse_user_text(std::string_view text, size_t at, std::string_view what, std::string_view hint = {});

/// Throws Error(parse_error) for characters that are no text, or that a reader of the text does not see as the compiler
/// does: what is not UTF-8, control characters, characters that change the direction of text, trigraphs, and a
/// backslash at the end of a line.
void check_user_characters(std::string_view text);

/// The tokens of a part of user code, as the compiler forms them of a text that passed check_user_characters().
///
/// Throws Error(parse_error) with the place for whatever would leave the function that the part is placed in, or the
/// language of expressions and functions (docs/user-code.md, "What is refused"): brackets that do not match, directives
/// other than `#pragma unroll`, other spellings of brackets and of `#`, raw literals and other prefixes, attributes,
/// assembly, kernels, linkage.
std::vector<CodeToken> tokens_of_user_code(std::string_view text);

}  // namespace kiln
