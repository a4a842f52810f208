// What the references of normalisations share.
#pragma once

#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"

namespace kiln::reference {

inline constexpr double float_max = std::numeric_limits<float>::max();
inline constexpr double unit = 0x1p-24;

/// An operand whose extents of 1 repeat.
class Repeating {
 public:
  Repeating(const TensorSpec& spec, Tensor elements) : extents_(spec.extents), elements_(std::move(elements)) {}

  double operator[](std::span<const int64_t> coordinate) const {
    Coordinate own(coordinate.begin(), coordinate.end());
    for (size_t d = 0; d < own.size(); ++d) own[d] = extents_[d] == 1 ? 0 : own[d];
    return elements_[own];
  }

 private:
  std::vector<int64_t> extents_;
  Tensor elements_;
};

/// A value known to `error`.
inline Expected approximately(double value, double error) {
  Expected result{.value = value, .magnitude = std::fabs(value), .quantum = Expected::no_quantum};
  result.finite_magnitude = result.magnitude;
  result.transcendental = error / unit;
  result.unspecified = std::isnan(error);
  if (std::isinf(error)) result.magnitude = std::numeric_limits<double>::infinity();
  return result;
}

}  // namespace kiln::reference
