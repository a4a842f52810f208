// What the parts of prologue_slack() share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/prologue_slack.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference::slack {

using Operands = std::map<std::string, std::span<const std::byte>>;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// What prologue_slack() is asked for, and what the slack of `output` is multiplied by before it is stored.
struct Question {
  const Request& plain;
  const std::string& output;
  const Operands& operands;
  std::span<const float> perturbations;
  const RunValues& values;
  const Sampling& sampling;
  double scale;

  /// The number that the call gives for Operation::scalars()' `name`.
  double number(std::string_view name) const;
};

/// An input that repeats along what it has one element of.
struct Repeating {
  TensorSpec spec;
  std::span<const std::byte> memory;

  Repeating(TensorSpec given, std::span<const std::byte> bytes) : spec(std::move(given)), memory(bytes) {
    for (size_t i = 0; i < spec.extents.size(); ++i) {
      if (spec.extents[i] == 1) spec.strides[i] = 0;
    }
  }
  double at(std::span<const int64_t> coordinate) const { return read(spec, memory, coordinate); }
};

/// A packed f32 operand.
inline std::vector<float> floats_of(const Operands& operands, const std::string& name) {
  const std::span<const std::byte> bytes = operands.at(name);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::copy(bytes.begin(), bytes.end(), std::as_writable_bytes(std::span(values)).begin());
  return values;
}

/// What a perturbation makes of itself times a factor; where the factor is NaN, NaN. An unknown one stays that times 0,
/// too.
inline double times(double perturbation, double factor) {
  return perturbation == 0 ? 0 : std::isinf(perturbation) ? infinity : perturbation * factor;
}

/// As prologue_slack() has it. NaN stands for outputs that are NaN whatever moves.
inline float as_slack(double distance) {
  return std::isnan(distance) ? 0.0F : static_cast<float>(distance);
}

/// How far the outputs of one operation move: prologue_slack(). Where that differs from of_sums(), it stands beside the
/// operation's evaluator, under operations/.
using Answer = std::vector<float> (*)(const Question&);
/// That of the operation.
Answer answer_of(std::string_view operation);

/// What the operation itself makes of the perturbations, with `others` as what it reads besides.
std::vector<float> of_perturbations(const Question& asked, const std::map<std::string, std::vector<std::byte>>& others);
/// The memory of a tensor with the magnitude of each of its elements.
std::vector<std::byte> magnitudes(const TensorSpec& spec, std::span<const std::byte> memory);

/// Of convolutions, products of matrices, pooling, sums and extremes, dropout and copies: with the magnitudes of the
/// other factor. No loss for pooling: an extreme moves by at most the most that one of its elements does. Where the
/// gradient of an extreme goes, or comes from, does not move: that is said by others, which stay as they are.
std::vector<float> of_sums(const Question& asked);
std::vector<float> of_activation(const Question& asked);
std::vector<float> of_activation_backward(const Question& asked);
std::vector<float> of_cross_entropy_forward(const Question& asked);
std::vector<float> of_cross_entropy_backward(const Question& asked);
std::vector<float> of_local_norm_forward(const Question& asked);
std::vector<float> of_local_norm_backward(const Question& asked);
std::vector<float> of_norm_forward(const Question& asked);
std::vector<float> of_norm_backward(const Question& asked);
std::vector<float> of_norm_inference(const Question& asked);
std::vector<float> of_reduce(const Question& asked);
std::vector<float> of_softmax(const Question& asked);
std::vector<float> of_softmax_backward(const Question& asked);
std::vector<float> of_tensor_op(const Question& asked);

}  // namespace kiln::reference::slack
