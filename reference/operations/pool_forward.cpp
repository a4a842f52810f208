// Reference of pool_forward: every window, element by element.
#include "kiln/generator/operations/pool_forward.h"

#include <cmath>
#include <limits>

#include "evaluator.h"

namespace kiln::reference {
namespace {

/// The quotient of a sum by a count, as one division or as a product with a rounded reciprocal. A sum that overflows
/// f32 stays infinite, however small the quotient would be.
void divide(Expected& sum, int64_t count) {
  const bool exact_so_far = sums_are_exact(sum, std::numeric_limits<float>::digits);
  const auto divisor = static_cast<double>(count);
  sum.value /= divisor;
  const auto quotient = [divisor](double magnitude) {
    return magnitude > std::numeric_limits<float>::max() ? std::numeric_limits<double>::infinity()
                                                         : magnitude / divisor;
  };
  sum.magnitude = quotient(sum.magnitude);
  sum.finite_magnitude = quotient(sum.finite_magnitude);
  if ((count & (count - 1)) == 0) {
    sum.quantum -= std::ilogb(divisor);
  } else {
    sum.roundings = (exact_so_far ? 0 : sum.roundings) + 2;
    sum.quantum = Expected::no_quantum;
  }
}

class PoolForwardEvaluator final : public Oracle::Evaluator {
 public:
  PoolForwardEvaluator(Request call, const Bindings& bindings)
      : Evaluator(std::move(call), bindings), pool_(PoolForward::of(request())), x_(tensor("x")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    return pool_.mode == PoolMode::max ? maximum_at(coordinate) : average_at(coordinate);
  }

 private:
  /// Position in x of tap `t` of the window of output `o`, along dimension `d` (0 is h, 1 is w).
  int64_t position(size_t d, int64_t o, int64_t t) const {
    return o * pool_.stride[d] - pool_.pad_begin[d] + t * pool_.dilation[d];
  }
  bool inside(int64_t h, int64_t w) const { return h >= 0 && h < pool_.h() && w >= 0 && w < pool_.width(); }
  bool inside_padded(int64_t h, int64_t w) const {
    return h < pool_.h() + pool_.pad_end[0] && w < pool_.width() + pool_.pad_end[1];
  }

  Expected maximum_at(std::span<const int64_t> coordinate) const {
    double maximum = -std::numeric_limits<double>::infinity();
    for (int64_t r = 0; r < pool_.window[0]; ++r) {
      for (int64_t s = 0; s < pool_.window[1]; ++s) {
        const int64_t h = position(0, coordinate[2], r), w = position(1, coordinate[3], s);
        if (!inside(h, w)) {
          continue;
        }
        const double element = x_({coordinate[0], coordinate[1], h, w});
        if (std::isnan(element) || element > maximum) {
          maximum = element;  // Nothing compares greater than NaN, so NaN stays.
        }
        if (std::isnan(maximum)) {
          break;
        }
      }
      if (std::isnan(maximum)) {
        break;
      }
    }
    return {.value = maximum, .magnitude = std::fabs(maximum), .quantum = quantum_of(maximum)};
  }

  Expected average_at(std::span<const int64_t> coordinate) const {
    Expected sum;
    int64_t elements = 0, with_padding = 0;
    for (int64_t r = 0; r < pool_.window[0]; ++r) {
      for (int64_t s = 0; s < pool_.window[1]; ++s) {
        const int64_t h = position(0, coordinate[2], r), w = position(1, coordinate[3], s);
        if (inside(h, w)) {
          add_term(sum, x_({coordinate[0], coordinate[1], h, w}));
          ++elements;
        }
        if (inside_padded(h, w)) {
          ++with_padding;
        }
      }
    }
    const int64_t count = pool_.mode == PoolMode::avg ? elements : with_padding;
    if (count > 0) {
      divide(sum, count);
    }
    return sum;
  }

  PoolForward pool_;
  Tensor x_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> pool_forward_evaluator(Request request, const Bindings& bindings) {
  return std::make_unique<PoolForwardEvaluator>(std::move(request), bindings);
}

}  // namespace kiln::reference
