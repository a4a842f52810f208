// Calls of small graphs, for tests of passes and schedules.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kiln/graph/graph.h"

namespace kiln::test {

/// A tensor without gaps, as `value` is.
TensorSpec spec_of(const graph::Graph& graph, graph::ValueId value);

graph::ValueId activation(graph::Graph& graph, const std::string& mode, graph::ValueId x, graph::Numbers numbers = {});
graph::ValueId tensor_op(graph::Graph& graph, const std::string& mode, graph::ValueId a, graph::ValueId b);
/// The square root of each element.
graph::ValueId root(graph::Graph& graph, graph::ValueId a);
/// Flags, u8: whether a is above b.
graph::ValueId compared(graph::Graph& graph, graph::ValueId a, graph::ValueId b);
graph::ValueId conv(graph::Graph& graph, graph::ValueId x, graph::ValueId w);
/// norm_inference of x over channels, by constants: w, b, mean and variance of each.
graph::ValueId norm(graph::Graph& graph, graph::ValueId x, const std::vector<std::vector<float>>& parameters);

/// A constant of f32.
graph::ValueId constant(graph::Graph& graph, graph::Extents extents, const std::vector<float>& elements);
graph::ValueId constant(graph::Graph& graph, graph::Extents extents);

/// The calls of a graph, in short: "conv_forward bias+relu", "tensor_op add", "gemm user".
std::vector<std::string> calls_of(const graph::Graph& graph);

}  // namespace kiln::test
