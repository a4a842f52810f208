// Reference of resize_backward: for each element of x, the elements of y that it is a part of.
#include "kiln/generator/operations/resize_backward.h"

#include <cmath>
#include <utility>

#include "evaluator.h"
#include "operations/resize_taps.h"

namespace kiln::reference {
namespace {

// The elements of y that an element of x is a part of, in their order, as taps of these positions.
class Shares {
 public:
  Shares(const ResizeBackward& resize, double cubic) {
    for (int i = 0; i < resize.axes(); ++i) {
      const ResizeAxis axis = resize.axis(i);
      ResizeTapsOfAxes& elements = axes_.emplace_back(static_cast<size_t>(axis.extent));
      for (int64_t output = 0; output < axis.outputs; ++output) {
        for (const ResizeTap& tap : resize_taps(resize, axis, output, cubic)) {
          add(elements[static_cast<size_t>(tap.position)], {output, tap.weight, tap.error});
        }
      }
    }
  }

  ResizeTapsOfAxes of(std::span<const int64_t> coordinate) const {
    ResizeTapsOfAxes axes;
    for (size_t i = 0; i < axes_.size(); ++i) axes.push_back(axes_[i][static_cast<size_t>(coordinate[2 + i])]);
    return axes;
  }

 private:
  // Elements outside x are those at its ends: their weights count together.
  static void add(std::vector<ResizeTap>& shares, const ResizeTap& share) {
    if (shares.empty() || shares.back().position != share.position) {
      shares.push_back(share);
      return;
    }
    ResizeTap& sum = shares.back();
    sum.weight += share.weight;
    sum.error += share.error + std::fabs(sum.weight);
  }

  std::vector<ResizeTapsOfAxes> axes_;  // by axis and element
};

class ResizeBackwardEvaluator final : public Oracle::Evaluator {
 public:
  ResizeBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        dy_(tensor("dy")),
        shares_(ResizeBackward::of(request()), static_cast<float>(scalar("cubic"))) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const ResizeTapsOfAxes axes = shares_.of(coordinate);
    int64_t terms = 0;
    double copied = 0;  // of one term
    bool is_copy = true;
    WeightedSum sum;
    for_each_resize_tap(axes, {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double weight, double weight_error) {
                          ++terms;
                          copied = dy_[at];
                          is_copy = is_copy && weight == 1 && weight_error == 0;
                          sum.add(copied, weight, weight_error);
                        });
    if (terms <= 1 && is_copy) return {.value = copied, .magnitude = std::fabs(copied)};
    // Every term is a product along each axis, and is in as many sums as there are terms along it.
    double roundings = 3;
    for (const std::vector<ResizeTap>& taps : axes) roundings += static_cast<double>(taps.size());
    return sum.expected(roundings, 2);  // weights of several elements together are below 2
  }

 private:
  Tensor dy_;
  Shares shares_;
};

std::vector<float> resize_backward_slack(const slack::Question& asked) {
  const ResizeBackward resize = ResizeBackward::of(asked.plain);
  return resize_slack(asked, resize.dy, resize.dx, Shares(resize, static_cast<float>(asked.number("cubic"))));
}

}  // namespace

Reference resize_backward_reference() {
  return {make_evaluator<ResizeBackwardEvaluator>, resize_backward_slack};
}

}  // namespace kiln::reference
