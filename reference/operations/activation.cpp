#include "operations/activation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "evaluator.h"

namespace kiln::reference {
namespace {

using enum ActivationMode;

// In units of 2^-24, relative unless said otherwise: CUDA C++ Programming Guide, "Mathematical Functions", gives expf,
// tanhf and log1pf 2 ulp or less, expm1f 1, normcdff 5; an ulp is at most 2 units.
constexpr double exp_error = 4, log1p_error = 4, expm1_error = 4, tanh_error = 5, normal_error = 12;
constexpr double logistic_error = exp_error + 3;            // of 1 / (1 + e) and e / (1 + e)
constexpr double logistic_slope_error = 3 * exp_error + 2;  // of e / (1 + e)^2
constexpr double mish_gate_error = 3 * exp_error;           // of n / (n + 2)
constexpr double mish_gate_slope_error = 8 * exp_error;     // of 4 e (1 + e) / (n + 2)^2
constexpr double gelu_argument_error = 6;                   // of x (c + d x^2), constants rounded
constexpr double flushed = 0x1p-101;                        // results below 2^-126 may become 0, absolute

constexpr double selu_scale = 1.0507009873554804934193349852946;
constexpr double selu_slope = 1.7580993408473768599402175208123;
constexpr double gelu_linear = 1.5957691216057307117597842397375;  // 2 sqrt(2 / pi)
constexpr double gelu_cubic = 0.044715 * gelu_linear;

double logistic(double t) {
  const double e = std::exp(-std::fabs(t));
  return (t < 0 ? e : 1) / (1 + e);
}

double logistic_slope(double t) {
  const double e = std::exp(-std::fabs(t));
  return e / ((1 + e) * (1 + e));
}

double normal(double x) {
  return 0.5 * std::erfc(-x / std::numbers::sqrt2);
}

// tanh(log(1 + exp(x))) and its derivative, by e = exp(-|x|).
double mish_gate(double x) {
  const double e = std::exp(-std::fabs(x));
  return x < 0 ? e * (e + 2) / (e * (e + 2) + 2) : (1 + 2 * e) / (1 + 2 * e + 2 * e * e);
}

double mish_gate_slope(double x) {
  const double e = std::exp(-std::fabs(x));
  const double d = x < 0 ? e * (e + 2) + 2 : 1 + 2 * e + 2 * e * e;
  return 4 * (1 + e) * (x < 0 ? e : e * e) / (d * d);
}

Approximated exact(double value) {
  return {value, 0};
}

// A result with an error relative to it, which may underflow.
Approximated relative(double value, double error) {
  return {value, error * std::fabs(value) + flushed};
}

// x times what vanishes faster than any x grows.
Approximated gated(double x, const Approximated& gate) {
  if (gate.value == 0) return exact(0);
  return {x * gate.value, std::fabs(x) * (gate.error + std::fabs(gate.value))};
}

// Logistic function of a t that is off by `t_error`.
Approximated approximated_logistic(double t, double t_error) {
  return {logistic(t), logistic_error * logistic(t) + t_error * logistic_slope(t) + flushed};
}

// The value and then its derivative's product with the argument, added up.
Approximated sum(const Approximated& a, const Approximated& b) {
  return {a.value + b.value, a.error + b.error + std::fabs(a.value) + std::fabs(b.value)};
}

double gelu_argument(double x) {
  return x * (gelu_linear + gelu_cubic * x * x);
}

Approximated softplus_of(double x, double slope) {
  const double t = slope * x, tail = std::log1p(std::exp(-std::fabs(t)));
  const double whole = (t < 0 ? 0 : t) + tail;
  const double error = (exp_error + log1p_error) * tail + 2 * whole + std::fabs(t) * logistic(t) + flushed;
  return {whole / slope, error / std::fabs(slope)};
}

Approximated hard_sigmoid_of(double x, const ActivationScalars& n) {
  const double t = n.slope * x + n.offset, error = 2 * (std::fabs(n.slope * x) + std::fabs(n.offset));
  const double value = t < 0 ? 0 : t > 1 ? 1 : t;
  const bool is_flat = t < -error * 0x1p-24 || t > 1 + error * 0x1p-24;
  return {value, is_flat ? 0 : error};
}

double clamped(double x, double low, double high) {
  const double v = x < low ? low : x;
  return v > high ? high : v;
}

Approximated swish_derivative(double x, double slope) {
  const double t = slope * x, s = logistic_slope(t), size = std::fabs(t);
  // The argument is rounded: t s(t) moves by at most |t| (s + |t| s) units.
  const Approximated gate{s, s == 0 ? 0 : (logistic_slope_error + size + 1) * s + flushed};
  return sum(approximated_logistic(t, size), gated(t, gate));
}

Approximated gelu_derivative(double x) {
  const double density = std::exp(-x * x / 2) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
  const Approximated gate{density, (exp_error + 2 + x * x / 2) * density + flushed};
  return sum(relative(normal(x), normal_error), gated(x, gate));
}

Approximated gelu_tanh_derivative(double x) {
  const double t = gelu_argument(x), s = logistic_slope(t), t_error = gelu_argument_error * std::fabs(t);
  const double x_times_slope = x * (gelu_linear + 3 * gelu_cubic * x * x);
  const Approximated gate{s, (logistic_slope_error + gelu_argument_error + 1 + t_error) * s + flushed};
  return sum(approximated_logistic(t, t_error), gated(x_times_slope, gate));
}

Approximated hard_sigmoid_derivative(double x, const ActivationScalars& n) {
  const double t = n.slope * x + n.offset;
  const double error = 2 * (std::fabs(n.slope * x) + std::fabs(n.offset)) * 0x1p-24;
  const bool at_kink = std::fabs(t) <= error || std::fabs(t - 1) <= error;
  if (std::isnan(t)) return exact(t);
  return {t > 0 && t < 1 ? n.slope : 0, 0, at_kink && t != 0 && t != 1};
}

// NaN in, NaN out; and an infinite argument has no rounding.
Approximated checked(double argument, Approximated result) {
  if (std::isnan(argument)) return exact(argument);
  if (!std::isfinite(result.error)) result.error = flushed;
  return result;
}

Approximated function_at(ActivationMode mode, double x, const ActivationScalars& n) {
  switch (mode) {
    case identity:
      return exact(x);
    case relu:
      return exact(x < 0 ? 0 : x);
    case clipped_relu:
      return exact(clamped(x, 0, n.high));
    case clip:
      return exact(clamped(x, n.low, n.high));
    case leaky_relu:
      return x < 0 ? relative(n.slope * x, 1) : exact(x);
    case sigmoid:
      return approximated_logistic(x, 0);
    case tanh:
      return relative(std::tanh(x), tanh_error);
    case elu:
      return x < 0 ? relative(n.slope * std::expm1(x), expm1_error + 2) : exact(x);
    case selu:
      return x < 0 ? relative(selu_slope * std::expm1(x), expm1_error + 3) : relative(selu_scale * x, 3);
    case softplus:
      return softplus_of(x, n.slope);
    case swish:
      return gated(x, approximated_logistic(n.slope * x, std::fabs(n.slope * x)));
    case gelu:
      return gated(x, relative(normal(x), normal_error));
    case gelu_tanh:
      return gated(x, approximated_logistic(gelu_argument(x), gelu_argument_error * std::fabs(gelu_argument(x))));
    case hard_swish:
      return gated(x, {clamped(x + 3, 0, 6) / 6, 4 * clamped(x + 3, 0, 6) / 6});
    case hard_sigmoid:
      return hard_sigmoid_of(x, n);
    case mish:
      return gated(x, relative(mish_gate(x), mish_gate_error));
  }
  return {};
}

Approximated derivative_at(ActivationMode mode, double x, const ActivationScalars& n) {
  switch (mode) {
    case identity:
      return exact(1);
    case relu:
      return exact(x > 0 ? 1 : 0);
    case clipped_relu:
      return exact(x > 0 && x < n.high ? 1 : 0);
    case clip:
      return exact(x >= n.low && x <= n.high ? 1 : 0);
    case leaky_relu:
      return exact(x > 0 ? 1 : n.slope);
    case sigmoid:
      return relative(logistic_slope(x), logistic_slope_error);
    case tanh:
      return relative(4 * logistic_slope(2 * x), logistic_slope_error);
    case elu:
      return x > 0 ? exact(1) : relative(n.slope * std::exp(x), exp_error + 2);
    case selu:
      return x > 0 ? relative(selu_scale, 1) : relative(selu_slope * std::exp(x), exp_error + 3);
    case softplus:
      return approximated_logistic(n.slope * x, std::fabs(n.slope * x));
    case swish:
      return swish_derivative(x, n.slope);
    case gelu:
      return gelu_derivative(x);
    case gelu_tanh:
      return gelu_tanh_derivative(x);
    case hard_swish:
      return x < -3 ? exact(0) : x >= 3 ? exact(1) : Approximated{x / 3 + 0.5, 2 * (std::fabs(x) / 3 + 0.5)};
    case hard_sigmoid:
      return hard_sigmoid_derivative(x, n);
    case mish:
      return sum(relative(mish_gate(x), mish_gate_error),
                 gated(x, relative(mish_gate_slope(x), mish_gate_slope_error)));
  }
  return {};
}

Approximated derivative_told_from(ActivationMode mode, double y, const ActivationScalars& n) {
  switch (mode) {
    case relu:
      return exact(y > 0 ? 1 : 0);
    case clipped_relu:
      return exact(y > 0 && y < n.high ? 1 : 0);
    case leaky_relu:
      return exact(y > 0 ? 1 : n.slope);
    case sigmoid:
      return relative(y * (1 - y), 3);
    case tanh:
      return relative((1 - y) * (1 + y), 4);
    case elu:
      return y > 0 ? exact(1) : relative(y + n.slope, 1);
    case selu:
      return y > 0 ? relative(selu_scale, 1) : Approximated{y + selu_slope, selu_slope + std::fabs(y + selu_slope)};
    case softplus:
      return {-std::expm1(-n.slope * y), (expm1_error + 1) * std::fabs(std::expm1(-n.slope * y)) +
                                             std::fabs(n.slope * y) * std::exp(-n.slope * y) + flushed};
    default:
      return exact(1);
  }
}

// f of what lies within `error` of x: as far off as at the ends, and `inside` for what f may reach between them.
template <class Function>
Approximated near(double x, double error, double inside, const Function& f) {
  Approximated result = f(x);
  if (error == 0 || !std::isfinite(x)) return result;
  if (!std::isfinite(error)) return {.value = result.value, .open = true};
  double moved = 0;
  for (const double end : {x - error, x + error}) {
    const Approximated at = f(end);
    moved = std::max(moved, std::fabs(at.value - result.value));
    result.error = std::max(result.error, at.error);
    result.open = result.open || at.open;
  }
  result.error += (moved + inside) * 0x1p24;
  return result;
}

// Between x - error and x + error, or their kinks, f' moves by f'' error: |f''| is at most 1.76, and slope for elu.
double derivative_moves(double error, const ActivationScalars& scalars) {
  return 2 * error * std::max(1.0, std::fabs(scalars.slope));
}

bool has_jumps_in_derivative(ActivationMode mode) {
  return mode == relu || mode == clipped_relu || mode == clip || mode == leaky_relu || mode == elu || mode == selu ||
         mode == hard_swish || mode == hard_sigmoid;
}

bool is_flat_somewhere(ActivationMode mode) {
  return mode == relu || mode == clipped_relu || mode == clip || mode == hard_swish || mode == hard_sigmoid;
}

}  // namespace

Approximated activated(ActivationMode mode, double x, const ActivationScalars& scalars) {
  return checked(x, function_at(mode, x, scalars));
}

Approximated activation_derivative(ActivationMode mode, double x, const ActivationScalars& scalars) {
  return checked(x, derivative_at(mode, x, scalars));
}

Approximated activation_derivative_from_y(ActivationMode mode, double y, const ActivationScalars& scalars) {
  return checked(y, derivative_told_from(mode, y, scalars));
}

Approximated activation_gradient(ActivationMode mode, const Approximated& derivative, double dy) {
  const bool is_flat = derivative.value == 0 && derivative.error == 0 && !derivative.open;
  if (is_flat && is_flat_somewhere(mode)) return exact(0);
  Approximated result{derivative.value * dy, 0, derivative.open};
  const double size = std::fabs(derivative.value);
  if (std::isfinite(size) && size > std::numeric_limits<float>::max()) result.open = true;  // before dy makes it small
  if (std::isfinite(dy)) {
    const bool is_exact = derivative.error == 0 && (std::fabs(derivative.value) == 1 || derivative.value == 0);
    if (!is_exact) result.error = std::fabs(dy) * derivative.error + std::fabs(result.value) + flushed;
  } else if (std::fabs(derivative.value) <= derivative.error * 0x1p-23) {
    result.open = true;  // infinite, of either sign, or NaN where roundings leave no derivative
  }
  return result;
}

// Between the ends f may have a minimum, which is no further from f(x) than half of f'' error^2: |f''| is at most 1,
// and slope / 2 for swish.
Approximated activated_near(ActivationMode mode, double x, double error, const ActivationScalars& scalars) {
  const double inside = error * error * std::max(1.0, std::fabs(scalars.slope));
  return near(x, error, inside, [&](double at) { return activated(mode, at, scalars); });
}

Approximated activation_derivative_near(ActivationMode mode, double x, double error, const ActivationScalars& scalars) {
  return near(x, error, derivative_moves(error, scalars),
              [&](double at) { return activation_derivative(mode, at, scalars); });
}

Approximated activation_derivative_around(ActivationMode mode, double x, double error,
                                          const ActivationScalars& scalars) {
  if (has_jumps_in_derivative(mode) || !std::isfinite(error))
    return activation_derivative_near(mode, x, error, scalars);
  Approximated result = activation_derivative(mode, x, scalars);
  if (std::isfinite(x)) result.error = 2 * (result.error + derivative_moves(error, scalars) * 0x1p24);
  return result;
}

Expected activated(ActivationMode mode, const Expected& result, double error, const ActivationScalars& scalars) {
  Expected after = expected_of(activated_near(mode, result.value, error, scalars));
  const bool may_be_nan = std::isinf(result.value) && result.finite_magnitude > std::numeric_limits<float>::max();
  after.unspecified = after.unspecified || result.unspecified || result.any_not_finite || may_be_nan;
  return after;
}

Expected expected_of(const Approximated& result) {
  const double size = std::fabs(result.value);
  return {.value = result.value,
          .magnitude = size,
          .finite_magnitude = std::isfinite(size) ? size : 0,
          .quantum = result.error == 0 ? quantum_of(result.value) : Expected::no_quantum,
          .transcendental = result.error,
          .unspecified = result.open};
}

}  // namespace kiln::reference
