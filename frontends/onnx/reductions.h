// Reductions of a graph, for the readers of nodes that are made of them.
#pragma once

#include <optional>
#include <vector>

#include "kiln/generator/operations/reduce.h"
#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// `mode` of x along `axes`, with extents of 1 there, in x's dtype or in `y`; behind it the indices, where they are
/// wanted. Neighbouring dimensions of one kind are one, where there are more than calls take.
std::vector<ValueId> reduction(const Node& node, ValueId x, const std::vector<size_t>& axes, ReduceMode mode,
                               bool wants_indices = false, std::optional<DType> y = {});

}  // namespace kiln::onnx_frontend
