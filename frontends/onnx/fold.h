// What layers take into their epilogues.
#pragma once

#include <onnx/onnx_pb.h>

#include <optional>
#include <vector>

#include "kiln/generator/request.h"
#include "onnx/graph.h"
#include "onnx/source.h"

namespace kiln::onnx_frontend {

/// A node, and what it asks for by itself.
struct Reading {
  const onnx::NodeProto* node;
  Layer layer;
};

/// Follows the results of convolutions, products and normalisations through the nodes that their epilogues can do, as
/// read_onnx() states; these leave `readings`, which are in the order of the graph.
void fold(const Graph& graph, std::vector<Reading>& readings);

/// The stage that a Clip node is; nothing if its bounds are not constants. A bound that is left out is infinite.
std::optional<EpilogueStage> clip_stage(const Graph& graph, const onnx::NodeProto& node);

}  // namespace kiln::onnx_frontend
