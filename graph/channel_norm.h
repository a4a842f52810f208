// A normalisation over whole channels, or groups of them, as what a convolution's prologue applies.
#pragma once

#include <optional>
#include <vector>

#include "edges.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

/// A norm_forward whose result is x scale + shift, with a scale and a shift for each image and channel of N C and
/// spatial dimensions: instance and group normalisation. It may see its input and its result through reshapes.
struct ChannelNorm {
  size_t call;                 ///< Index of the norm_forward.
  std::optional<size_t> view;  ///< Index of the reshape behind it.
  ValueId source;              ///< The value that is normalised, with the extents of the result.
};

/// The one that makes `value`, which has a spatial dimension at least. Nothing where there is none, or others read what
/// stands between. Its epilogue may be a relu, or code that reads no tensors.
std::optional<ChannelNorm> channel_norm_at(const Graph& graph, const Edges& edges, ValueId value);

/// The same as norm_affine, and views of its results: N C and ones.
struct ScaleAndShift {
  ValueId scale, shift;
  std::vector<Node> nodes;  ///< The call first.
};
ScaleAndShift scale_and_shift(Graph& graph, const ChannelNorm& norm);

}  // namespace kiln::graph
