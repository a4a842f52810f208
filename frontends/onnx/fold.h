// What a convolution takes into its epilogue.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kiln/generator/request.h"
#include "onnx/graph.h"

namespace kiln::onnx_frontend {

/// The epilogue of a Conv node, and the nodes after it that became part of it.
struct Folded {
  std::vector<EpilogueStage> epilogue;
  std::vector<const onnx::NodeProto*> nodes;
};

/// Follows the result of `conv` through the nodes that its epilogue can do, as read_onnx() states. Leaves out nodes in
/// `taken`, which other convolutions have folded.
Folded fold(const Graph& graph, const onnx::NodeProto& conv, const std::set<const onnx::NodeProto*>& taken);

/// The stage that a Clip node is; nothing if its bounds are not constants. A bound that is left out is infinite.
std::optional<EpilogueStage> clip_stage(const Graph& graph, const onnx::NodeProto& node);

/// The epilogue of `conv` by itself: its own bias.
Folded unfolded(const onnx::NodeProto& conv);

}  // namespace kiln::onnx_frontend
