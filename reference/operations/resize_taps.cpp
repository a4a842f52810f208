#include "operations/resize_taps.h"

#include <algorithm>
#include <cmath>

namespace kiln::reference {
namespace {

int64_t nearest(const Resizing& resizing, const ResizeAxis& axis, int64_t output) {
  const int64_t before = axis.element_before(output), beyond = axis.beyond(output);
  if (resizing.mode != ResizeMode::nearest) return before;
  switch (resizing.rounding) {
    case ResizeRounding::prefer_floor:
      return before + (2 * beyond > axis.denominator ? 1 : 0);
    case ResizeRounding::prefer_ceil:
      return before + (2 * beyond >= axis.denominator ? 1 : 0);
    case ResizeRounding::floor:
      return before;
    case ResizeRounding::ceil:
      return before + (beyond > 0 ? 1 : 0);
  }
  return before;
}

// The errors are those of t, which is a converted integer times a reciprocal (3 roundings), through each formula.
void add_linear(double t, int64_t before, std::vector<ResizeTap>& taps) {
  const double error = t == 0 ? 0 : 3 * t;
  taps = {{before, 1 - t, t == 0 ? 0 : error + 1}, {before + 1, t, error}};
}

void exclude(const ResizeAxis& axis, std::vector<ResizeTap>& taps) {
  double sum = 0, error = 0;
  for (ResizeTap& tap : taps) {
    if (tap.position < 0 || tap.position >= axis.extent) tap.weight = tap.error = 0;
    sum += tap.weight;
    error += tap.error + std::fabs(tap.weight);
  }
  if (sum == 1 && error <= 1) return;
  for (ResizeTap& tap : taps) {
    if (tap.weight == 0 && tap.error == 0) continue;
    tap.weight /= sum;
    tap.error = (tap.error + std::fabs(tap.weight) * error) / std::fabs(sum) + 2 * std::fabs(tap.weight);
  }
}

}  // namespace

std::vector<ResizeTap> cubic_taps(double t, double a, int64_t before) {
  const double u = 1 - t;
  const auto inner = [&](double distance) { return 1 - distance * distance * (a + 3 - (a + 2) * distance); };
  // |slope| of the outer formulas is at most |a|, of the inner ones at most 1.5; intermediate results are below 4.
  const double outer_error = 9 * std::fabs(a), inner_error = 24;
  std::vector<ResizeTap> taps = {{before - 1, a * t * u * u, outer_error},
                                 {before, inner(t), inner_error},
                                 {before + 1, inner(u), inner_error},
                                 {before + 2, a * u * t * t, outer_error}};
  if (t != 0) return taps;
  for (ResizeTap& tap : taps) tap.error = 0;
  return taps;
}

std::vector<ResizeTap> resize_taps(const Resizing& resizing, const ResizeAxis& axis, int64_t output, double cubic) {
  const int64_t before = axis.element_before(output);
  const double t = static_cast<double>(axis.beyond(output)) / static_cast<double>(axis.denominator);
  std::vector<ResizeTap> taps;
  switch (resizing.taps(axis)) {
    case 1:
      taps = {{nearest(resizing, axis, output), 1, 0}};
      break;
    case 2:
      add_linear(t, before, taps);
      break;
    default:
      taps = cubic_taps(t, cubic, before);
      if (resizing.excludes_outside) exclude(axis, taps);
  }
  for (ResizeTap& tap : taps) tap.position = std::clamp<int64_t>(tap.position, 0, axis.extent - 1);
  return taps;
}

void WeightedSum::add(double element, double weight, double weight_error) {
  // An infinity makes the result open if its weight may as well be 0.
  open_ = open_ || (!std::isfinite(element) && weight_error > 0 && std::fabs(weight) <= weight_error * unit);
  value_ += weight * element;
  magnitude_ += std::fabs(weight * element);
  partial_ += std::fabs(element);
  if (!std::isfinite(element)) return;
  error_ += weight_error * std::fabs(element);
  finite_magnitude_ += std::fabs(weight * element);
  finite_partial_ += std::fabs(element);
}

Expected WeightedSum::expected(double roundings, double most_weight) const {
  const double error = error_ + roundings * (std::isfinite(magnitude_) ? magnitude_ + error_ * unit : 0);
  Expected expected = approximately(value_, error * unit + 0x1p-125);
  expected.magnitude = std::max(expected.magnitude, most_weight * partial_);
  expected.finite_magnitude = std::max(finite_magnitude_, most_weight * finite_partial_);
  expected.unspecified = expected.unspecified || open_;
  return expected;
}

}  // namespace kiln::reference
