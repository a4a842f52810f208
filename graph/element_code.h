// Element-wise calls as CUDA code.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::graph {

/// A call that computes each element of its result from one element of each input.
struct ElementCode {
  /// The body of a function of the inputs, called a, b, c and so on in the order of `inputs`, and of the numbers by
  /// their names.
  std::string body;
  std::vector<ValueId> inputs;
  Numbers numbers;
};

/// The call as code; nothing if it is of another kind, or its numbers of a class that code does not have.
std::optional<ElementCode> code_of(const Call& call);

}  // namespace kiln::graph
