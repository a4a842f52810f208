// Matrix products of a graph, for the readers of nodes that are made of them.
#pragma once

#include <optional>

#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// a b, of matrices with equal batch dimensions or those that repeat, in a's dtype or in `c`. `bias`: one element for
/// each column.
ValueId product(const Node& node, ValueId a, ValueId b, const graph::Numbers& numbers = {},
                std::optional<ValueId> bias = {}, std::optional<DType> c = {});

/// a b, of any dimensions from 1 on, as NumPy's matmul(): a vector is a matrix of one row, or of one column, and those
/// in front of matrices repeat. In a's dtype or in `c`. Throws Error(parse_error) where extents do not fit.
ValueId matrix_product(const Node& node, ValueId a, ValueId b, std::optional<DType> c = {});

}  // namespace kiln::onnx_frontend
