// The inputs that a graph of ONNX declares.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>

#include "kiln/frontends/onnx_inputs.h"

namespace kiln::onnx_frontend {

/// Inputs that have no initial value. `dtype`: storage of floating-point numbers. Throws Error(unsupported) for one
/// that is no tensor, or has elements that Kiln does not have.
OnnxInputs inputs_of(const onnx::GraphProto& graph, std::optional<DType> dtype);

}  // namespace kiln::onnx_frontend
