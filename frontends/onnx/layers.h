// From one node to what it asks for.
#pragma once

#include <onnx/onnx_pb.h>

#include "kiln/frontends/onnx.h"
#include "onnx/graph.h"
#include "onnx/source.h"

namespace kiln::onnx_frontend {

/// Reads a node of any operation, by itself. Throws Error naming the node.
Layer read_layer(const Graph& graph, const onnx::NodeProto& node, const OnnxOptions& options);

}  // namespace kiln::onnx_frontend
