// Reference of softmax_forward: maximum, sum of exponentials, quotient or logarithm; row by row.
#include "kiln/generator/operations/softmax_forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "operations/rows.h"

namespace kiln::reference {
namespace {

// Errors of f32 exponentials and logarithms, in units of 2^-24; docs/numerics.md derives them.
constexpr double exp_error = 4;           // relative: of ex2.approx, and of expf
constexpr double exp_argument_error = 4;  // relative, for each unit of |x - max|: rounding of the argument
constexpr double log_error = 6;           // relative to 1 + |log|
constexpr double flushed = 0x1p-101;      // results below 2^-126 may become 0: 2^-125 in units of 2^-24

/// A kernel that keeps a running maximum multiplies its partial sum each time the maximum grows. More often than this
/// is not granted, as the bound would lose its meaning.
constexpr int64_t rescales = 128;

struct SoftmaxRow {
  double maximum = 0;
  double sum = 0;            ///< of exp(x - maximum)
  double mean_distance = 0;  ///< of |x - maximum|, weighted by the exponentials
};

class SoftmaxForwardEvaluator final : public RowEvaluator<SoftmaxRow> {
 public:
  SoftmaxForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : RowEvaluator(std::move(call), bindings, output), mode_(SoftmaxForward::of(request()).mode), x_(tensor("x")) {}

 protected:
  SoftmaxRow row_at(std::span<const int64_t> coordinate) const override {
    SoftmaxRow row{.maximum = -std::numeric_limits<double>::infinity()};
    for_each_of_row(coordinate, [&](const Coordinate& at) {
      const double x = x_[at];
      row.maximum = std::isnan(x) || std::isnan(row.maximum) ? std::nan("") : std::max(row.maximum, x);
    });
    double weighted = 0;
    for_each_of_row(coordinate, [&](const Coordinate& at) {
      const double distance = row.maximum - x_[at];
      const double exponential = std::exp(-distance);
      row.sum += exponential;
      weighted += exponential == 0 ? 0 : exponential * distance;
    });
    row.mean_distance = weighted / row.sum;
    return row;
  }

  Expected element(const SoftmaxRow& row, std::span<const int64_t> coordinate) const override {
    const double distance = row.maximum - x_[coordinate];
    const int64_t length = row_length();
    const auto sum_roundings = length + (static_cast<int64_t>(exp_error) + 2) * std::min(length, rescales);
    const double sum_argument_error = exp_argument_error * row.mean_distance;
    if (mode_ == SoftmaxMode::log) {
      const double log_sum = std::log(row.sum);
      const double rest = sum_argument_error + log_error * (1 + log_sum) + 2 * distance + log_sum;
      // A relative error of the sum is an absolute one of its logarithm: magnitude 1.
      return {.value = -distance - log_sum,
              .magnitude = 1,
              .roundings = sum_roundings,
              .quantum = Expected::no_quantum,
              .transcendental = rest};
    }
    const double y = std::exp(-distance) / row.sum;
    const double argument_error = y == 0 ? 0 : exp_argument_error * distance + sum_argument_error;
    const double rest = y * (exp_error + argument_error) + flushed;
    // Two roundings more: of the quotient, or of a reciprocal and a product.
    return {.value = y,
            .magnitude = y,
            .roundings = sum_roundings + 2,
            .quantum = Expected::no_quantum,
            .transcendental = rest};
  }

 private:
  SoftmaxMode mode_;
  Tensor x_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> softmax_forward_evaluator(Request request, const Bindings& bindings,
                                                                   std::string_view output) {
  return std::make_unique<SoftmaxForwardEvaluator>(std::move(request), bindings, output);
}

}  // namespace kiln::reference
