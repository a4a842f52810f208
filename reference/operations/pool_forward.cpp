// Reference of pool_forward: every window, element by element.
#include "kiln/generator/operations/pool_forward.h"

#include <cmath>
#include <limits>
#include <vector>

#include "evaluator.h"
#include "operations/window.h"

namespace kiln::reference {
namespace {

/// The quotient of a sum by a count, as one division or as a product with a rounded reciprocal.
void divide(Expected& sum, int64_t count) {
  const bool exact_so_far = sums_are_exact(sum, std::numeric_limits<float>::digits);
  const auto divisor = static_cast<double>(count);
  sum.value /= divisor;
  scale_magnitudes(sum, 1 / divisor);
  if ((count & (count - 1)) == 0) {
    sum.quantum -= std::ilogb(divisor);
  } else {
    sum.roundings = (exact_so_far ? 0 : sum.roundings) + 2;
    sum.quantum = Expected::no_quantum;
  }
}

class PoolForwardEvaluator final : public Oracle::Evaluator {
 public:
  PoolForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), pool_(PoolForward::of(request())), x_(tensor("x")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    if (pool_.mode != PoolMode::max) return average_at(coordinate);
    const Maximum maximum = maximum_of(windows_, coordinate.subspan(2), [&](const PerAxis& position) {
      return x_[Place(coordinate[0], coordinate[1], position, windows_.size())];
    });
    const double value = output_name() == "indices" ? static_cast<double>(maximum.position) : maximum.value;
    return {.value = value, .magnitude = std::fabs(value), .quantum = quantum_of(value)};
  }

 private:
  Expected average_at(std::span<const int64_t> coordinate) const {
    Expected sum;
    int64_t elements = 0, with_padding = 0;
    for_each_tap(windows_, coordinate.subspan(2), [&](const Tap& tap) {
      if (tap.inside) {
        add_term(sum, x_[Place(coordinate[0], coordinate[1], tap.position, windows_.size())]);
        ++elements;
      }
      if (tap.inside_padded) {
        ++with_padding;
      }
    });
    const int64_t count = pool_.mode == PoolMode::avg ? elements : with_padding;
    if (count > 0) {
      divide(sum, count);
    }
    return sum;
  }

  PoolForward pool_;
  std::vector<WindowAxis> windows_ = axes_of(pool_);
  Tensor x_;
};

}  // namespace

Reference pool_forward_reference() {
  return {.evaluator = make_evaluator<PoolForwardEvaluator>, .indices = slack::indices_of_pooling};
}

}  // namespace kiln::reference
