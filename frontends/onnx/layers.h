// From one node to what it asks for.
#pragma once

#include <onnx/onnx_pb.h>

#include <vector>

#include "kiln/frontends/onnx.h"
#include "onnx/graph.h"
#include "onnx/source.h"

namespace kiln::onnx_frontend {

/// Reads a node of any operation; `epilogue` is that of a Conv, folded or not. Throws Error naming the node.
Layer read_layer(const Graph& graph, const onnx::NodeProto& node, const std::vector<EpilogueStage>& epilogue,
                 const OnnxOptions& options);

}  // namespace kiln::onnx_frontend
