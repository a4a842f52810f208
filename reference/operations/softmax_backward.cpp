// Reference of softmax_backward: the row's sum, then the formula.
#include "kiln/generator/operations/softmax_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/rows.h"
#include "operations/softmax_row.h"

namespace kiln::reference {
namespace {

constexpr double largest_factor = std::numeric_limits<float>::max();

class SoftmaxBackwardEvaluator final : public RowEvaluator<Expected> {
 public:
  SoftmaxBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : RowEvaluator(std::move(call), bindings, output, "axis"),
        mode_(SoftmaxBackward::of(request()).mode),
        y_(tensor("y")),
        dy_(tensor("dy")) {}

 protected:
  // The sum of y dy, or of dy, with its terms.
  Expected row_at(std::span<const int64_t> coordinate) const override {
    Expected sum;
    for_each_of_row(coordinate, [&](const Coordinate& at) {
      add_term(sum, mode_ == SoftmaxMode::log ? dy_[at] : y_[at] * dy_[at]);
    });
    return sum;
  }

  Expected element(const Expected& sum, std::span<const int64_t> coordinate) const override {
    const double y = y_[coordinate], dy = dy_[coordinate];
    return mode_ == SoftmaxMode::log ? of_log(sum, y, dy) : of_accurate(sum, y, dy);
  }

 private:
  // y (dy - sum): a product in each term, the sum, the difference, a product.
  Expected of_accurate(const Expected& sum, double y, double dy) const {
    Expected difference = sum;
    difference.value = -sum.value;
    add_term(difference, dy);
    Expected result = difference;
    result.value = y * difference.value;
    result.magnitude = std::fabs(y) * difference.magnitude;
    result.finite_magnitude = std::fabs(y) * difference.finite_magnitude;
    result.roundings += 2;
    result.quantum = product_quantum(quantum_of(y), difference.quantum);
    return overflowing_with(result, difference);
  }

  // dy - exp(y) sum: the sum, a product, the difference.
  Expected of_log(const Expected& sum, double y, double dy) const {
    const double exponential = std::exp(y);
    Expected result;
    add_term(result, dy);
    const double scaled = exponential * sum.magnitude;
    result.value -= exponential * sum.value;
    result.magnitude += scaled;
    result.finite_magnitude += exponential * sum.finite_magnitude;
    result.roundings += sum.roundings + 1;
    result.quantum = Expected::no_quantum;
    result.transcendental = scaled == 0 ? 0 : scaled * (exp_error + exp_argument_error * std::fabs(y));
    result.transcendental += flushed * sum.magnitude;
    if (std::isfinite(exponential) && exponential > largest_factor)
      result.magnitude = std::max(result.magnitude, exponential);
    return overflowing_with(result, sum);
  }

  // Where what is multiplied last may overflow f32, so may the result, however small the factor.
  static Expected overflowing_with(Expected result, const Expected& factor) {
    if (factor.finite_magnitude > largest_factor) {
      result.magnitude = std::max(result.magnitude, factor.finite_magnitude);
      result.finite_magnitude = std::max(result.finite_magnitude, factor.finite_magnitude);
    }
    return result;
  }

  static int product_quantum(int a, int b) {
    if (a == Expected::no_quantum || b == Expected::no_quantum) return Expected::no_quantum;
    return std::clamp(a + b, Expected::no_quantum, Expected::quantum_of_zero);
  }

  SoftmaxMode mode_;
  Tensor y_, dy_;
};

}  // namespace

Reference softmax_backward_reference() {
  return {make_evaluator<SoftmaxBackwardEvaluator>, slack::of_softmax_backward};
}

}  // namespace kiln::reference
