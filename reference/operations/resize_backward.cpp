// Reference of resize_backward: for each element of x, the elements of y that it is a part of.
#include "kiln/generator/operations/resize_backward.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/norm.h"
#include "operations/resize_taps.h"

namespace kiln::reference {
namespace {

// The weight of an element of x in one of y, along one axis.
struct Share {
  int64_t output = 0;
  double weight = 0;
  double error = 0;  // of the weight as kernels compute it in f32, in units of 2^-24
};

// The shares of each element along each axis, in the order of the outputs.
class Shares {
 public:
  Shares(const ResizeBackward& resize, double cubic) {
    for (int i = 0; i < resize.axes(); ++i) {
      const ResizeAxis axis = resize.axis(i);
      std::vector<std::vector<Share>>& elements = axes_.emplace_back(static_cast<size_t>(axis.extent));
      for (int64_t output = 0; output < axis.outputs; ++output) {
        for (const ResizeTap& tap : resize_taps(resize, axis, output, cubic)) {
          add(elements[static_cast<size_t>(tap.position)], output, tap);
        }
      }
    }
  }

  // Calls visit(coordinate in y, weight, error) for each element of y that the one at `coordinate` is a part of.
  template <class Visit>
  void for_each(std::vector<int64_t> coordinate, const Visit& visit, size_t axis = 0, double weight = 1,
                double error = 0) const {
    if (axis == axes_.size()) return visit(coordinate, weight, error);
    for (const Share& share : axes_[axis][static_cast<size_t>(coordinate[2 + axis])]) {
      std::vector<int64_t> at = coordinate;
      at[2 + axis] = share.output;
      const double size = std::fabs(weight), own = std::fabs(share.weight);
      // Error of a product of two: what either errs by, and its own rounding.
      const bool is_product = axis > 0 && size * own != 1;
      const double both = error * (own + share.error * unit) + size * share.error + (is_product ? size * own : 0);
      for_each(std::move(at), visit, axis + 1, weight * share.weight, both);
    }
  }

  // Along all axes together: how many sums an element of y passes.
  double sums(std::span<const int64_t> coordinate) const {
    double count = 0;
    for (size_t i = 0; i < axes_.size(); ++i) {
      count += static_cast<double>(axes_[i][static_cast<size_t>(coordinate[2 + i])].size());
    }
    return count;
  }

 private:
  // Elements outside x are those at its ends: their weights count together.
  static void add(std::vector<Share>& shares, int64_t output, const ResizeTap& tap) {
    if (shares.empty() || shares.back().output != output) {
      shares.push_back({output, tap.weight, tap.error});
      return;
    }
    Share& share = shares.back();
    share.weight += tap.weight;
    share.error += tap.error + std::fabs(share.weight);
  }

  std::vector<std::vector<std::vector<Share>>> axes_;
};

class ResizeBackwardEvaluator final : public Oracle::Evaluator {
 public:
  ResizeBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        dy_(tensor("dy")),
        shares_(ResizeBackward::of(request()), static_cast<float>(scalar("cubic"))) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    double value = 0, magnitude = 0, partial = 0, error = 0;
    int64_t terms = 0;
    bool open = false, is_copy = true;
    shares_.for_each(
        {coordinate.begin(), coordinate.end()}, [&](const Coordinate& at, double weight, double weight_error) {
          const double element = dy_[at];
          // An infinity makes the result open if its weight may as well be 0.
          open = open || (!std::isfinite(element) && weight_error > 0 && std::fabs(weight) <= weight_error * unit);
          is_copy = is_copy && weight == 1 && weight_error == 0;
          value += weight * element;
          magnitude += std::fabs(weight * element);
          partial += 2 * std::fabs(element);  // a row is summed up before its own weight counts; weights are below 2
          if (std::isfinite(element)) error += weight_error * std::fabs(element);
          ++terms;
        });
    if (terms <= 1 && is_copy) return {.value = value, .magnitude = std::fabs(value)};
    // Every term is a product along each axis, and is in that many sums.
    const double roundings = shares_.sums(coordinate) + 3;
    error += roundings * (std::isfinite(magnitude) ? magnitude + error * unit : 0);
    Expected expected = approximately(value, error * unit + 0x1p-125);
    expected.magnitude = std::max(expected.magnitude, partial);
    expected.finite_magnitude = expected.magnitude;
    expected.unspecified = expected.unspecified || open;
    return expected;
  }

 private:
  Tensor dy_;
  Shares shares_;
};

// The elements' own moves, each times its weight's magnitude.
std::vector<float> resize_backward_slack(const slack::Question& asked) {
  const ResizeBackward resize = ResizeBackward::of(asked.plain);
  const Shares shares(resize, static_cast<float>(asked.number("cubic")));
  std::vector<float> slack;
  slack.reserve(static_cast<size_t>(resize.dx.elements()));
  for_each_coordinate(resize.dx, [&](std::span<const int64_t> coordinate) {
    double moved = 0;
    shares.for_each({coordinate.begin(), coordinate.end()}, [&](const Coordinate& at, double weight, double error) {
      const auto place = static_cast<size_t>(offset_of(resize.dy, at));
      moved += slack::times(asked.perturbations[place], std::fabs(weight) + error * unit);
    });
    slack.push_back(slack::as_slack(moved * asked.scale));
  });
  return slack;
}

}  // namespace

Reference resize_backward_reference() {
  return {make_evaluator<ResizeBackwardEvaluator>, resize_backward_slack};
}

}  // namespace kiln::reference
