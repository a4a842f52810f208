// Reference of pool_backward: for each element of dx, every window that holds it.
#include "kiln/generator/operations/pool_backward.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "evaluator.h"
#include "operations/window.h"

namespace kiln::reference {
namespace {

class PoolBackwardEvaluator final : public Oracle::Evaluator {
 public:
  PoolBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), pool_(PoolBackward::of(request())), dy_(tensor("dy")) {
    if (request().find("x") != nullptr) x_ = tensor("x");
    if (request().find("indices") != nullptr) indices_ = tensor("indices");
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Expected sum;
    for_each_holder(coordinate.subspan(2), [&](const PerAxis& output) {
      const double dy = dy_[Place(coordinate[0], coordinate[1], output, windows_.size())];
      if (pool_.mode == PoolMode::max) {
        if (is_maximum(coordinate, output)) {
          add_term(sum, dy);
        }
      } else {
        add_share(sum, dy, count_of(output));
      }
    });
    if (pool_.mode != PoolMode::max) {
      sum.roundings += 2;  // of each share: its reciprocal, and the product
    }
    return sum;
  }

 private:
  /// Calls visit(output) for every output whose window holds the element at `position`.
  template <class Visit>
  void for_each_holder(std::span<const int64_t> position, Visit visit) const {
    int64_t outputs = 1;
    for (const WindowAxis& axis : windows_) outputs *= axis.outputs;
    for (int64_t i = 0; i < outputs; ++i) {
      PerAxis output{};
      int64_t rest = i;
      bool holds = true;
      for (size_t axis = windows_.size(); axis-- > 0;) {
        output[axis] = rest % windows_[axis].outputs;
        rest /= windows_[axis].outputs;
        const int64_t distance = position[axis] - windows_[axis].position(output[axis], 0);
        holds = holds && distance >= 0 && distance % windows_[axis].dilation == 0 &&
                distance / windows_[axis].dilation < windows_[axis].window;
      }
      if (holds) visit(output);
    }
  }

  /// Whether the element at `coordinate` is what the window's maximum is.
  bool is_maximum(std::span<const int64_t> coordinate, const PerAxis& output) const {
    int64_t here = 0;
    for (size_t axis = 0; axis < windows_.size(); ++axis) here = here * windows_[axis].extent + coordinate[2 + axis];
    if (indices_) {
      return (*indices_)[Place(coordinate[0], coordinate[1], output, windows_.size())] == static_cast<double>(here);
    }
    const Maximum maximum = maximum_of(windows_, output, [&](const PerAxis& position) {
      return (*x_)[Place(coordinate[0], coordinate[1], position, windows_.size())];
    });
    return maximum.position == here;
  }

  /// The elements that the average of a window divides by.
  int64_t count_of(const PerAxis& output) const {
    int64_t inside = 0, with_padding = 0;
    for_each_tap(windows_, output, [&](const Tap& tap) {
      inside += tap.inside ? 1 : 0;
      with_padding += tap.inside_padded ? 1 : 0;
    });
    return pool_.mode == PoolMode::avg ? inside : with_padding;
  }

  static void add_share(Expected& sum, double dy, int64_t count) {
    const int quantum = sum.quantum;
    add_term(sum, dy / static_cast<double>(count));
    if ((count & (count - 1)) != 0 && dy != 0) {
      sum.quantum = std::min(quantum, Expected::no_quantum);  // the kernel's share is a rounded one
    }
  }

  PoolBackward pool_;
  std::vector<WindowAxis> windows_ = axes_of(pool_);
  Tensor dy_;
  std::optional<Tensor> x_, indices_;
};

}  // namespace

Reference pool_backward_reference() {
  return {.evaluator = make_evaluator<PoolBackwardEvaluator>,
          .call = slack::with_given_inputs,
          .filling = filling_of_positions};
}

}  // namespace kiln::reference
