// Reference of resize: weights along each axis, from exact positions.
#include "kiln/generator/operations/resize.h"

#include <cmath>
#include <utility>

#include "evaluator.h"
#include "operations/resize_taps.h"

namespace kiln::reference {
namespace {

// The elements of x that an element of y is made of.
class ResizeTaps {
 public:
  ResizeTaps(const Resize& resize, double cubic) : resize_(resize), cubic_(cubic) {}

  ResizeTapsOfAxes of(std::span<const int64_t> coordinate) const {
    ResizeTapsOfAxes axes;
    for (int i = 0; i < resize_.axes(); ++i) {
      axes.push_back(resize_taps(resize_, resize_.axis(i), coordinate[2 + static_cast<size_t>(i)], cubic_));
    }
    return axes;
  }

 private:
  Resize resize_;
  double cubic_;
};

class ResizeEvaluator final : public Oracle::Evaluator {
 public:
  ResizeEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        x_(tensor("x")),
        taps_(Resize::of(request()), static_cast<float>(scalar("cubic"))) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const ResizeTapsOfAxes axes = taps_.of(coordinate);
    int64_t terms = 1;
    for (const std::vector<ResizeTap>& taps : axes) terms *= static_cast<int64_t>(taps.size());
    double copied = 0;  // of one term
    WeightedSum sum;
    for_each_resize_tap(axes, {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double weight, double weight_error) {
                          copied = static_cast<float>(x_[at]);  // as kernels read i32
                          sum.add(copied, weight, weight_error);
                        });
    if (terms == 1) return {.value = copied, .magnitude = std::fabs(copied), .quantum = quantum_of(copied)};
    // Every term is a product, and each is added in at most 12 sums. A row is summed up before its own weight counts.
    return sum.expected(13, 1);
  }

 private:
  Tensor x_;
  ResizeTaps taps_;
};

std::vector<float> slack_of(const slack::Question& asked) {
  const Resize resize = Resize::of(asked.plain);
  return resize_slack(asked, resize.x, resize.y, ResizeTaps(resize, static_cast<float>(asked.number("cubic"))));
}

}  // namespace

Reference resize_reference() {
  return {make_evaluator<ResizeEvaluator>, slack_of};
}

}  // namespace kiln::reference
