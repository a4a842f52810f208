// Reference of conv_backward_bias: the sum of a channel's gradients.
#include "kiln/generator/operations/conv_backward_bias.h"

#include <vector>

#include "evaluator.h"

namespace kiln::reference {
namespace {

class ConvBackwardBiasEvaluator final : public Oracle::Evaluator {
 public:
  ConvBackwardBiasEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), conv_(ConvBackwardBias::of(request())), dy_(tensor("dy")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Expected sum;
    Coordinate at(conv_.dy.extents.size());
    at[1] = coordinate[0];
    for (int64_t n = 0; n < conv_.n(); ++n) {
      at[0] = n;
      for (int64_t pixel = 0; pixel < conv_.pixels(); ++pixel) {
        int64_t rest = pixel;
        for (size_t axis = at.size(); axis-- > 2;) {
          at[axis] = rest % conv_.dy.extents[axis];
          rest /= conv_.dy.extents[axis];
        }
        add_term(sum, dy_[at]);
      }
    }
    return sum;
  }

 private:
  ConvBackwardBias conv_;
  Tensor dy_;
};

}  // namespace

Reference conv_backward_bias_reference() {
  return {make_evaluator<ConvBackwardBiasEvaluator>};
}

}  // namespace kiln::reference
