// Matrix products of a graph, for the readers of nodes that are made of them.
#pragma once

#include <optional>

#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// a b, of matrices with equal batch dimensions or those that repeat. `bias`: one element for each column.
ValueId product(const Node& node, ValueId a, ValueId b, const graph::Numbers& numbers = {},
                std::optional<ValueId> bias = {});

}  // namespace kiln::onnx_frontend
