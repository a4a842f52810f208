// Reference of reduce_backward.
#include "kiln/generator/operations/reduce_backward.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "evaluator.h"
#include "operations/bounded.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

using enum ReduceMode;

constexpr double least_normal = std::numeric_limits<float>::min();

Expected with_roundings(double value, int64_t roundings) {
  Expected result{.value = value, .magnitude = std::fabs(value), .roundings = roundings};
  result.quantum = roundings == 0 || value == 0 ? quantum_of(value) : Expected::no_quantum;
  return result;
}

class ReduceBackwardEvaluator final : public Oracle::Evaluator {
 public:
  ReduceBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(ReduceBackward::of(request())),
        is_axis_(which_are(view_.axes, view_.dx.extents.size())),
        dy_(tensor("dy")) {
    if (view_.x) x_ = tensor("x");
    if (view_.y) y_ = tensor("y");
    if (view_.indices) indices_ = tensor("indices");
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Coordinate row(coordinate.begin(), coordinate.end());
    for (const int64_t axis : view_.axes) row[static_cast<size_t>(axis)] = 0;
    const double dy = dy_[row], x = x_ ? (*x_)[coordinate] : 0, y = y_ ? (*y_)[row] : 0;
    switch (view_.mode) {
      case mean:
        return with_roundings(dy / static_cast<double>(view_.row_length()), 2);
      case mul:
        return x == 0 ? by_others(coordinate, dy) : by_quotient(dy, y, x);
      case mul_no_zeros:
        return x == 0 ? Expected{} : by_quotient(dy, y, x);
      case norm1:
        return with_roundings(dy * sign_of(x), 0);
      case norm2:
        return y == 0 ? Expected{} : by_quotient(dy, x, y);
      case min:
      case max:
        return is_picked(coordinate, row) ? with_roundings(dy, 0) : Expected{};
      case amax:
        return is_picked(coordinate, row) ? with_roundings(dy * sign_of(x), 0) : Expected{};
      case add:
        break;
    }
    return with_roundings(dy, 0);
  }

 private:
  // Anything is right where the quotient is beyond f32, or loses digits there.
  static Expected by_quotient(double dy, double above, double below) {
    const double quotient = above / below, size = std::fabs(quotient);
    Expected result = with_roundings(dy * quotient, 3);
    const bool is_beyond = std::isfinite(above) && (size > largest_sum || (size < least_normal && above != 0));
    result.unspecified = is_beyond && std::isfinite(below) && below != 0;
    return result;
  }

  // dy times all others of the row; 0 if one of them is 0.
  Expected by_others(std::span<const int64_t> coordinate, double dy) const {
    double value = dy, above = std::max(std::fabs(dy), 1.0), below = std::min(std::fabs(dy), 1.0);
    int64_t factors = 0;
    bool has_zero = false;
    for_each_of_row(view_.dx, is_axis_, coordinate, [&](const Coordinate& at) {
      if (std::equal(at.begin(), at.end(), coordinate.begin())) return;
      const double x = (*x_)[at], size = std::fabs(x);
      has_zero = has_zero || x == 0;
      value *= x;
      ++factors;
      if (std::isfinite(size) && size > 1) above *= size;
      if (size < 1) below *= size;
    });
    if (has_zero) return {};
    Expected result = with_roundings(value, factors);
    result.unspecified = above > largest_sum || (below < least_normal && dy != 0);
    return result;
  }

  bool is_picked(std::span<const int64_t> coordinate, const Coordinate& row) const {
    int64_t position = 0;
    for (const int64_t axis : view_.axes) {
      const auto dimension = static_cast<size_t>(axis);
      position = position * view_.dx.extents[dimension] + coordinate[dimension];
    }
    return static_cast<int64_t>((*indices_)[row]) == position;
  }

  ReduceBackward view_;
  std::vector<bool> is_axis_;
  Tensor dy_;
  std::optional<Tensor> x_, y_, indices_;
};

// Positions in a row; now and then -1, that of a row without elements.
Filling filling_of_reduce_backward(const Request& request, std::string_view operand, Values) {
  if (operand != "indices") return {};
  const int64_t positions = ReduceBackward::of(request).row_length();
  return [positions](std::span<const int64_t>, uint64_t bits) {
    return static_cast<double>(static_cast<int64_t>(bits % static_cast<uint64_t>(positions + 1)) - 1);
  };
}

}  // namespace

Reference reduce_backward_reference() {
  return {.evaluator = make_evaluator<ReduceBackwardEvaluator>, .filling = filling_of_reduce_backward};
}

}  // namespace kiln::reference
