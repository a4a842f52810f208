// A normalisation by given statistics as a multiplication and an addition for each channel.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "edges.h"
#include "kiln/graph/graph.h"

namespace kiln::graph {

/// x of channel c becomes x * scale[c] + shift[c].
struct Affine {
  std::vector<double> scale, shift;
};

/// Scale and shift of a norm_inference before its epilogue: scale = w / sqrt(variance + epsilon), shift = b - mean *
/// scale. Nothing if `call` is no such call, or a parameter of it is computed.
std::optional<Affine> affine_of(const Graph& graph, const Edges& edges, const Call& call);

/// Whether affine_of() has something to give.
bool is_affine(const Graph& graph, const Edges& edges, const Call& call);

/// The constant operand `name` of a call, an element for each channel; `usual` for each where the call does not have
/// it, and nothing where it is computed or has other extents.
std::optional<std::vector<double>> per_channel(const Graph& graph, const Edges& edges, const Call& call,
                                               std::string_view name, int64_t channels, double usual);

}  // namespace kiln::graph
