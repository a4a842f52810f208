// Reference of activation_backward.
#include "evaluator.h"
#include "operations/activation.h"

namespace kiln::reference {
namespace {

class ActivationBackwardEvaluator final : public Oracle::Evaluator {
 public:
  ActivationBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        mode_(ActivationBackward::of(request()).mode),
        from_y_(request().find("x") == nullptr),
        scalars_{scalar("slope"), scalar("offset"), scalar("low"), scalar("high")},
        known_(tensor(from_y_ ? "y" : "x")),
        dy_(tensor("dy")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const double known = known_[coordinate];
    const Approximated derivative =
        from_y_ ? activation_derivative_from_y(mode_, known, scalars_) : activation_derivative(mode_, known, scalars_);
    return expected_of(activation_gradient(mode_, derivative, dy_[coordinate]));
  }

 private:
  ActivationMode mode_;
  bool from_y_;
  ActivationScalars scalars_;
  Tensor known_, dy_;
};

}  // namespace

Reference activation_backward_reference() {
  return {make_evaluator<ActivationBackwardEvaluator>, slack::of_activation_backward};
}

}  // namespace kiln::reference
