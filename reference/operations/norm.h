// Parts shared by the references of normalisations.
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

/// Argument of an activation behind a normalisation.
struct Normalised {
  double value = 0;
  double error = 0;   ///< Error of f32 arithmetic.
  bool open = false;  ///< Partial results may overflow, or underflow: anything is right.
};

/// (x - mean) inverse w + b + residual. docs/numerics.md derives the error.
inline Normalised normalised(double x, double mean, double inverse, double w, double b, double residual) {
  const double distance = x - mean, xhat = distance * inverse, scaled = w * xhat;
  const double partial = std::fabs(scaled) + std::fabs(b), size = partial + std::fabs(residual);
  for (const double step : {distance, xhat, scaled, partial, size}) {
    if (std::isfinite(step) && std::fabs(step) > float_max) return {.open = true};
  }
  if (std::isinf(w) && xhat != 0 && std::fabs(xhat) < std::numeric_limits<float>::min()) return {.open = true};
  const double error = std::isfinite(size) ? 5 * unit * size + 0x1p-148 * (1 + std::fabs(w)) : 0;
  return {.value = scaled + b + residual, .error = error};
}

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
