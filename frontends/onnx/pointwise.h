// Element-wise calls of a graph, with operands that repeat as NumPy's do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "onnx/node.h"

namespace kiln::onnx_frontend {

/// The extents that operands of `extents` have together. Throws Error(parse_error) naming the node.
Extents broadcast(const Node& node, const std::vector<Extents>& extents);

/// `mode` of the operands; `y`: the dtype of the result.
ValueId tensor_op(const Node& node, TensorOpMode mode, const std::vector<ValueId>& operands, DType y,
                  const graph::Numbers& numbers = {});

ValueId activation(const Node& node, ActivationMode mode, ValueId x, const graph::Numbers& numbers = {});

/// A tensor that code of an expression() reads, by its name there.
struct NamedValue {
  std::string name;
  ValueId value;
};

/// Result of CUDA code for each element of x, `acc`, and for the elements of further tensors, as docs/user-code.md has
/// it. All repeat.
ValueId expression(const Node& node, std::string_view code, ValueId x, const std::vector<NamedValue>& tensors, DType y,
                   const graph::Numbers& scalars = {});

/// The numbers 0 to `count` - 1 along dimension `axis` of `rank`, as i32.
ValueId positions(const Node& node, int64_t count, size_t axis, size_t rank);

/// The elements of x at `positions`, which are inside, along dimension `axis`.
ValueId taken(const Node& node, ValueId x, size_t axis, const std::vector<int64_t>& positions);

/// Another dtype.
ValueId converted(const Node& node, ValueId x, DType y);

/// One element that holds `number`.
ValueId constant(const Node& node, DType dtype, double number);

}  // namespace kiln::onnx_frontend
