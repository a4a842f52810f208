// Values with a bound of their error, for operations whose steps build on each other. docs/numerics.md ("Recurrent
// layers") derives the errors.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>

#include "evaluator.h"
#include "operations/norm.h"

namespace kiln::reference {

/// A value, and the most that f32 arithmetic is off it.
struct Bounded {
  static constexpr double unknown = std::numeric_limits<double>::infinity();  ///< An error: f32 may overflow.

  double value = 0, error = 0;

  Expected expected() const { return approximately(value, std::isinf(error) ? std::nan("") : error); }
};

/// A sum of terms that are known to errors of their own, in any order.
class BoundedSum {
 public:
  void add(Bounded term) { add(term, std::fabs(term.value)); }
  /// `magnitude`: of the term where it is rounded, which may be larger than its value.
  void add(Bounded term, double magnitude) {
    value_ += term.value;
    magnitude_ += magnitude;
    error_ += term.error;
    ++terms_;
  }
  /// Adds a product whose factor is exact. No error stays none, and an unknown one unknown, whatever the factor.
  void add(double factor, Bounded other) {
    const double error = std::isinf(other.error) ? Bounded::unknown : std::fabs(factor) * other.error;
    add({factor * other.value, other.error == 0 ? 0 : error});
  }

  /// `of_each`: roundings that each term may add to those of the sum.
  Bounded result(int of_each = 1) const {
    if (std::isfinite(magnitude_) && magnitude_ + error_ > largest_sum) return {value_, Bounded::unknown};
    if (!std::isfinite(value_)) return {value_, std::isinf(error_) ? Bounded::unknown : 0};
    // A product, and its way through the sums; denormal results are off by their distance.
    return {value_, error_ + (of_each * static_cast<double>(terms_) + 1) * (unit * (magnitude_ + error_) + 0x1p-149)};
  }

 private:
  double value_ = 0, magnitude_ = 0, error_ = 0;
  int64_t terms_ = 0;
};

inline Bounded sum_of(std::initializer_list<Bounded> terms) {
  BoundedSum sum;
  for (const Bounded& term : terms) sum.add(term);
  return sum.result();
}

/// -1, 0 or 1; NaN of NaN.
inline double sign_of(double x) {
  return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
}

inline Bounded negative(Bounded x) {
  return {-x.value, x.error};
}

inline Bounded product(Bounded a, Bounded b) {
  const double value = a.value * b.value;
  if (std::isinf(a.error) || std::isinf(b.error)) return {value, Bounded::unknown};
  if (!std::isfinite(value)) return {value, 0};
  const double error = std::fabs(a.value) * b.error + (std::fabs(b.value) + b.error) * a.error;
  if (std::fabs(value) + error > largest_sum) return {value, Bounded::unknown};
  return {value, error + unit * (std::fabs(value) + error) + 0x1p-149};
}

/// f of a value that is known to an error, for an f that never falls and whose own error is `units` of its result.
template <class Function>
Bounded rising(const Function& f, Bounded x, double units) {
  const double value = f(x.value);
  if (std::isinf(x.error) || !std::isfinite(value)) return {value, x.error};
  const double moved = std::max(f(x.value + x.error) - value, value - f(x.value - x.error));
  return {value, moved + units * unit * (std::fabs(value) + moved) + 0x1p-125};
}

inline Bounded bounded_logistic(Bounded x) {
  const auto logistic = [](double value) {
    return value < 0 ? std::exp(value) / (1 + std::exp(value)) : 1 / (1 + std::exp(-value));
  };
  return rising(logistic, x, 8);
}

inline Bounded bounded_tanh(Bounded x) {
  return rising([](double value) { return std::tanh(value); }, x, 4);
}

/// A value that kernels may round to `dtype` before it is multiplied.
inline Bounded as_factor(Bounded x, DType dtype) {
  if (dtype == DType::f32 || !std::isfinite(x.value) || std::isinf(x.error)) return x;
  const DTypeTraits& row = traits(dtype);
  const double most = std::fabs(x.value) + x.error;
  if (most > row.largest) return {x.value, Bounded::unknown};
  return {x.value, x.error + std::ldexp(most, -row.digits) + std::ldexp(1.0, row.least_exponent - row.digits)};
}

}  // namespace kiln::reference
