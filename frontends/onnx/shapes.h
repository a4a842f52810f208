// Extents of every value of a model for one batch.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <optional>

namespace kiln::onnx_frontend {

/// Sets the batch of the model's inputs and infers the shapes of its values, which become value_info of the graph.
/// Without a batch, the model's own stays, and is 1 where it is open. Returns the batch. Throws Error(parse_error) if
/// shapes contradict each other.
int64_t infer_shapes(onnx::ModelProto& model, std::optional<int64_t> batch);

}  // namespace kiln::onnx_frontend
