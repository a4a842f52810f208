// Reference of softmax_forward: maximum, sum of exponentials, quotient or logarithm; row by row.
#include "kiln/generator/operations/softmax_forward.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"

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

class SoftmaxForwardEvaluator final : public Oracle::Evaluator {
 public:
  SoftmaxForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output), softmax_(SoftmaxForward::of(request())), x_(tensor("x")) {}

  std::vector<Expected> all() const override {
    std::vector<Expected> results(static_cast<size_t>(output().elements()));
    TensorSpec first_of_rows = output();
    const auto axis = static_cast<size_t>(softmax_.axis);
    first_of_rows.extents[axis] = std::min<int64_t>(first_of_rows.extents[axis], 1);
    for_each_coordinate(first_of_rows, [&](std::span<const int64_t> first) {
      const Row row = row_at(first);
      Coordinate coordinate(first.begin(), first.end());
      for (coordinate[axis] = 0; coordinate[axis] < softmax_.row_length(); ++coordinate[axis]) {
        results[logical_index(coordinate)] = finish(element(row, x_[coordinate]), coordinate);
      }
    });
    return results;
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    return element(row_at(coordinate), x_[coordinate]);
  }

 private:
  struct Row {
    double maximum = 0;
    double sum = 0;            ///< of exp(x - maximum)
    double mean_distance = 0;  ///< of |x - maximum|, weighted by the exponentials
  };

  /// The row that `coordinate` lies in.
  Row row_at(std::span<const int64_t> coordinate) const {
    Coordinate at(coordinate.begin(), coordinate.end());
    int64_t& i = at[static_cast<size_t>(softmax_.axis)];
    Row row{.maximum = -std::numeric_limits<double>::infinity()};
    for (i = 0; i < softmax_.row_length(); ++i) {
      const double x = x_[at];
      row.maximum = std::isnan(x) || std::isnan(row.maximum) ? std::nan("") : std::max(row.maximum, x);
    }
    double weighted = 0;
    for (i = 0; i < softmax_.row_length(); ++i) {
      const double distance = row.maximum - x_[at];
      const double exponential = std::exp(-distance);
      row.sum += exponential;
      weighted += exponential == 0 ? 0 : exponential * distance;
    }
    row.mean_distance = weighted / row.sum;
    return row;
  }

  Expected element(const Row& row, double x) const {
    const double distance = row.maximum - x;
    const int64_t length = softmax_.row_length();
    const auto sum_roundings = length + (static_cast<int64_t>(exp_error) + 2) * std::min(length, rescales);
    const double sum_argument_error = exp_argument_error * row.mean_distance;
    if (softmax_.mode == SoftmaxMode::log) {
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

  size_t logical_index(const Coordinate& coordinate) const {
    int64_t index = 0;
    for (size_t d = 0; d < coordinate.size(); ++d) {
      index = index * output().extents[d] + coordinate[d];
    }
    return static_cast<size_t>(index);
  }

  SoftmaxForward softmax_;
  Tensor x_;
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> softmax_forward_evaluator(Request request, const Bindings& bindings,
                                                                   std::string_view output) {
  return std::make_unique<SoftmaxForwardEvaluator>(std::move(request), bindings, output);
}

}  // namespace kiln::reference
