#include "rewrite.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/reference/convert.h"

namespace kiln::graph {

TensorSpec spec_of(const Value& value) {
  Extents extents = value.extents.empty() ? Extents{1} : value.extents;
  const std::string_view letters = dimension_letters(static_cast<int>(extents.size()));
  return TensorSpec::packed(value.dtype, std::move(extents), letters);
}

const std::string* word_of(const Call& call, std::string_view attribute) {
  for (const Attribute& each : call.request.attributes) {
    if (each.name == attribute) return std::get_if<std::string>(&each.value);
  }
  return nullptr;
}

bool is_plain(const Call& call) {
  return call.request.epilogue.empty() && !call.request.user_code && call.request.blend == Blend{} &&
         call.outputs.size() == 1;
}

bool has_fused_activation(const Call& call) {
  const std::string* activation = word_of(call, "activation");
  return activation != nullptr && *activation != "identity";
}

std::optional<Request> request_of(const Graph& graph, const Call& call) {
  Request request = call.request;
  for (const auto* operands : {&call.inputs, &call.outputs}) {
    for (const Operand& operand : *operands) {
      request.operands.push_back({operand.name, spec_of(graph.value(operand.value))});
    }
  }
  try {
    return finished(std::move(request));
  } catch (const Error&) {
    return std::nullopt;
  }
}

bool is_legal(const Graph& graph, const Call& call) {
  return request_of(graph, call).has_value();
}

const View* reshape_at(const Graph& graph, std::optional<size_t> index) {
  const View* view = index ? std::get_if<View>(&graph.nodes()[*index]) : nullptr;
  return view != nullptr && std::holds_alternative<Reshape>(view->kind) ? view : nullptr;
}

std::optional<ValueId> constant_behind(const Graph& graph, const Edges& edges, ValueId id) {
  constexpr int most_views = 256;  // passes ask for each operand of each call
  for (int views = 0; !graph.is_constant(id); ++views) {
    const View* view = reshape_at(graph, edges.producer(id));
    if (view == nullptr || views == most_views) return std::nullopt;
    id = view->source;
  }
  return id;
}

std::optional<float> number_of(const Graph& graph, const Edges& edges, ValueId id) {
  const auto constant = constant_behind(graph, edges, id);
  if (!constant || count_elements(graph.value(*constant).extents) != 1) return std::nullopt;
  return static_cast<float>(reference::load(graph.value(*constant).dtype, graph.bytes(*constant)->data()));
}

bool may_stay_unstored(DType dtype) {
  return is_floating(dtype) && size_of(dtype) > 1;
}

std::vector<double> elements_of(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  const auto size = static_cast<size_t>(size_of(value.dtype));
  std::vector<double> elements(graph.bytes(id)->size() / size);
  for (size_t i = 0; i < elements.size(); ++i) {
    elements[i] = reference::load(value.dtype, graph.bytes(id)->data() + i * size);
  }
  return elements;
}

ValueId constant_of(Graph& graph, DType dtype, Extents extents, const std::vector<double>& elements) {
  const auto size = static_cast<size_t>(size_of(dtype));
  auto bytes = std::make_shared<std::vector<std::byte>>(elements.size() * size);
  for (size_t i = 0; i < elements.size(); ++i) reference::put(dtype, bytes->data() + i * size, elements[i]);
  return graph.constant("folded", dtype, std::move(extents), std::move(bytes));
}

Operand* find(std::vector<Operand>& operands, std::string_view name) {
  const auto found = std::find_if(operands.begin(), operands.end(), [&](const Operand& o) { return o.name == name; });
  return found == operands.end() ? nullptr : &*found;
}

const Operand* find(const std::vector<Operand>& operands, std::string_view name) {
  const auto found = std::find_if(operands.begin(), operands.end(), [&](const Operand& o) { return o.name == name; });
  return found == operands.end() ? nullptr : &*found;
}

void append_origins(std::vector<std::string>& origins, const std::vector<std::string>& more) {
  for (const std::string& origin : more) {
    if (std::find(origins.begin(), origins.end(), origin) == origins.end()) origins.push_back(origin);
  }
}

}  // namespace kiln::graph
