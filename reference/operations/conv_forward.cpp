// Reference of conv_forward: the sum of its definition, tap by tap.
#include "kiln/generator/operations/conv_forward.h"

#include <cmath>

#include "evaluator.h"

namespace kiln::reference {
namespace {

class ConvForwardEvaluator final : public Oracle::Evaluator {
 public:
  ConvForwardEvaluator(Request call, const Bindings& bindings)
      : Evaluator(std::move(call), bindings), conv_(ConvForward::of(request())), x_(tensor("x")), w_(tensor("w")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const int64_t n = coordinate[0], k = coordinate[1], p = coordinate[2], q = coordinate[3];
    const int64_t first_channel = k / conv_.k_per_group() * conv_.c_per_group();
    Expected sum;
    for (int64_t c = 0; c < conv_.c_per_group(); ++c) {
      for (int64_t r = 0; r < conv_.r(); ++r) {
        for (int64_t s = 0; s < conv_.s(); ++s) {
          const int64_t h = p * conv_.stride[0] - conv_.pad_begin[0] + r * conv_.dilation[0];
          const int64_t w = q * conv_.stride[1] - conv_.pad_begin[1] + s * conv_.dilation[1];
          const double weight = conv_.mirrored ? w_({k, c, conv_.r() - 1 - r, conv_.s() - 1 - s}) : w_({k, c, r, s});
          if (h >= 0 && h < conv_.h() && w >= 0 && w < conv_.width()) {
            add_term(sum, x_({n, first_channel + c, h, w}) * weight);
          } else if (!std::isfinite(weight)) {
            sum.unspecified = true;  // 0 * weight is NaN, but a kernel may skip padding.
          }
        }
      }
    }
    return sum;
  }

 private:
  ConvForward conv_;
  Tensor x_, w_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> conv_forward_evaluator(Request request, const Bindings& bindings) {
  return std::make_unique<ConvForwardEvaluator>(std::move(request), bindings);
}

}  // namespace kiln::reference
