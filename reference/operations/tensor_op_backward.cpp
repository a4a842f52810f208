// Reference of tensor_op_backward: the gradient of each element, added up where the input repeats.
#include "kiln/generator/operations/tensor_op_backward.h"

#include <cmath>
#include <limits>
#include <optional>

#include "evaluator.h"
#include "operations/bounded.h"
#include "operations/norm.h"
#include "operations/rows.h"

namespace kiln::reference {
namespace {

using enum TensorOpMode;

// Relative errors of functions in units of 2^-24, as in the reference of tensor_op.
constexpr double error_of_exp = 4, error_of_log = 4, error_of_pow = 10;

Bounded known(double value) {
  return {value, 0};
}

Bounded known_to(double value, double error) {
  if (std::isfinite(value) && std::fabs(value) > largest_sum) return {value, Bounded::unknown};
  return {value, std::isfinite(value) ? error * unit * std::fabs(value) + 0x1p-125 : 0};
}

// A quotient by a number without an error.
Bounded bounded_quotient(Bounded a, double b) {
  const double value = a.value / b;
  if (std::isinf(a.error)) return {value, Bounded::unknown};
  if (!std::isfinite(value)) return {value, 0};
  if (std::fabs(value) > largest_sum) return {value, Bounded::unknown};
  return {value, (b == 0 || std::isinf(b) ? 0 : a.error / std::fabs(b)) + unit * std::fabs(value) + 0x1p-125};
}

// Share of an input in a minimum or a maximum: `is_other`, whether the other one is picked.
double share_of_input(bool is_other, bool are_equal) {
  return is_other ? 0 : are_equal ? 0.5 : 1;
}

// The factor of dy, or nothing where the gradient is 0 whatever dy is.
std::optional<Bounded> factor_of(TensorOpMode mode, bool by_a, double a, double b) {
  switch (mode) {
    case mul:
      return known(by_a ? b : a);
    case min:
      return known(share_of_input(by_a ? a > b : b > a, a == b));
    case max:
      return known(share_of_input(by_a ? a < b : b < a, a == b));
    case pow: {
      if (by_a && b == 0) return std::nullopt;
      if (by_a) {
        const double less = static_cast<float>(b - 1);  // one rounding, which moves the power
        const double power = std::pow(a, b - 1), moved = std::fabs(std::pow(a, less) - power);
        Bounded rounded = known_to(power, error_of_pow);
        if (std::isfinite(moved)) rounded.error += moved;
        return product(known(b), rounded);
      }
      if (a == 0 && b >= 0) return std::nullopt;
      return product(known_to(std::pow(a, b), error_of_pow), known_to(std::log(a), error_of_log));
    }
    case sqrt:
      return known_to(0.5 / std::sqrt(a), 4);
    case exp:
      return known_to(std::exp(a), error_of_exp);
    case abs:
      return known(sign_of(a));
    default:
      return known(1);
  }
}

Bounded gradient(TensorOpMode mode, TensorOpInput by, double dy, double a, double b) {
  const bool by_a = by == TensorOpInput::a;
  switch (mode) {
    case add:
      return known(dy);
    case sub:
      return known(by_a ? dy : -dy);
    case neg:
      return known(-dy);
    case div:
      return by_a ? bounded_quotient(known(dy), b)
                  : product(known(-dy), bounded_quotient(bounded_quotient(known(a), b), b));
    case log:
      return bounded_quotient(known(dy), a);
    case select:
      return known((a != 0) == (by == TensorOpInput::b) ? dy : 0);
    default:
      break;
  }
  const std::optional<Bounded> factor = factor_of(mode, by_a, a, b);
  if (!factor) return known(0);
  if ((mode == min || mode == max) && factor->value == 0) return known(0);
  return product(known(dy), *factor);
}

class TensorOpBackwardEvaluator final : public Oracle::Evaluator {
 public:
  TensorOpBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(TensorOpBackward::of(request())),
        axes_(view_.axes()),
        is_axis_(which_are(axes_, view_.dy.extents.size())),
        dy_(tensor("dy")) {
    if (view_.a) a_.emplace(*view_.a, tensor("a"));
    if (view_.b) b_.emplace(*view_.b, tensor("b"));
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    if (axes_.empty()) return gradient_at(coordinate).expected();
    BoundedSum sum;
    for_each_of_row(view_.dy, is_axis_, coordinate, [&](const Coordinate& at) { sum.add(gradient_at(at)); });
    return sum.result().expected();
  }

 private:
  Bounded gradient_at(std::span<const int64_t> at) const {
    return gradient(view_.mode, view_.input, dy_[at], a_ ? (*a_)[at] : 0, b_ ? (*b_)[at] : 0);
  }

  TensorOpBackward view_;
  std::vector<int64_t> axes_;  // along which gradients are added up
  std::vector<bool> is_axis_;
  Tensor dy_;
  std::optional<Repeating> a_, b_;
};

}  // namespace

Reference tensor_op_backward_reference() {
  return {.evaluator = make_evaluator<TensorOpBackwardEvaluator>};
}

}  // namespace kiln::reference
