// Parts shared by the sources of prologue_slack().
#pragma once

#include <algorithm>
#include <any>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/prologue_slack.h"

namespace kiln::reference::slack {

using Operands = std::map<std::string, std::span<const std::byte>>;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// The question that prologue_slack() answers, with the factor of the slack of `output` before it is stored.
struct Question {
  const Request& plain;
  const std::string& output;
  const Operands& operands;
  std::span<const float> perturbations;
  const RunValues& values;
  std::any& common;
  double scale;

  /// The number that the call gives for Operation::scalars()' `name`.
  double number(std::string_view name) const;

  /// Values that all outputs of the call are computed from: made for the first of them. One type for each operation.
  template <class T, class Make>
  const T& shared(const Make& make) const {
    if (!common.has_value()) common = make();
    return std::any_cast<const T&>(common);
  }
};

/// A packed f32 operand.
inline std::vector<float> floats_of(const Operands& operands, const std::string& name) {
  const std::span<const std::byte> bytes = operands.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

/// Product of a perturbation and a factor; NaN where the factor is NaN. An unknown perturbation, which is infinite,
/// stays unknown whatever the factor, also 0.
inline double times(double perturbation, double factor) {
  return perturbation == 0 ? 0 : std::isinf(perturbation) ? infinity : perturbation * factor;
}

/// As prologue_slack() has it. NaN stands for outputs that are NaN whatever moves.
inline float as_slack(double distance) {
  return std::isnan(distance) ? 0.0F : static_cast<float>(distance);
}

/// How far an output of one operation moves: prologue_slack(), beside the operation's evaluator, under operations/.
using Answer = std::vector<float> (*)(const Question&);
/// Which call of the operation says it, without the error of that: slack_call().
using Call = std::optional<SlackCall> (*)(const Question&);

/// possible_indices() of operations that have them; something moves.
using Indices = std::map<size_t, std::vector<double>> (*)(const Request& plain, const Operands& operands,
                                                          std::span<const float> perturbations);

/// Call for convolutions, products of matrices, pooling, sums, dropout and copies: with the magnitudes of the other
/// factors, and padding that does not move. No loss for extremes: they move by at most the most that one of their
/// elements does. Indices, which are no factors, stay as they are.
SlackCall with_magnitudes(const Question& asked);
/// Where the other inputs say which elements a gradient goes to: with them as they are.
std::optional<SlackCall> with_given_inputs(const Question& asked);

std::map<size_t, std::vector<double>> indices_of_pooling(const Request& plain, const Operands& operands,
                                                         std::span<const float> perturbations);
std::map<size_t, std::vector<double>> indices_of_reduce(const Request& plain, const Operands& operands,
                                                        std::span<const float> perturbations);
std::optional<SlackCall> of_norm_inference(const Question& asked);
std::optional<SlackCall> of_reduce(const Question& asked);
std::vector<float> of_activation(const Question& asked);
std::vector<float> of_activation_backward(const Question& asked);
std::vector<float> of_cross_entropy_forward(const Question& asked);
std::vector<float> of_cross_entropy_backward(const Question& asked);
std::vector<float> of_local_norm_forward(const Question& asked);
std::vector<float> of_local_norm_backward(const Question& asked);
std::vector<float> of_norm_affine(const Question& asked);
std::vector<float> of_norm_forward(const Question& asked);
std::vector<float> of_norm_backward(const Question& asked);
std::vector<float> of_product(const Question& asked);
std::vector<float> of_softmax(const Question& asked);
std::vector<float> of_softmax_backward(const Question& asked);
std::vector<float> of_tensor_op(const Question& asked);

}  // namespace kiln::reference::slack
