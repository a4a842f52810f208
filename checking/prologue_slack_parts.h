// What the parts of prologue_slack() share.
#pragma once

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

#include "kiln/checking/check.h"
#include "kiln/generator/request.h"
#include "kiln/generator/run_values.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::checking::slack {

using Operands = std::map<std::string, std::span<const std::byte>>;

inline constexpr double infinity = std::numeric_limits<double>::infinity();

/// What prologue_slack() is asked for, and what moves of `output` are multiplied by before they are stored.
struct Question {
  const Request& plain;
  const std::string& output;
  const Operands& operands;
  std::span<const float> moves;
  const RunValues& values;
  const CheckOptions& options;
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
  double at(std::span<const int64_t> coordinate) const { return reference::read(spec, memory, coordinate); }
};

/// What a move makes of itself times a factor; where the factor is NaN, NaN. An unknown one stays that times 0, too.
inline double times(double move, double factor) {
  return move == 0 ? 0 : std::isinf(move) ? infinity : move * factor;
}

/// As prologue_slack() has it. NaN stands for outputs that are NaN whatever moves.
inline float as_slack(double move) {
  return std::isnan(move) ? 0.0F : static_cast<float>(move);
}

std::vector<float> of_norm_forward(const Question& asked);
std::vector<float> of_norm_backward(const Question& asked);
std::vector<float> of_local_norm_forward(const Question& asked);
std::vector<float> of_local_norm_backward(const Question& asked);
std::vector<float> of_softmax(const Question& asked);
std::vector<float> of_softmax_backward(const Question& asked);
std::vector<float> of_cross_entropy_forward(const Question& asked);
std::vector<float> of_cross_entropy_backward(const Question& asked);
/// Of `reduce` with mul or mul_no_zeros.
std::vector<float> of_product(const Question& asked);

}  // namespace kiln::checking::slack
