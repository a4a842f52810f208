#include "onnx/pointwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "onnx/attributes.h"
#include "onnx/fold.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

/// Kiln's selu has the numbers of its paper, which are the defaults.
bool has_default_numbers(const Source& source) {
  const auto is_near = [&](const char* name, double usual) {
    const double tolerance = 1e-4;  // exporters write 1.6732 too
    return std::abs(Attributes(source.node).real(name).value_or(usual) - usual) <= tolerance;
  };
  return is_near("alpha", 1.6732632) && is_near("gamma", 1.0507010);
}

ActivationMode gelu_of(const Source& source) {
  const std::string approximation = Attributes(source.node).word("approximate", "none");
  if (approximation == "none") return ActivationMode::gelu;
  if (approximation != "tanh") fail(source, fmt::format("approximate is '{}', expected none or tanh", approximation));
  return ActivationMode::gelu_tanh;
}

/// What a node computes: `mode` of its inputs, of as many at a time as that takes.
struct Arithmetic {
  TensorOpMode mode;
  int most_inputs;
  bool gives_flags = false;  ///< Its result is boolean.
  bool averages = false;     ///< Its sum is over the number of inputs: the last call's alpha.
};

const Arithmetic& arithmetic_of(const onnx::NodeProto& node) {
  using enum TensorOpMode;
  constexpr int any = std::numeric_limits<int>::max();
  static const std::map<std::string, Arithmetic> rules = {
      {"Add", {add, 2}},
      {"Sub", {sub, 2}},
      {"Mul", {mul, 2}},
      {"Div", {div, 2}},
      {"Pow", {pow, 2}},
      {"Sum", {add, any}},
      {"Mean", {add, any, false, true}},
      {"Min", {min, any}},
      {"Max", {max, any}},
      {"Equal", {eq, 2, true}},
      {"Less", {lt, 2, true}},
      {"Greater", {gt, 2, true}},
      {"LessOrEqual", {le, 2, true}},
      {"GreaterOrEqual", {ge, 2, true}},
      {"And", {min, 2, true}},
      {"Or", {max, 2, true}},
      {"Xor", {ne, 2, true}},
      {"Not", {logical_not, 1, true}},
      {"Sqrt", {sqrt, 1}},
      {"Exp", {exp, 1}},
      {"Log", {log, 1}},
      {"Abs", {abs, 1}},
      {"Neg", {neg, 1}},
      {"Where", {select, 3}},
  };
  return rules.at(node.op_type());
}

Extents broadcast(const Source& source, const std::vector<TensorSpec>& operands) {
  Extents result;
  for (const TensorSpec& operand : operands) {
    if (operand.extents.size() > result.size())
      result.insert(result.begin(), operand.extents.size() - result.size(), 1);
    const size_t first = result.size() - operand.extents.size();
    for (size_t d = 0; d < operand.extents.size(); ++d) {
      int64_t& extent = result[first + d];
      if (extent != operand.extents[d] && extent != 1 && operand.extents[d] != 1) {
        fail(source, fmt::format("an operand of {} does not fit {}: extents must be equal, or 1 where they repeat",
                                 fmt::join(operand.extents, "x"), fmt::join(result, "x")));
      }
      if (extent == 1) extent = operand.extents[d];
    }
  }
  return result;
}

}  // namespace

ActivationForward activation_of(const Source& source, ActivationMode mode) {
  ActivationForward activation;
  activation.x = activation.y = source.operand(0);
  activation.mode = mode;
  activation.dynamic_batch = source.options.dynamic_batch;
  return activation;
}

TensorOp tensor_op_of(const Source& source, TensorOpMode mode, std::vector<TensorSpec> operands, DType y) {
  const Extents extents = broadcast(source, operands);
  (void)count_elements(extents);
  for (TensorSpec& operand : operands) {
    operand = with_batch(source, with_rank(std::move(operand), extents.size()), extents.front());
  }
  TensorOp op;
  op.a = operands.front();
  if (operands.size() > 1) op.b = operands[1];
  if (operands.size() > 2) op.c = operands[2];
  op.y = source.spec(extents, y);
  op.mode = mode;
  op.dynamic_batch = source.options.dynamic_batch;
  return op;
}

Layer read_activation(const Source& source) {
  using enum ActivationMode;
  static const std::map<std::string, ActivationMode> modes = {{"Relu", relu},         {"LeakyRelu", leaky_relu},
                                                              {"Sigmoid", sigmoid},   {"Tanh", tanh},
                                                              {"Elu", elu},           {"Selu", selu},
                                                              {"Softplus", softplus}, {"HardSwish", hard_swish},
                                                              {"Mish", mish},         {"HardSigmoid", hard_sigmoid}};
  require_inputs(source, 1, 1);
  const std::string& type = source.node.op_type();
  if (type == "Selu" && !has_default_numbers(source)) return refused("its alpha and gamma are not those of SELU");
  return asked(activation_of(source, type == "Gelu" ? gelu_of(source) : modes.at(type)).request());
}

Layer read_clip(const Source& source) {
  require_inputs(source, 1, 3);
  const std::optional<EpilogueStage> stage = clip_stage(source.graph, source.node);
  if (!stage) return refused("its bounds are computed");
  const ActivationMode mode = stage == EpilogueStage::relu ? ActivationMode::relu : ActivationMode::clip;
  return asked(activation_of(source, mode).request());
}

Layer read_tensor_op(const Source& source) {
  const Arithmetic& rule = arithmetic_of(source.node);
  const auto at_once = static_cast<size_t>(inputs_of(rule.mode));
  const bool takes_any = rule.most_inputs > 3;
  require_inputs(source, takes_any ? 1 : rule.most_inputs, rule.most_inputs);
  size_t rank = 0;
  for (int i = 0; i < source.node.input_size(); ++i) rank = std::max(rank, source.extents(i).size());
  Layer layer;
  std::vector<TensorSpec> operands;
  for (int i = 0; i < source.node.input_size(); ++i) {
    if (precedes_batch(source, i, rank)) return refused("it puts dimensions before the batch, which is dynamic");
    operands.push_back(source.operand(i));
    if (operands.size() < at_once) continue;
    const DType dtype = rule.gives_flags ? DType::u8 : operands.back().dtype;
    TensorOp op = tensor_op_of(source, rule.mode, std::move(operands), dtype);
    if (rule.averages && i + 1 == source.node.input_size()) op.blend.alpha = Scale::any;
    layer.requests.push_back(op.request());
    operands = {op.y};  // more inputs are taken one by one
  }
  return layer;
}

}  // namespace kiln::onnx_frontend
