// A row of softmax in double precision, and how far f32 may stray from it: what softmax and cross entropy share.
// docs/numerics.md derives the errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kiln/reference/reference.h"

namespace kiln::reference {

// Errors of f32 exponentials and logarithms, in units of 2^-24.
constexpr double exp_error = 4;           // relative: of ex2.approx, and of expf
constexpr double exp_argument_error = 4;  // relative, for each unit of |x - max|: rounding of the argument
constexpr double log_error = 6;           // relative to 1 + |log|
constexpr double flushed = 0x1p-101;      // results below 2^-126 may become 0: 2^-125 in units of 2^-24

struct SoftmaxRow {
  double maximum = 0;
  double sum = 0;            ///< of exp(x - maximum)
  double mean_distance = 0;  ///< of |x - maximum|, weighted by the exponentials
  int64_t length = 0;

  /// `visit_all(visit)` calls visit(x) for each element.
  template <class VisitAll>
  static SoftmaxRow of(const VisitAll& visit_all) {
    SoftmaxRow row{.maximum = -std::numeric_limits<double>::infinity()};
    visit_all([&](double x) {
      row.maximum = std::isnan(x) || std::isnan(row.maximum) ? std::nan("") : std::max(row.maximum, x);
      ++row.length;
    });
    double weighted = 0;
    visit_all([&](double x) {
      const double distance = row.maximum - x;
      const double exponential = std::exp(-distance);
      row.sum += exponential;
      weighted += exponential == 0 ? 0 : exponential * distance;
    });
    row.mean_distance = weighted / row.sum;
    return row;
  }

  /// Roundings of the sum. A kernel that keeps a running maximum multiplies its partial sum each time the maximum
  /// grows. More often than `rescales` is not granted, as the bound would lose its meaning.
  int64_t sum_roundings() const {
    constexpr int64_t rescales = 128;
    return length + (static_cast<int64_t>(exp_error) + 2) * std::min(length, rescales);
  }

  /// Expected log(softmax(x)) of the element `x`.
  Expected log_probability(double x) const {
    const double distance = maximum - x, log_sum = std::log(sum);
    const double rest = exp_argument_error * mean_distance + log_error * (1 + log_sum) + 2 * distance + log_sum;
    // A relative error of the sum is an absolute one of its logarithm: magnitude 1.
    return {.value = -distance - log_sum,
            .magnitude = 1,
            .roundings = sum_roundings(),
            .quantum = Expected::no_quantum,
            .transcendental = rest};
  }

  /// Expected softmax(x) of the element `x`.
  Expected probability(double x) const {
    const double distance = maximum - x, y = std::exp(-distance) / sum;
    const double argument_error = y == 0 ? 0 : exp_argument_error * (distance + mean_distance);
    // Two roundings more: of the quotient, or of a reciprocal and a product.
    return {.value = y,
            .magnitude = y,
            .roundings = sum_roundings() + 2,
            .quantum = Expected::no_quantum,
            .transcendental = y * (exp_error + argument_error) + flushed};
  }
};

}  // namespace kiln::reference
