// Element-wise operations of nodes, as requests are made of them.
#pragma once

#include <vector>

#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "onnx/source.h"

namespace kiln::onnx_frontend {

/// `mode` of the node's first input.
ActivationForward activation_of(const Source& source, ActivationMode mode);

/// `mode` of operands that repeat, as NumPy's do, where an extent is 1. `y`: the dtype of the result.
TensorOp tensor_op_of(const Source& source, TensorOpMode mode, std::vector<TensorSpec> operands, DType y);

}  // namespace kiln::onnx_frontend
