#include "onnx/pointwise.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kiln/base/printable.h"
#include "kiln/generator/operation.h"
#include "onnx/readers.h"

namespace kiln::onnx_frontend {
namespace {

constexpr size_t most_dimensions = 5;  // of element-wise operations

/// Operands of a call, of equal rank, and the result's extents, with as many dimensions as calls take.
struct Aligned {
  std::vector<ValueId> operands;
  Extents extents;        // of the call
  Extents whole_extents;  // of the result
};

/// How many dimensions stand together: those along which every operand either has the result's extents or repeats.
std::vector<size_t> groups_of(const std::vector<Extents>& operands, const Extents& result) {
  const auto repeats = [&](const Extents& operand, size_t d) { return operand[d] == 1 && result[d] != 1; };
  std::vector<size_t> groups;
  for (size_t d = 0; d < result.size(); ++d) {
    const bool joins = d > 0 && std::all_of(operands.begin(), operands.end(), [&](const Extents& operand) {
                         return result[d] == 1 || result[d - 1] == 1 || repeats(operand, d) == repeats(operand, d - 1);
                       });
    if (joins) {
      ++groups.back();
    } else {
      groups.push_back(1);
    }
  }
  return groups;
}

Extents grouped(const Extents& extents, const std::vector<size_t>& groups) {
  Extents result;
  size_t d = 0;
  for (const size_t group : groups) {
    int64_t extent = 1;
    for (size_t i = 0; i < group; ++i) extent *= extents[d++];
    result.push_back(extent);
  }
  return result;
}

Aligned aligned(const Node& node, const std::vector<ValueId>& operands) {
  graph::Graph& graph = node.graph();
  std::vector<Extents> all;
  for (const ValueId operand : operands) all.push_back(graph.value(operand).extents);
  Aligned result;
  result.whole_extents = broadcast(node, all);
  const size_t rank = std::max<size_t>(result.whole_extents.size(), 1);
  result.extents = result.whole_extents.empty() ? Extents{1} : result.whole_extents;
  for (size_t i = 0; i < operands.size(); ++i) {
    result.operands.push_back(with_rank(graph, operands[i], rank));
    all[i] = graph.value(result.operands.back()).extents;
  }
  if (rank <= most_dimensions) return result;
  const std::vector<size_t> groups = groups_of(all, result.extents);
  if (groups.size() > most_dimensions) {
    refuse(fmt::format("its operands of {} dimensions repeat in {} groups of them, and up to {} are covered", rank,
                       groups.size(), most_dimensions));
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    result.operands[i] = graph.reshape(result.operands[i], grouped(all[i], groups));
  }
  result.extents = grouped(result.extents, groups);
  return result;
}

/// Kiln's selu has the numbers of its paper, which are the defaults.
bool has_default_numbers(const Node& node) {
  const auto is_near = [&](const char* name, double usual) {
    const double tolerance = 1e-4;  // exporters write 1.6732 too
    return std::abs(node.attributes().real(name).value_or(usual) - usual) <= tolerance;
  };
  return is_near("alpha", 1.6732632) && is_near("gamma", 1.0507010);
}

ActivationMode gelu_of(const Node& node) {
  const std::string approximation = node.attributes().word("approximate", "none");
  if (approximation == "none") return ActivationMode::gelu;
  if (approximation != "tanh")
    node.fail(fmt::format("approximate is '{}', expected none or tanh", printable_name(approximation)));
  return ActivationMode::gelu_tanh;
}

/// Function of a node: `mode` of its inputs, of as many at a time as that takes.
struct Arithmetic {
  TensorOpMode mode;
  int most_inputs;
  bool gives_flags = false;  ///< Its result is boolean.
};

const Arithmetic& arithmetic_of(const std::string& type) {
  using enum TensorOpMode;
  constexpr int any = std::numeric_limits<int>::max();
  static const std::map<std::string, Arithmetic> rules = {
      {"Add", {add, 2}},
      {"Sub", {sub, 2}},
      {"Mul", {mul, 2}},
      {"Div", {div, 2}},
      {"Pow", {pow, 2}},
      {"Sum", {add, any}},
      {"Mean", {add, any}},
      {"Min", {min, any}},
      {"Max", {max, any}},
      {"Equal", {.mode = eq, .most_inputs = 2, .gives_flags = true}},
      {"Less", {.mode = lt, .most_inputs = 2, .gives_flags = true}},
      {"Greater", {.mode = gt, .most_inputs = 2, .gives_flags = true}},
      {"LessOrEqual", {.mode = le, .most_inputs = 2, .gives_flags = true}},
      {"GreaterOrEqual", {.mode = ge, .most_inputs = 2, .gives_flags = true}},
      {"And", {.mode = min, .most_inputs = 2, .gives_flags = true}},
      {"Or", {.mode = max, .most_inputs = 2, .gives_flags = true}},
      {"Xor", {.mode = ne, .most_inputs = 2, .gives_flags = true}},
      {"Not", {.mode = logical_not, .most_inputs = 1, .gives_flags = true}},
      {"Sqrt", {sqrt, 1}},
      {"Exp", {exp, 1}},
      {"Log", {log, 1}},
      {"Abs", {abs, 1}},
      {"Neg", {neg, 1}},
  };
  return rules.at(type);
}

/// Functions of one element that no operation has, as code. CUDA's own functions are within a few units in the last
/// place of f32.
const std::map<std::string, std::string>& functions() {
  static const std::map<std::string, std::string> all = {
      {"Reciprocal", "1.0f / acc"}, {"Softsign", "acc / (1.0f + fabsf(acc))"},
      {"Erf", "erff(acc)"},         {"Sin", "sinf(acc)"},
      {"Cos", "cosf(acc)"},         {"Tan", "tanf(acc)"},
      {"Asin", "asinf(acc)"},       {"Acos", "acosf(acc)"},
      {"Atan", "atanf(acc)"},       {"Sinh", "sinhf(acc)"},
      {"Cosh", "coshf(acc)"},       {"Asinh", "asinhf(acc)"},
      {"Acosh", "acoshf(acc)"},     {"Atanh", "atanhf(acc)"},
      {"Floor", "floorf(acc)"},     {"Ceil", "ceilf(acc)"},
      {"Round", "rintf(acc)"},      {"Sign", "acc > 0.0f ? 1.0f : acc < 0.0f ? -1.0f : acc"},
  };
  return all;
}

}  // namespace

Extents broadcast(const Node& node, const std::vector<Extents>& extents) {
  Extents result;
  for (const Extents& operand : extents) {
    if (operand.size() > result.size()) result.insert(result.begin(), operand.size() - result.size(), 1);
    const size_t first = result.size() - operand.size();
    for (size_t d = 0; d < operand.size(); ++d) {
      int64_t& extent = result[first + d];
      if (extent != operand[d] && extent != 1 && operand[d] != 1) {
        node.fail(fmt::format("an operand of {} does not fit {}: extents must be equal, or 1 where they repeat",
                              fmt::join(operand, "x"), fmt::join(result, "x")));
      }
      if (extent == 1) extent = operand[d];
    }
  }
  return result;
}

ValueId tensor_op(const Node& node, TensorOpMode mode, const std::vector<ValueId>& operands, DType y,
                  const graph::Numbers& numbers) {
  graph::Graph& graph = node.graph();
  const Aligned at = aligned(node, operands);
  TensorOp op;
  op.mode = mode;
  op.a = spec_of(graph, at.operands[0]);
  if (operands.size() > 1) op.b = spec_of(graph, at.operands[1]);
  if (operands.size() > 2) op.c = spec_of(graph, at.operands[2]);
  op.y = spec_of(y, at.extents);
  std::vector<graph::Operand> inputs;
  for (size_t i = 0; i < operands.size(); ++i) inputs.push_back({std::string(1, "abc"[i]), at.operands[i]});
  const ValueId result = graph.call(op.request(), std::move(inputs), numbers).front().value;
  return graph.reshape(result, at.whole_extents);
}

ValueId activation(const Node& node, ActivationMode mode, ValueId x, const graph::Numbers& numbers) {
  graph::Graph& graph = node.graph();
  const Aligned at = aligned(node, {x});
  ActivationForward forward;
  forward.x = forward.y = spec_of(graph, at.operands[0]);
  forward.mode = mode;
  const ValueId result = graph.call(forward.request(), {{"x", at.operands[0]}}, numbers).front().value;
  return graph.reshape(result, at.whole_extents);
}

ValueId expression(const Node& node, std::string_view code, ValueId x, const std::vector<NamedValue>& tensors, DType y,
                   const graph::Numbers& scalars) {
  graph::Graph& graph = node.graph();
  std::vector<ValueId> operands{x};
  std::vector<std::string> names, scalar_names;
  for (const NamedValue& tensor : tensors) {
    operands.push_back(tensor.value);
    names.push_back(tensor.name);
  }
  for (const auto& [name, number] : scalars) scalar_names.push_back(name);
  Aligned at = aligned(node, operands);
  at.operands[0] = graph.repeat(at.operands[0], at.extents);
  ActivationForward forward;
  forward.x = spec_of(graph, at.operands[0]);
  forward.y = spec_of(y, at.extents);
  forward.mode = ActivationMode::identity;
  const Expression text(code, names, scalar_names);
  std::vector<TensorSpec> specs;
  std::vector<graph::Operand> inputs{{"x", at.operands[0]}};
  for (size_t i = 0; i < text.tensors().size(); ++i) {
    const auto found = std::find(names.begin(), names.end(), text.tensors()[i]) - names.begin();
    const ValueId value = at.operands[1 + static_cast<size_t>(found)];
    specs.push_back(spec_of(graph, value));
    inputs.push_back({user_operand_name(text, i), value});
  }
  const Request request = with_user_code(forward.request(), text, specs);
  return graph.reshape(graph.call(request, std::move(inputs), scalars).front().value, at.whole_extents);
}

ValueId converted(const Node& node, ValueId x, DType y) {
  graph::Graph& graph = node.graph();
  if (graph.value(x).dtype == y) return x;
  const Aligned at = aligned(node, {x});
  TensorTransform transform;
  transform.x = spec_of(graph, at.operands[0]);
  transform.y = spec_of(y, at.extents);
  const ValueId result = graph.call(transform.request(), {{"x", at.operands[0]}}).front().value;
  return graph.reshape(result, at.whole_extents);
}

ValueId constant(const Node& node, DType dtype, double number) {
  return node.constant(fmt::format("{}", number), dtype,
                       HostTensor(onnx::TensorProto::FLOAT, {}, HostTensor::Reals{number}));
}

void read_activation(Node& node) {
  using enum ActivationMode;
  static const std::map<std::string, ActivationMode> modes = {{"Relu", relu},
                                                              {"LeakyRelu", leaky_relu},
                                                              {"Sigmoid", sigmoid},
                                                              {"Tanh", tanh},
                                                              {"Elu", elu},
                                                              {"Selu", selu},
                                                              {"Softplus", softplus},
                                                              {"HardSwish", hard_swish},
                                                              {"Mish", mish},
                                                              {"Swish", swish},
                                                              {"HardSigmoid", hard_sigmoid}};
  node.require_inputs(1, 1);
  const std::string& type = node.type();
  if (node.is_integer(0)) {
    if (type != "Relu") refuse("its elements are integers");
    return node.give(expression(node, "fmaxf(acc, 0.0f)", node.operand(0), {}, node.dtype(0)));
  }
  if (type == "Selu" && !has_default_numbers(node)) {
    const auto alpha = static_cast<float>(node.attributes().real("alpha").value_or(1.6732632));
    const auto gamma = static_cast<float>(node.attributes().real("gamma").value_or(1.0507010));
    return node.give(expression(node, "acc > 0.0f ? scale * acc : scale * (slope * expm1f(acc))", node.operand(0), {},
                                node.dtype(0), {{"slope", alpha}, {"scale", gamma}}));
  }
  graph::Numbers numbers;
  const auto number = [&](const char* name, const char* ours, double usual) {
    numbers.emplace_back(ours, static_cast<float>(node.attributes().real(name).value_or(usual)));
  };
  if (type == "LeakyRelu") number("alpha", "slope", 0.01);
  if (type == "Elu") number("alpha", "slope", 1.0);
  if (type == "Swish") number("alpha", "slope", 1.0);
  if (type == "HardSigmoid") {
    number("alpha", "slope", 0.2);
    number("beta", "offset", 0.5);
  }
  node.give(activation(node, type == "Gelu" ? gelu_of(node) : modes.at(type), node.operand(0), numbers));
}

void read_function(Node& node) {
  node.require_inputs(1, 1);
  if (node.is_integer(0) && node.type() != "Sign") refuse("its elements are integers");
  node.give(expression(node, functions().at(node.type()), node.operand(0), {}, node.dtype(0)));
}

void read_is_nan(Node& node) {
  node.require_inputs(1, 1);
  const ValueId x = node.operand(0);
  node.give_as(onnx::TensorProto::BOOL, tensor_op(node, TensorOpMode::ne, {x, x}, DType::u8));
}

void read_is_inf(Node& node) {
  node.require_inputs(1, 1);
  const bool negative = node.attributes().integer("detect_negative", 1) != 0;
  const bool positive = node.attributes().integer("detect_positive", 1) != 0;
  const char* code = negative && positive ? "isinf(acc) ? 1.0f : 0.0f"
                     : positive           ? "isinf(acc) && acc > 0.0f ? 1.0f : 0.0f"
                     : negative           ? "isinf(acc) && acc < 0.0f ? 1.0f : 0.0f"
                                          : "0.0f";
  node.give_as(onnx::TensorProto::BOOL, expression(node, code, node.operand(0), {}, DType::u8));
}

void read_clip(Node& node) {
  constexpr int64_t first_with_inputs = 11;
  node.require_inputs(1, 3);
  constexpr double infinite = std::numeric_limits<double>::infinity();
  double low = -infinite, high = infinite;
  if (node.opset() < first_with_inputs) {
    low = node.attributes().real("min").value_or(low);
    high = node.attributes().real("max").value_or(high);
  } else {
    const bool computed = (node.has(1) && node.host(1) == nullptr) || (node.has(2) && node.host(2) == nullptr);
    if (computed || node.is_integer(0)) {
      ValueId value = node.operand(0);
      if (node.has(1)) value = tensor_op(node, TensorOpMode::max, {value, node.operand(1)}, node.dtype(0));
      if (node.has(2)) value = tensor_op(node, TensorOpMode::min, {value, node.operand(2)}, node.dtype(0));
      return node.give(value);
    }
    if (node.has(1)) low = node.number(1, "lower bound");
    if (node.has(2)) high = node.number(2, "upper bound");
  }
  constexpr double largest = 3.4028235e38;  // what opset 6 means by a bound that is left out
  if (low == 0 && high >= largest) return node.give(activation(node, ActivationMode::relu, node.operand(0)));
  if (low > high) {  // the upper bound wins, as the definition by min and max says
    return node.give(expression(node, "acc == acc ? high : acc", node.operand(0), {}, node.dtype(0),
                                {{"high", static_cast<float>(high)}}));
  }
  node.give(activation(node, ActivationMode::clip, node.operand(0),
                       {{"low", static_cast<float>(low)}, {"high", static_cast<float>(high)}}));
}

void read_arithmetic(Node& node) {
  const Arithmetic& rule = arithmetic_of(node.type());
  const auto at_once = static_cast<size_t>(inputs_of(rule.mode));
  const bool takes_any = rule.most_inputs > 3;
  node.require_inputs(takes_any ? 1 : rule.most_inputs, rule.most_inputs);
  const DType own = node.dtype(0);
  if (node.type() == "Div" && node.is_integer(0)) {  // rounds towards zero
    return node.give(expression(node, "truncf(acc / divisor)", node.operand(0), {{"divisor", node.operand(1)}}, own));
  }
  const int inputs = node.inputs();
  ValueId value = node.operand(0);
  if (at_once == 1) {
    value = tensor_op(node, rule.mode, {value}, rule.gives_flags ? DType::u8 : own);
  } else {
    for (int i = 1; i < inputs; ++i) {
      graph::Numbers numbers;
      const bool averages = node.type() == "Mean" && i + 1 == inputs;
      if (averages) numbers.emplace_back("alpha", 1.0F / static_cast<float>(inputs));
      value = tensor_op(node, rule.mode, {value, node.operand(i)}, rule.gives_flags ? DType::u8 : own, numbers);
    }
  }
  node.give_as(rule.gives_flags ? int32_t{onnx::TensorProto::BOOL} : node.element_type(0), value);
}

void read_where(Node& node) {
  node.require_inputs(3, 3);
  const ValueId value =
      tensor_op(node, TensorOpMode::select, {node.operand(0), node.operand(1), node.operand(2)}, node.dtype(1));
  node.give_as(node.element_type(1), value);
}

void read_mod(Node& node) {
  node.require_inputs(2, 2);
  const bool as_c = node.attributes().integer("fmod", 0) != 0;
  const char* code = as_c ? "fmodf(acc, divisor)" : "acc - floorf(acc / divisor) * divisor";
  if (!as_c && !node.is_integer(0)) refuse("its elements are no integers, and fmod is 0");
  node.give(expression(node, code, node.operand(0), {{"divisor", node.operand(1)}}, node.dtype(0)));
}

void read_thresholded_relu(Node& node) {
  node.require_inputs(1, 1);
  const auto alpha = static_cast<float>(node.attributes().real("alpha").value_or(1));
  node.give(
      expression(node, "acc > threshold ? acc : 0.0f", node.operand(0), {}, node.dtype(0), {{"threshold", alpha}}));
}

void read_shrink(Node& node) {
  node.require_inputs(1, 1);
  const auto lambda = static_cast<float>(node.attributes().real("lambd").value_or(0.5));
  const auto bias = static_cast<float>(node.attributes().real("bias").value_or(0));
  node.give(expression(node, "acc < -lambda ? acc + bias : acc > lambda ? acc - bias : 0.0f", node.operand(0), {},
                       node.dtype(0), {{"lambda", lambda}, {"bias", bias}}));
}

void read_prelu(Node& node) {
  node.require_inputs(2, 2);
  if (node.rank(1) > node.rank(0)) node.fail("its slope has more dimensions than its input");
  node.give(
      expression(node, "acc < 0.0f ? acc * slope : acc", node.operand(0), {{"slope", node.operand(1)}}, node.dtype(0)));
}

void read_celu(Node& node) {
  node.require_inputs(1, 1);
  const auto alpha = static_cast<float>(node.attributes().real("alpha").value_or(1));
  node.give(expression(node, "acc > 0.0f ? acc : slope * expm1f(acc / slope)", node.operand(0), {}, node.dtype(0),
                       {{"slope", alpha}}));
}

void read_cast(Node& node) {
  const bool is_like = node.type() == "CastLike";
  node.require_inputs(is_like ? 2 : 1, is_like ? 2 : 1);
  const auto type = is_like ? node.element_type(1) : node.type_attribute("to", onnx::TensorProto::UNDEFINED);
  const DType to = node.values().storage_of(type);
  ValueId value = node.as_real(0) && is_floating(to) ? *node.as_real(0) : node.operand(0);
  if (type == onnx::TensorProto::BOOL && node.element_type(0) != type) {
    value = expression(node, "acc != 0.0f ? 1.0f : 0.0f", value, {}, to);
  } else if (is_integer_type(type) && !node.is_integer(0)) {
    value = expression(node, "truncf(acc)", value, {}, to);  // towards zero, as C does
  } else {
    value = converted(node, value, to);
  }
  node.give_as(type, value);
}

}  // namespace kiln::onnx_frontend
