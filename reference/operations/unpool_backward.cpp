// Reference of unpool_backward: dy at the position that each index names.
#include "kiln/generator/operations/unpool_backward.h"

#include <cmath>
#include <vector>

#include "evaluator.h"
#include "operations/window.h"

namespace kiln::reference {
namespace {

class UnpoolBackwardEvaluator final : public Oracle::Evaluator {
 public:
  UnpoolBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        unpool_(UnpoolBackward::of(request())),
        dy_(tensor("dy")),
        indices_(tensor("indices")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const auto named = static_cast<int64_t>(indices_[coordinate]);
    double value = 0;
    for_each_tap(windows_, coordinate.subspan(2), [&](const Tap& tap) {
      if (!tap.inside) return;
      int64_t number = 0;  // of the tap's position
      for (size_t axis = 0; axis < windows_.size(); ++axis)
        number = number * windows_[axis].extent + tap.position[axis];
      if (number == named) value = dy_[Place(coordinate[0], coordinate[1], tap.position, windows_.size())];
    });
    return {.value = value, .magnitude = std::fabs(value), .quantum = quantum_of(value)};
  }

 private:
  UnpoolBackward unpool_;
  std::vector<WindowAxis> windows_ = axes_of(unpool_);
  Tensor dy_, indices_;
};

}  // namespace

Reference unpool_backward_reference() {
  return {.evaluator = make_evaluator<UnpoolBackwardEvaluator>, .filling = filling_of_positions};
}

}  // namespace kiln::reference
