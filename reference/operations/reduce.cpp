// Reference of reduce: the elements of a row one after the other.
#include "kiln/generator/operations/reduce.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "evaluator.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

using enum ReduceMode;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double smallest = std::numeric_limits<float>::min();
constexpr double product_underflow = 0x1p-149;  // of a product

Expected exactly(double value) {
  return {.value = value, .magnitude = std::fabs(value), .quantum = quantum_of(value)};
}

class ReduceEvaluator final : public Oracle::Evaluator {
 public:
  ReduceEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        reduce_(Reduce::of(request())),
        x_(tensor("x")),
        is_axis_(which_are(reduce_.axes, reduce_.x.extents.size())) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    if (output_name() == "indices") return exactly(static_cast<double>(picked(coordinate).second));
    switch (reduce_.mode) {
      case min:
      case max:
      case amax:
        return exactly(picked(coordinate).first);
      case mul:
      case mul_no_zeros:
        return product(coordinate);
      case mean:
        return mean_of(sum(coordinate));
      case norm2:
        return root(sum(coordinate));
      default:
        return sum(coordinate);
    }
  }

 private:
  // Calls visit(x) for every element of the row at `coordinate`, in logical order.
  template <class Visit>
  void for_each(std::span<const int64_t> coordinate, const Visit& visit) const {
    for_each_of_row(reduce_.x, is_axis_, coordinate, [&](const Coordinate& at) {
      visit(static_cast<double>(static_cast<float>(x_[at])));  // as kernels read an element: i32 may round
    });
  }

  Expected sum(std::span<const int64_t> coordinate) const {
    Expected sum;
    for_each(coordinate, [&](double x) {
      const double term = reduce_.mode == norm1 ? std::fabs(x) : reduce_.mode == norm2 ? x * x : x;
      add_term(sum, term);
    });
    if (reduce_.mode == norm2) sum.roundings += 1;  // of a square
    return sum;
  }

  Expected mean_of(Expected sum) const {
    const auto count = static_cast<double>(reduce_.row_length());
    if (count == 0) return sum;
    sum.value /= count;
    scale_magnitudes(sum, 1 / count);
    sum.quantum = Expected::no_quantum;
    sum.roundings += 2;  // of the quotient
    return sum;
  }

  // A relative error of the sum counts half; the root rounds.
  static Expected root(const Expected& squares) {
    Expected result{.value = std::sqrt(squares.value), .roundings = squares.roundings + 1};
    result.magnitude = squares.finite_magnitude > largest_sum ? infinity : result.value;
    result.finite_magnitude = result.magnitude;
    result.quantum = Expected::no_quantum;
    result.transcendental = std::sqrt(static_cast<double>(squares.roundings) * product_underflow) * 0x1p24;
    if (squares.value == 0) return exactly(0);
    return result;
  }

  // Anything is right where a product of some of the elements is beyond f32.
  Expected product(std::span<const int64_t> coordinate) const {
    double value = 1, above = 1, below = 1;
    int64_t factors = 0;
    for_each(coordinate, [&](double x) {
      if (reduce_.mode == mul_no_zeros && x == 0) return;
      value *= x;
      ++factors;
      const double size = std::fabs(x);
      if (std::isfinite(size) && size > 1) above *= size;
      if (size < 1 && size != 0) below *= size;
    });
    Expected result{.value = value, .magnitude = std::fabs(value), .roundings = factors};
    result.quantum = factors <= 1 || value == 0 ? quantum_of(value) : Expected::no_quantum;
    result.unspecified = above > largest_sum || below < smallest;
    return result;
  }

  // The extreme of a row, and where it is.
  std::pair<double, int64_t> picked(std::span<const int64_t> coordinate) const {
    double value = reduce_.mode == min ? infinity : reduce_.mode == max ? -infinity : 0;
    int64_t position = -1, next = 0;
    for_each(coordinate, [&](double x) {
      if (reduce_.mode == amax) x = std::fabs(x);
      const bool better = reduce_.mode == min ? x < value : x > value;
      if (position < 0 || better || (std::isnan(x) && !std::isnan(value))) {
        value = x;
        position = next;
      }
      ++next;
    });
    return {value, position};
  }

  Reduce reduce_;
  Tensor x_;
  std::vector<bool> is_axis_;
};

}  // namespace

Reference reduce_reference() {
  return {make_evaluator<ReduceEvaluator>, slack::of_product, slack::of_reduce, slack::indices_of_reduce};
}

}  // namespace kiln::reference
