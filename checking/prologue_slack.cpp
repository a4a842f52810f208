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

namespace kiln::checking {
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
std::vector<float> of_moves(const Question& asked, const std::map<std::string, Memory>& others) {
  Request plain = asked.plain;
  plain.blend.beta = Scale::zero;
  if (plain.operation == "reduce" && has_indices(Reduce::of(plain).mode)) {  // an extreme
    for (Attribute& attribute : plain.attributes) {
      if (attribute.name == "mode") attribute.value = "amax";
    }
  }
  reference::Bindings bindings;
  bindings.alpha = std::fabs(asked.values.alpha);
  bindings.scalars = asked.values.scalars;
  if (plain.operation == "tensor_transform") bindings.scalars = {};  // its padding does not move
  bindings.integers = asked.values.integers;
  bindings.operands[std::string(operation(plain.operation).prologue_operand())] = std::as_bytes(asked.moves);
  for (const auto& [name, memory] : others) bindings.operands[name] = memory;
  const bool full = is_checked_in_full(plain, asked.options);
  return Judge(plain, result_of(plain).name, bindings, full, asked.options.samples, asked.options.seed).magnitudes();
}

// Of convolutions, products of matrices, pooling, sums and extremes, dropout and copies: with the magnitudes of the
// other factor. No loss for pooling: an extreme moves by at most the most that one of its elements does. Where the
// gradient of an extreme goes does not move: that is said by others, which stay as they are.
std::vector<float> of_sums(const Question& asked) {
  const Request& plain = asked.plain;
  std::map<std::string, Memory> factors;
  for (const auto& [name, spec] : plain.operands) {
    if (name == operation(plain.operation).prologue_operand() || is_written(plain, name)) continue;
    const std::span<const std::byte> memory = asked.operands.at(name);
    factors[name] =
        plain.operation == "pool_backward" ? Memory(memory.begin(), memory.end()) : magnitudes(spec, memory);
  }
  return of_moves(asked, factors);
}

std::vector<float> of_reduction(const Question& asked) {
  const ReduceMode mode = Reduce::of(asked.plain).mode;
  const bool multiplies = mode == ReduceMode::mul || mode == ReduceMode::mul_no_zeros;
  return multiplies ? slack::of_product(asked) : of_sums(asked);
}

// With the magnitudes of the scale, around a mean of 0 and without a shift.
std::vector<float> of_inference(const Question& asked) {
  const Operands& operands = asked.operands;
  const auto copy = [&](const std::string& name) { return Memory(operands.at(name).begin(), operands.at(name).end()); };
  std::map<std::string, Memory> others = {{"running_mean", Memory(operands.at("running_mean").size())},
                                          {"running_variance", copy("running_variance")}};
  if (const TensorSpec* w = asked.plain.find("w")) others["w"] = magnitudes(*w, operands.at("w"));
  if (asked.plain.find("b") != nullptr) others["b"] = Memory(operands.at("b").size());
  return of_moves(asked, others);
}

// By no more than the function is steep.
std::vector<float> of_activation(const Question& asked) {
  const double steepest =
      asked.scale * steepest_slope(ActivationForward::of(asked.plain).mode, asked.values.scalars[0]);
  std::vector<float> slack(asked.moves.size());
  std::transform(asked.moves.begin(), asked.moves.end(), slack.begin(), [&](float move) {
    const bool is_known = std::isfinite(move);
    return static_cast<float>(!is_known ? infinity : move == 0 ? 0 : move * steepest);
  });
  return slack;
}

// Linear in dy: the operation on the moves, element by element, of large layers too.
std::vector<float> of_activation_gradient(const Question& asked) {
  CheckOptions options = asked.options;
  options.full_elements = std::numeric_limits<int64_t>::max();
  options.full_flops = infinity;
  const char* const known = asked.plain.find("x") != nullptr ? "x" : "y";
  const std::span<const std::byte> bytes = asked.operands.at(known);
  const Question in_full{asked.plain, asked.output, asked.operands, asked.moves, asked.values, options, asked.scale};
  std::vector<float> slack = of_moves(in_full, {{known, {bytes.begin(), bytes.end()}}});
  for (size_t i = 0; i < slack.size(); ++i)
    slack[i] = asked.moves[i] == 0 ? 0 : slack[i];  // also where the slope is NaN
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

std::vector<float> of_tensor_op(const Question& asked) {
  const TensorOp op = TensorOp::of(asked.plain);
  const Repeating a(op.a, asked.operands.at("a")), move(op.a, std::as_bytes(asked.moves));
  const auto other = [&](const std::optional<TensorSpec>& spec, const char* name) {
    return spec ? std::optional<Repeating>(std::in_place, *spec, asked.operands.at(name)) : std::nullopt;
  };
  const std::optional<Repeating> b = other(op.b, "b"), c = other(op.c, "c");
  std::vector<float> slack;
  reference::for_each_coordinate(op.y, [&](std::span<const int64_t> at) {
    slack.push_back(static_cast<float>(
        asked.scale * tensor_op_move(op.mode, a.at(at), move.at(at), b ? b->at(at) : 0, c ? c->at(at) : 0)));
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
  using Answer = std::vector<float> (*)(const Question&);
  static const std::map<std::string, Answer> answers = {
      {"activation_backward", of_activation_gradient},
      {"activation_forward", of_activation},
      {"cross_entropy_backward", slack::of_cross_entropy_backward},
      {"cross_entropy_forward", slack::of_cross_entropy_forward},
      {"local_norm_backward", slack::of_local_norm_backward},
      {"local_norm_forward", slack::of_local_norm_forward},
      {"norm_backward", slack::of_norm_backward},
      {"norm_forward", slack::of_norm_forward},
      {"norm_inference", of_inference},
      {"reduce", of_reduction},
      {"softmax_backward", slack::of_softmax_backward},
      {"softmax_forward", slack::of_softmax},
      {"tensor_op", of_tensor_op},
  };
  Question asked{plain, output, operands, moves, values, options, 1};
  asked.scale = output_scale(asked);
  if (asked.scale == 0 || std::all_of(moves.begin(), moves.end(), [](float move) { return move == 0; })) {
    return std::vector<float>(static_cast<size_t>(plain.at(output).elements()));
  }
  const auto answer = answers.find(plain.operation);
  return answer == answers.end() ? of_sums(asked) : answer->second(asked);
}

}  // namespace kiln::checking
