// Reference of conv_backward_filter and local_conv_backward_filter: a tap collects, over all windows that it belongs
// to, the element of x under it times the gradient of the window's output.
#include "kiln/generator/operations/conv_backward_filter.h"

#include <cmath>
#include <vector>

#include "evaluator.h"
#include "operations/window.h"
#include "product_sum.h"

namespace kiln::reference {
namespace {

class ConvBackwardFilterEvaluator final : public Oracle::Evaluator {
 public:
  ConvBackwardFilterEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        conv_(ConvBackwardFilter::of(request())),
        regions_(conv_.regions()),
        cores_(TensorCores::of(request(), bindings, "x", "dy")),
        x_(tensor("x")),
        dy_(tensor("dy")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const size_t axes = windows_.size();
    const bool apart = has_regions(conv_.dw, conv_.axes());
    const int64_t region = apart ? coordinate[0] : coordinate[0] / conv_.k();
    const int64_t k = apart ? coordinate[1] : coordinate[0] % conv_.k();
    const auto filter = coordinate.last(1 + axes);  // c and the tap
    const int64_t channel = k / conv_.k_per_group() * conv_.c_per_group() + filter[0];
    PerAxis tap{};
    int64_t windows = 1;
    for (size_t axis = 0; axis < axes; ++axis) {
      const int64_t number = filter[1 + axis];
      tap[axis] = conv_.mirrored ? windows_[axis].window - 1 - number : number;
      windows *= windows_[axis].outputs;
    }
    ProductSum sum(cores_);
    for (int64_t n = 0; n < conv_.n(); ++n) {
      for (int64_t window = 0; window < windows; ++window) add_window(sum, {region, k, channel, tap}, n, window);
    }
    return sum.finished();
  }

 private:
  // An element of dw, and the channel of x that it is multiplied with.
  struct Element {
    int64_t region, k, channel;
    PerAxis tap;
  };

  void add_window(ProductSum& sum, const Element& element, int64_t n, int64_t window) const {
    const size_t axes = windows_.size();
    PerAxis output{}, position{};
    bool inside = true;
    for (size_t axis = axes; axis-- > 0;) {
      output[axis] = window % windows_[axis].outputs;
      window /= windows_[axis].outputs;
      position[axis] = windows_[axis].position(output[axis], element.tap[axis]);
      inside = inside && windows_[axis].inside(position[axis]);
    }
    if (regions_.region_of(output) != element.region) return;
    const double gradient = dy_[Place(n, element.k, output, axes)];
    if (inside) {
      sum.add(x_[Place(n, element.channel, position, axes)], gradient);
    } else if (!std::isfinite(gradient)) {
      sum.leave_open();  // 0 * gradient is NaN, but a kernel may skip padding.
    }
  }

  ConvBackwardFilter conv_;
  RegionGrid regions_;
  TensorCores cores_;
  std::vector<WindowAxis> windows_ = axes_of(conv_);
  Tensor x_, dy_;
};

}  // namespace

Reference conv_backward_filter_reference() {
  return {make_evaluator<ConvBackwardFilterEvaluator>};
}

Reference local_conv_backward_filter_reference() {
  return conv_backward_filter_reference();
}

}  // namespace kiln::reference
