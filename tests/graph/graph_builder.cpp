#include "graph_builder.h"

#include <cstring>

#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/generator/operations/tensor_ops.h"

namespace kiln::test {

using graph::Extents;
using graph::Graph;
using graph::ValueId;

TensorSpec spec_of(const Graph& graph, ValueId value) {
  const graph::Value& tensor = graph.value(value);
  return TensorSpec::packed(tensor.dtype, tensor.extents, dimension_letters(static_cast<int>(tensor.extents.size())));
}

ValueId activation(Graph& graph, const std::string& mode, ValueId x, graph::Numbers numbers) {
  Request request;
  request.operation = "activation_forward";
  ActivationForward forward;
  forward.x = forward.y = spec_of(graph, x);
  for (const ActivationMode each : activation_modes()) forward.mode = to_string(each) == mode ? each : forward.mode;
  return graph.call(forward.request(), {{"x", x}}, std::move(numbers)).front().value;
}

ValueId tensor_op(Graph& graph, const std::string& mode, ValueId a, ValueId b) {
  TensorOp op;
  op.a = spec_of(graph, a);
  op.b = spec_of(graph, b);
  for (const TensorOpMode each : tensor_op_modes()) op.mode = to_string(each) == mode ? each : op.mode;
  return graph.call(op.request(), {{"a", a}, {"b", b}}).front().value;
}

ValueId root(Graph& graph, ValueId a) {
  TensorOp op;
  op.a = spec_of(graph, a);
  op.mode = TensorOpMode::sqrt;
  return graph.call(op.request(), {{"a", a}}).front().value;
}

ValueId compared(Graph& graph, ValueId a, ValueId b) {
  TensorOp op;
  op.a = spec_of(graph, a);
  op.b = spec_of(graph, b);
  op.y = op.a;
  op.y.dtype = DType::u8;
  op.mode = TensorOpMode::gt;
  return graph.call(op.request(), {{"a", a}, {"b", b}}).front().value;
}

ValueId conv(Graph& graph, ValueId x, ValueId w) {
  ConvForward forward;
  forward.x = spec_of(graph, x);
  forward.w = spec_of(graph, w);
  return graph.call(forward.request(), {{"x", x}, {"w", w}}).front().value;
}

ValueId norm(Graph& graph, ValueId x, const std::vector<std::vector<float>>& parameters) {
  const auto channels = static_cast<int64_t>(parameters[0].size());
  std::vector<ValueId> values;
  for (const auto& each : parameters) values.push_back(constant(graph, {1, channels, 1, 1}, each));
  NormInference inference;
  inference.x = inference.y = spec_of(graph, x);
  inference.w = inference.b = inference.running_mean = inference.running_variance = spec_of(graph, values[0]);
  return graph
      .call(
          inference.request(),
          {{"x", x}, {"w", values[0]}, {"b", values[1]}, {"running_mean", values[2]}, {"running_variance", values[3]}})
      .front()
      .value;
}

ValueId constant(Graph& graph, Extents extents, const std::vector<float>& elements) {
  auto bytes = std::make_shared<std::vector<std::byte>>(elements.size() * sizeof(float));
  std::memcpy(bytes->data(), elements.data(), bytes->size());
  return graph.constant("constant", DType::f32, std::move(extents), std::move(bytes));
}

ValueId constant(Graph& graph, Extents extents) {
  const auto elements = static_cast<size_t>(graph::count_elements(extents));
  return constant(graph, std::move(extents), std::vector<float>(elements, 1.0F));
}

std::vector<std::string> calls_of(const Graph& graph) {
  std::vector<std::string> calls;
  for (const graph::Node& node : graph.nodes()) {
    const auto* call = std::get_if<graph::Call>(&node);
    if (call == nullptr) continue;
    std::string text = call->request.operation;
    for (const Attribute& attribute : call->request.attributes) {
      const auto* word = std::get_if<std::string>(&attribute.value);
      if (attribute.name == "mode" && word != nullptr && call->request.operation != "conv_forward") text += " " + *word;
    }
    std::string stages;
    for (const EpilogueStage stage : call->request.epilogue) {
      stages += (stages.empty() ? " " : "+") + std::string(to_string(stage));
    }
    calls.push_back(text + stages + (call->request.user_code ? " user" : ""));
  }
  return calls;
}

}  // namespace kiln::test
