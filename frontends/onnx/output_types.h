// Types and extents of what a node gives that is not covered: by ONNX's own inference, and by what the model says.
#pragma once

#include <optional>
#include <vector>

#include "onnx/node.h"

namespace kiln::onnx_frontend {

struct TensorType {
  int32_t type = 0;  ///< As ONNX numbers element types.
  Extents extents;
};

/// Types that ONNX infers for each output of the node from what is known of its inputs; nothing for an output whose
/// type or extents stay open, or where inputs are not known.
std::vector<std::optional<TensorType>> inferred_outputs(const Node& node);

}  // namespace kiln::onnx_frontend
