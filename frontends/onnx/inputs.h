// The inputs that a graph of ONNX declares.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>

#include "kiln/frontends/onnx_inputs.h"

namespace kiln::onnx_frontend {

/// Whether the model says this extent. An open one has a name, nothing, or a negative number: PaddlePaddle writes -1.
inline bool has_extent(const onnx::TensorShapeProto::Dimension& dimension) {
  return dimension.has_dim_value() && dimension.dim_value() >= 0;
}

/// Inputs that have no initial value. `dtype`: storage of floating-point numbers. Throws Error(unsupported) for one
/// that is no tensor, or has elements that Kiln does not have.
OnnxInputs inputs_of(const onnx::GraphProto& graph, std::optional<DType> dtype);

}  // namespace kiln::onnx_frontend
