// Reference of resize: weights along each axis, from exact positions.
#include "kiln/generator/operations/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/norm.h"
#include "operations/resize_taps.h"

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

void add_cubic(double t, double a, int64_t before, std::vector<ResizeTap>& taps) {
  const double u = 1 - t;
  const auto inner = [&](double distance) { return 1 - distance * distance * (a + 3 - (a + 2) * distance); };
  // |slope| of the outer formulas is at most |a|, of the inner ones at most 1.5; intermediate results are below 4.
  const double outer_error = 9 * std::fabs(a), inner_error = 24;
  taps = {{before - 1, a * t * u * u, outer_error},
          {before, inner(t), inner_error},
          {before + 1, inner(u), inner_error},
          {before + 2, a * u * t * t, outer_error}};
  if (t != 0) return;
  for (ResizeTap& tap : taps) tap.error = 0;
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

class ResizeEvaluator final : public Oracle::Evaluator {
 public:
  ResizeEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        resize_(Resize::of(request())),
        x_(tensor("x")),
        cubic_(static_cast<float>(scalar("cubic"))) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const std::vector<std::vector<ResizeTap>> axes = resize_taps(resize_, coordinate, cubic_);
    int64_t terms = 1;
    for (const std::vector<ResizeTap>& taps : axes) terms *= static_cast<int64_t>(taps.size());
    double value = 0, magnitude = 0, partial = 0, error = 0;
    bool open = false;
    for_each_resize_tap(
        axes, {coordinate.begin(), coordinate.end()}, [&](const Coordinate& at, double weight, double weight_error) {
          const double element = static_cast<float>(x_[at]);  // as kernels read i32
          // An infinity makes the result open if its weight may as well be 0.
          open = open || (!std::isfinite(element) && weight_error > 0 && std::fabs(weight) <= weight_error * unit);
          value += terms == 1 ? element : weight * element;
          magnitude += std::fabs(weight * element);
          partial += std::fabs(element);  // a row is summed up before its own weight counts
          if (std::isfinite(element)) error += weight_error * std::fabs(element);
        });
    if (terms == 1) return {.value = value, .magnitude = std::fabs(value), .quantum = quantum_of(value)};
    // Every term is a product, and each is added in at most 12 sums.
    constexpr double roundings = 13;
    error += roundings * (std::isfinite(magnitude) ? magnitude + error * unit : 0);
    Expected expected = approximately(value, error * unit + 0x1p-125);
    expected.magnitude = std::max(expected.magnitude, partial);
    expected.finite_magnitude = expected.magnitude;
    expected.unspecified = expected.unspecified || open;
    return expected;
  }

 private:
  Resize resize_;
  Tensor x_;
  double cubic_;
};

// The elements' own moves, each times its weight's magnitude.
std::vector<float> slack_of(const slack::Question& asked) {
  const Resize resize = Resize::of(asked.plain);
  const TensorSpec& x = resize.x;
  const double cubic = static_cast<float>(asked.number("cubic"));
  std::vector<float> slack;
  slack.reserve(static_cast<size_t>(resize.y.elements()));
  for_each_coordinate(resize.y, [&](std::span<const int64_t> coordinate) {
    double moved = 0;
    for_each_resize_tap(resize_taps(resize, coordinate, cubic), {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double weight, double error) {
                          const auto place = static_cast<size_t>(offset_of(x, at));
                          moved += slack::times(asked.perturbations[place], std::fabs(weight) + error * unit);
                        });
    slack.push_back(slack::as_slack(moved * asked.scale));
  });
  return slack;
}

}  // namespace

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
      add_cubic(t, cubic, before, taps);
      if (resizing.excludes_outside) exclude(axis, taps);
  }
  for (ResizeTap& tap : taps) tap.position = std::clamp<int64_t>(tap.position, 0, axis.extent - 1);
  return taps;
}

std::vector<std::vector<ResizeTap>> resize_taps(const Resize& resize, std::span<const int64_t> coordinate,
                                                double cubic) {
  std::vector<std::vector<ResizeTap>> axes;
  for (int i = 0; i < resize.axes(); ++i) {
    axes.push_back(resize_taps(resize, resize.axis(i), coordinate[2 + static_cast<size_t>(i)], cubic));
  }
  return axes;
}

Reference resize_reference() {
  return {make_evaluator<ResizeEvaluator>, slack_of};
}

}  // namespace kiln::reference
