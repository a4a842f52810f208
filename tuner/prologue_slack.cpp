#include "prologue_slack.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "judge.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/generator/operations/tensor_ops.h"
#include "kiln/reference/tensor_memory.h"
#include "kiln/reference/tensor_op_value.h"
#include "prologue_slack_parts.h"

namespace kiln::tuner {
namespace {

using slack::infinity;
using slack::Operands;
using slack::Question;
using slack::Repeating;
using Memory = std::vector<std::byte>;

double output_scale(const Question& asked) {
  const Scale alpha = blend_of(asked.plain, asked.output).alpha;
  if (alpha != Scale::any) return alpha == Scale::one ? 1 : 0;
  const FurtherBlend* further = further_blend_of(asked.plain, asked.output);
  return std::fabs(further == nullptr ? asked.values.alpha : asked.number(std::string(further->name) + "_alpha"));
}

Memory magnitudes(const TensorSpec& spec, std::span<const std::byte> memory) {
  Memory result(memory.begin(), memory.end());
  reference::for_each_coordinate(spec, [&](std::span<const int64_t> coordinate) {
    reference::write(spec, result, coordinate, std::fabs(reference::read(spec, result, coordinate)));
  });
  return result;
}

// The operation itself, of the moves, with `others` as what it reads besides.
std::vector<float> of_moves(Request plain, const std::map<std::string, Memory>& others, std::span<const float> moves,
                            const RunValues& values, const CheckOptions& options) {
  plain.blend.beta = Scale::zero;
  if (plain.operation == "reduce" && has_indices(Reduce::of(plain).mode)) {  // an extreme
    for (Attribute& attribute : plain.attributes) {
      if (attribute.name == "mode") attribute.value = "amax";
    }
  }
  reference::Bindings bindings;
  bindings.alpha = std::fabs(values.alpha);
  bindings.scalars = values.scalars;
  if (plain.operation == "tensor_transform") bindings.scalars = {};  // its padding does not move
  bindings.integers = values.integers;
  bindings.operands[std::string(operation(plain.operation).prologue_operand())] = std::as_bytes(moves);
  for (const auto& [name, memory] : others) bindings.operands[name] = memory;
  const bool full = is_checked_in_full(plain, options);
  return Judge(plain, result_of(plain).name, bindings, full, options.samples, options.seed).magnitudes();
}

// Of convolutions, products of matrices, pooling, sums and extremes, dropout and copies: with the magnitudes of the
// other factor. No loss for pooling: an extreme moves by at most the most that one of its elements does. Where the
// gradient of an extreme goes does not move: that is said by others, which stay as they are.
std::vector<float> of_sums(const Request& plain, const Operands& operands, std::span<const float> moves,
                           const RunValues& values, const CheckOptions& options) {
  std::map<std::string, Memory> factors;
  for (const auto& [name, spec] : plain.operands) {
    if (name == operation(plain.operation).prologue_operand() || is_written(plain, name)) continue;
    const std::span<const std::byte> memory = operands.at(name);
    factors[name] =
        plain.operation == "pool_backward" ? Memory(memory.begin(), memory.end()) : magnitudes(spec, memory);
  }
  return of_moves(plain, factors, moves, values, options);
}

bool is_product(const Request& plain) {
  if (plain.operation != "reduce") return false;
  const ReduceMode mode = Reduce::of(plain).mode;
  return mode == ReduceMode::mul || mode == ReduceMode::mul_no_zeros;
}

// With the magnitudes of the scale, around a mean of 0 and without a shift.
std::vector<float> of_inference(const Request& plain, const Operands& operands, std::span<const float> moves,
                                const RunValues& values, const CheckOptions& options) {
  const auto copy = [&](const std::string& name) { return Memory(operands.at(name).begin(), operands.at(name).end()); };
  std::map<std::string, Memory> others = {{"running_mean", Memory(operands.at("running_mean").size())},
                                          {"running_variance", copy("running_variance")}};
  if (const TensorSpec* w = plain.find("w")) others["w"] = magnitudes(*w, operands.at("w"));
  if (plain.find("b") != nullptr) others["b"] = Memory(operands.at("b").size());
  return of_moves(plain, others, moves, values, options);
}

// By no more than the function is steep.
std::vector<float> of_activation(const Request& plain, std::span<const float> moves, const RunValues& values,
                                 double scale) {
  const double steepest = scale * steepest_slope(ActivationForward::of(plain).mode, values.scalars[0]);
  std::vector<float> slack(moves.size());
  std::transform(moves.begin(), moves.end(), slack.begin(), [&](float move) {
    const bool is_known = std::isfinite(move);
    return static_cast<float>(!is_known ? infinity : move == 0 ? 0 : move * steepest);
  });
  return slack;
}

// Linear in dy: the operation on the moves, element by element, of large layers too.
std::vector<float> of_activation_gradient(const Request& plain, const Operands& operands, std::span<const float> moves,
                                          const RunValues& values, CheckOptions options) {
  options.full_elements = std::numeric_limits<int64_t>::max();
  options.full_flops = infinity;
  const char* const known = plain.find("x") != nullptr ? "x" : "y";
  const std::span<const std::byte> bytes = operands.at(known);
  std::vector<float> slack = of_moves(plain, {{known, {bytes.begin(), bytes.end()}}}, moves, values, options);
  for (size_t i = 0; i < slack.size(); ++i) slack[i] = moves[i] == 0 ? 0 : slack[i];  // also where the slope is NaN
  return slack;
}

// How far tensor_op's result moves where a moves by no more than `move`. Every mode is monotonic in a between the ends
// of that, 0 (even powers, absolute values, quotients of powers) and b (comparisons), where it may turn, jump or lack a
// value: so the most is at one of these.
double tensor_op_move(TensorOpMode mode, double a, double move, double b, double c) {
  if (move == 0) return 0;
  if (!std::isfinite(move)) return infinity;
  const double value = reference::tensor_op_value(mode, a, b, c);
  double most = 0;
  for (const double at :
       {a - move, a + move, std::fabs(a) <= move ? 0 : a, inputs_of(mode) > 1 && std::fabs(b - a) <= move ? b : a}) {
    const double moved = reference::tensor_op_value(mode, at, b, c);
    if (moved == value || (std::isnan(moved) && std::isnan(value))) continue;
    const double distance = std::fabs(moved - value);
    most = std::isfinite(distance) ? std::max(most, distance) : infinity;
  }
  return most;
}

std::vector<float> of_tensor_op(const Request& plain, const Operands& operands, std::span<const float> moves,
                                double scale) {
  const TensorOp op = TensorOp::of(plain);
  const Repeating a(op.a, operands.at("a")), move(op.a, std::as_bytes(moves));
  const auto other = [&](const std::optional<TensorSpec>& spec, const char* name) {
    return spec ? std::optional<Repeating>(std::in_place, *spec, operands.at(name)) : std::nullopt;
  };
  const std::optional<Repeating> b = other(op.b, "b"), c = other(op.c, "c");
  std::vector<float> slack;
  reference::for_each_coordinate(op.y, [&](std::span<const int64_t> at) {
    slack.push_back(static_cast<float>(
        scale * tensor_op_move(op.mode, a.at(at), move.at(at), b ? b->at(at) : 0, c ? c->at(at) : 0)));
  });
  return slack;
}

}  // namespace

double slack::Question::number(std::string_view name) const {
  const std::vector<ScalarDefinition>& scalars = operation(plain.operation).scalars();
  const auto found =
      std::find_if(scalars.begin(), scalars.end(), [&](const ScalarDefinition& scalar) { return scalar.name == name; });
  return values.scalars.at(static_cast<size_t>(found - scalars.begin()));
}

std::vector<float> prologue_slack(const Request& plain, const std::string& output, const Operands& operands,
                                  std::span<const float> moves, const RunValues& values, const CheckOptions& options) {
  Question asked{plain, output, operands, moves, values, 1};
  const double scale = asked.scale = output_scale(asked);
  if (scale == 0 || std::all_of(moves.begin(), moves.end(), [](float move) { return move == 0; })) {
    return std::vector<float>(static_cast<size_t>(plain.at(output).elements()));
  }
  if (plain.operation == "norm_forward") return slack::of_norm_forward(asked);
  if (plain.operation == "norm_backward") return slack::of_norm_backward(asked);
  if (plain.operation == "local_norm_forward") return slack::of_local_norm_forward(asked);
  if (plain.operation == "local_norm_backward") return slack::of_local_norm_backward(asked);
  if (plain.operation == "norm_inference") return of_inference(plain, operands, moves, values, options);
  if (plain.operation == "activation_forward") return of_activation(plain, moves, values, scale);
  if (plain.operation == "activation_backward") return of_activation_gradient(plain, operands, moves, values, options);
  if (plain.operation == "softmax_forward") return slack::of_softmax(asked);
  if (plain.operation == "softmax_backward") return slack::of_softmax_backward(asked);
  if (plain.operation == "cross_entropy_forward") return slack::of_cross_entropy_forward(asked);
  if (plain.operation == "cross_entropy_backward") return slack::of_cross_entropy_backward(asked);
  if (is_product(plain)) return slack::of_product(asked);
  if (plain.operation == "tensor_op") return of_tensor_op(plain, operands, moves, scale);
  return of_sums(plain, operands, moves, values, options);
}

}  // namespace kiln::tuner
