// Reference of activation_forward.
#include "evaluator.h"
#include "operations/activation.h"

namespace kiln::reference {
namespace {

class ActivationForwardEvaluator final : public Oracle::Evaluator {
 public:
  ActivationForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        mode_(ActivationForward::of(request()).mode),
        scalars_{scalar("slope"), scalar("offset"), scalar("low"), scalar("high")},
        x_(tensor("x")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const auto as_read = static_cast<float>(x_[coordinate]);  // i32 may round
    return expected_of(activated(mode_, as_read, scalars_));
  }

 private:
  ActivationMode mode_;
  ActivationScalars scalars_;
  Tensor x_;
};

}  // namespace

Reference activation_forward_reference() {
  return {make_evaluator<ActivationForwardEvaluator>, slack::of_activation};
}

}  // namespace kiln::reference
