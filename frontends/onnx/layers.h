// From one node to one request.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <string>
#include <vector>

#include "kiln/frontends/onnx.h"
#include "onnx/graph.h"

namespace kiln::onnx_frontend {

/// A node's request, or why there is none.
struct Layer {
  std::optional<Request> request;
  std::string refusal;
};

/// Reads a node of any operation; `epilogue` is that of a Conv, folded or not. Throws Error naming the node.
Layer read_layer(const Graph& graph, const onnx::NodeProto& node, const std::vector<EpilogueStage>& epilogue,
                 const OnnxOptions& options);

}  // namespace kiln::onnx_frontend
