#include "affine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "rewrite.h"

namespace kiln::graph {
namespace {

int64_t channels_of(const Graph& graph, const Call& norm) {
  const Extents& extents = graph.value(find(norm.inputs, "x")->value).extents;
  return extents.size() > 1 ? extents[1] : 0;
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

bool is_affine(const Graph& graph, const Edges& edges, const Call& call) {
  if (call.request.operation != "norm_inference" || call.request.blend != Blend{}) return false;
  const int64_t channels = channels_of(graph, call);
  constexpr std::array<std::string_view, 4> names = {"w", "b", "running_mean", "running_variance"};
  return std::all_of(names.begin(), names.end(), [&](std::string_view name) {
    const Operand* operand = find(call.inputs, name);
    const auto constant = operand == nullptr ? std::nullopt : constant_behind(graph, edges, operand->value);
    return operand == nullptr || (constant && count_elements(graph.value(*constant).extents) == channels);
  });
}

std::optional<Affine> affine_of(const Graph& graph, const Edges& edges, const Call& call) {
  if (!is_affine(graph, edges, call)) return std::nullopt;
  const int64_t channels = channels_of(graph, call);
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
