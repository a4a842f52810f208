#include "affine.h"

#include <cmath>
#include <utility>

#include "rewrite.h"

namespace kiln::graph {
namespace {

/// The constant behind views that only reshape it.
std::optional<ValueId> constant_behind(const Graph& graph, const Edges& edges, ValueId id) {
  while (!graph.is_constant(id)) {
    const auto producer = edges.producer(id);
    const View* view = producer ? std::get_if<View>(&graph.nodes()[*producer]) : nullptr;
    if (view == nullptr || !std::holds_alternative<Reshape>(view->kind)) return std::nullopt;
    id = view->source;
  }
  return id;
}

}  // namespace

std::optional<std::vector<double>> per_channel(const Graph& graph, const Edges& edges, const Call& call,
                                               std::string_view name, int64_t channels, double usual) {
  const Operand* operand = find(call.inputs, name);
  if (operand == nullptr) return std::vector<double>(static_cast<size_t>(channels), usual);
  const auto constant = constant_behind(graph, edges, operand->value);
  if (!constant || count_elements(graph.value(*constant).extents) != channels) return std::nullopt;
  return elements_of(graph, *constant);
}

std::optional<Affine> affine_of(const Graph& graph, const Edges& edges, const Call& call) {
  if (call.request.operation != "norm_inference" || call.request.blend != Blend{}) return std::nullopt;
  const Extents& extents = graph.value(find(call.inputs, "x")->value).extents;
  const int64_t channels = extents.size() > 1 ? extents[1] : 0;
  auto scale = per_channel(graph, edges, call, "w", channels, 1),
       shift = per_channel(graph, edges, call, "b", channels, 0);
  const auto mean = per_channel(graph, edges, call, "running_mean", channels, 0),
             variance = per_channel(graph, edges, call, "running_variance", channels, 1);
  if (!scale || !shift || !mean || !variance) return std::nullopt;
  float epsilon = 1e-5F;
  for (const auto& [name, number] : call.numbers) epsilon = name == "epsilon" ? number : epsilon;
  for (size_t c = 0; c < scale->size(); ++c) {
    (*scale)[c] /= std::sqrt((*variance)[c] + static_cast<double>(epsilon));
    (*shift)[c] -= (*mean)[c] * (*scale)[c];
  }
  return Affine{std::move(*scale), std::move(*shift)};
}

}  // namespace kiln::graph
