// Reference of conv_forward and local_conv_forward: the sum of its definition, tap by tap.
#include "kiln/generator/operations/conv_forward.h"

#include <cmath>
#include <vector>

#include "evaluator.h"
#include "operations/window.h"

namespace kiln::reference {
namespace {

class ConvForwardEvaluator final : public Oracle::Evaluator {
 public:
  ConvForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        conv_(ConvForward::of(request())),
        regions_(conv_.regions()),
        x_(tensor("x")),
        w_(tensor("w")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const int64_t k = coordinate[1];
    const int64_t filter = regions_.region_of(coordinate.subspan(2)) * conv_.k() + k;
    const int64_t first_channel = k / conv_.k_per_group() * conv_.c_per_group();
    std::vector<Tap> taps;
    for_each_tap(windows_, coordinate.subspan(2), [&](const Tap& tap) { taps.push_back(tap); });
    Expected sum;
    for (int64_t c = 0; c < conv_.c_per_group(); ++c) {
      for (const Tap& tap : taps) {
        const double weight = w_[Place(filter, c, conv_.mirrored ? tap.mirrored : tap.number, windows_.size())];
        if (tap.inside) {
          add_term(sum, x_[Place(coordinate[0], first_channel + c, tap.position, windows_.size())] * weight);
        } else if (!std::isfinite(weight)) {
          sum.unspecified = true;  // 0 * weight is NaN, but a kernel may skip padding.
        }
      }
    }
    return sum;
  }

 private:
  ConvForward conv_;
  RegionGrid regions_;
  std::vector<WindowAxis> windows_ = axes_of(conv_);
  Tensor x_, w_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> conv_forward_evaluator(Request request, const Bindings& bindings,
                                                                std::string_view output) {
  return std::make_unique<ConvForwardEvaluator>(std::move(request), bindings, output);
}

}  // namespace kiln::reference
