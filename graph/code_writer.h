// Writes chains of element-wise calls as user code of another call.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

/// Calls whose code one kernel takes on at most: more are too much for registers and readers.
inline constexpr size_t most_calls = 24;

/// How code calls what it reads and defines: t0, t1; s0; step0. One expression may hold both kinds.
struct CodeNames {
  std::string tensor, number, function;
};
inline const CodeNames epilogue_names{"t", "s", "step"}, prologue_names{"p", "q", "load"};

/// The code of one part, epilogue or prologue: what it reads, and what it computes line by line.
class CodeWriter {
 public:
  explicit CodeWriter(const CodeNames& names) : names_(names) {}

  /// A tensor or number that the part reads, as the code calls it.
  std::string tensor(ValueId value);
  std::string number(float value);
  /// `name` = `expression`, for later lines.
  void line(const std::string& name, const std::string& expression);
  /// The name of a function of that body, of inputs called a, b, c and of numbers by their names.
  std::string function(const std::string& body, size_t inputs, const Numbers& numbers);

  /// Adds definitions of functions as they are: their names are those of nothing else.
  void define(const std::string& text) { definitions_ += text; }

  /// Whether an expression of this part alone may read as much.
  bool fits() const;
  const std::vector<ValueId>& tensors() const { return tensors_; }
  std::vector<std::string> tensor_names() const;
  /// The values of the numbers, by name.
  Numbers numbers() const;
  const std::string& functions() const { return definitions_; }
  /// The statements, which return the value of that name.
  std::string statements(const std::string& result) const;

 private:
  CodeNames names_;
  std::vector<ValueId> tensors_;
  std::vector<float> numbers_;
  std::map<std::string, std::string> functions_;
  std::string definitions_, lines_;
};

/// Writes what the stages of a call do to `acc` as a line `v`.
void write_stages(const Call& call, CodeWriter& writer);
/// Takes a call's stages away, with what they read.
void drop_stages(Call& call);

}  // namespace kiln::graph
