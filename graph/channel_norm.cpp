#include "channel_norm.h"

#include <algorithm>
#include <utility>

#include "kiln/generator/operations/norm.h"
#include "rewrite.h"

namespace kiln::graph {
namespace {

/// The call as a norm_affine of the tensors that it reads; nothing where the operation does not take it so.
std::optional<NormAffine> affine_form(const Graph& graph, const Call& call) {
  const std::optional<Request> request = request_of(graph, call);
  if (!request) return std::nullopt;
  const NormForward norm = NormForward::of(*request);
  NormAffine affine;
  affine.x = norm.x;
  affine.w = norm.w;
  affine.b = norm.b;
  affine.axes = norm.axes;
  affine.mode = norm.mode;
  return NormAffine::of(affine.request());
}

/// Whether scale and shift have an element for each image and channel of `extents`: they have the first dimensions of x
/// as they are, and are 1 along all others.
bool is_of_channels(const NormAffine& affine, const Extents& extents) {
  const Extents &x = affine.x.extents, &scale = affine.scale.extents;
  size_t d = 0;
  int64_t elements = 1;
  while (d < x.size() && scale[d] == x[d] && elements < extents[0] * extents[1]) elements *= x[d++];
  return elements == extents[0] * extents[1] &&
         std::all_of(scale.begin() + static_cast<std::ptrdiff_t>(d), scale.end(), [](int64_t e) { return e == 1; });
}

/// Whether a prologue can do what the call does behind the normalisation.
bool has_simple_end(const Call& call) {
  const Request& request = call.request;
  if (request.blend != Blend{} || has_fused_activation(call) || call.outputs.size() != 1) return false;
  if (!request.user_code) {
    return request.epilogue.empty() || request.epilogue == std::vector{EpilogueStage::relu};
  }
  const Expression* code = request.user_code.expression();
  return code != nullptr && code->prologue().empty() && code->tensors().empty();
}

}  // namespace

std::optional<ChannelNorm> channel_norm_at(const Graph& graph, const Edges& edges, ValueId value) {
  const Extents& extents = graph.value(value).extents;
  if (extents.size() < 3 || count_elements(extents) == 0) return std::nullopt;
  ChannelNorm found{};
  ValueId result = value;
  if (const View* view = reshape_at(graph, edges.producer(value))) {
    found.view = edges.producer(value);
    result = view->source;
    if (edges.sole_user(result) != found.view) return std::nullopt;
  }
  const auto index = edges.producer(result);
  const Call* call = index ? std::get_if<Call>(&graph.nodes()[*index]) : nullptr;
  if (call == nullptr || call->request.operation != "norm_forward" || !has_simple_end(*call)) return std::nullopt;
  found.call = *index;
  found.source = find(call->inputs, "x")->value;
  if (graph.value(found.source).extents != extents) {
    const View* view = reshape_at(graph, edges.producer(found.source));
    if (view == nullptr || graph.value(view->source).extents != extents) return std::nullopt;
    found.source = view->source;
  }
  const std::optional<NormAffine> affine = affine_form(graph, *call);
  return affine && is_of_channels(*affine, extents) ? std::optional(found) : std::nullopt;
}

ScaleAndShift scale_and_shift(Graph& graph, const ChannelNorm& norm) {
  const Call& call = std::get<Call>(graph.nodes()[norm.call]);
  const NormAffine affine = affine_form(graph, call).value();
  Call made;
  made.request = affine.request();
  made.request.operands.clear();
  for (const Operand& input : call.inputs) {
    if (input.name == "x" || input.name == "w" || input.name == "b") made.inputs.push_back(input);
  }
  for (const auto& number : call.numbers) {
    if (number.first == "epsilon") made.numbers.push_back(number);
  }
  made.origins = call.origins;
  Extents channels(graph.value(norm.source).extents.size(), 1);
  std::copy_n(graph.value(norm.source).extents.begin(), 2, channels.begin());
  ScaleAndShift result{};
  std::vector<Node> views;
  for (auto [name, to] : {std::pair("scale", &result.scale), std::pair("shift", &result.shift)}) {
    const ValueId stored = graph.add_value({{}, DType::f32, affine.scale.extents});
    made.outputs.push_back({name, stored});
    *to = graph.add_value({{}, DType::f32, channels});
    views.emplace_back(View{Reshape{}, stored, *to});
  }
  result.nodes.emplace_back(std::move(made));
  std::move(views.begin(), views.end(), std::back_inserter(result.nodes));
  return result;
}

}  // namespace kiln::graph
