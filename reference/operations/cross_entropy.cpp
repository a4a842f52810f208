// References of cross_entropy_forward and cross_entropy_backward: the softmax of a row, and its definition.
#include "kiln/generator/operations/cross_entropy.h"

#include <cmath>
#include <limits>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/softmax_row.h"

namespace kiln::reference {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// What both directions know of rows. A row is at the coordinate of its target: that of x without the classes.
class Rows {
 public:
  Rows(const CrossEntropy& view, Tensor x, Tensor targets)
      : view_(view), x_(std::move(x)), targets_(std::move(targets)) {}

  SoftmaxRow softmax(std::span<const int64_t> at) const {
    return SoftmaxRow::of([&](const auto& visit) {
      for (int64_t c = 0; c < view_.classes(); ++c) visit(logit(at, c));
    });
  }
  double logit(std::span<const int64_t> at, int64_t c) const {
    Coordinate coordinate(at.begin(), at.end());
    coordinate.insert(coordinate.begin() + 1, c);
    return x_[coordinate];
  }
  int64_t target(std::span<const int64_t> at) const { return static_cast<int64_t>(targets_[at]); }
  bool counts(std::span<const int64_t> at) const { return target(at) != view_.ignore; }
  bool is_class(int64_t target) const { return target >= 0 && target < view_.classes(); }
  int64_t count() const {
    int64_t rows = 0;
    for_each_coordinate(view_.targets, [&](std::span<const int64_t> at) { rows += counts(at) ? 1 : 0; });
    return rows;
  }

 private:
  CrossEntropy view_;
  Tensor x_, targets_;
};

class CrossEntropyForwardEvaluator final : public Oracle::Evaluator {
 public:
  CrossEntropyForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(CrossEntropyForward::of(request())),
        rows_(view_, tensor("x"), tensor("targets")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    return view_.reduction == LossReduction::none ? loss_at(coordinate) : reduced();
  }

 private:
  Expected loss_at(std::span<const int64_t> at) const {
    if (!rows_.counts(at)) return {};
    const int64_t target = rows_.target(at);
    if (!rows_.is_class(target)) return {.value = nan};
    Expected loss = rows_.softmax(at).log_probability(rows_.logit(at, target));
    loss.value = -loss.value;
    return loss;
  }

  // Each loss has its error, and sums round besides.
  Expected reduced() const {
    Expected sum;
    for_each_coordinate(view_.targets, [&](std::span<const int64_t> at) {
      if (!rows_.counts(at)) return;
      const Expected loss = loss_at(at);
      add_term(sum, loss.value);
      sum.transcendental += static_cast<double>(loss.roundings) * loss.magnitude + loss.transcendental;
    });
    sum.quantum = Expected::no_quantum;
    if (view_.reduction == LossReduction::sum) return sum;
    const auto rows = static_cast<double>(rows_.count());
    if (rows == 0) return {.value = nan};
    sum.value /= rows;
    sum.transcendental /= rows;
    scale_magnitudes(sum, 1 / rows, largest_sum(request()));
    sum.roundings += 2;
    return sum;
  }

  CrossEntropyForward view_;
  Rows rows_;
};

class CrossEntropyBackwardEvaluator final : public Oracle::Evaluator {
 public:
  CrossEntropyBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(CrossEntropyBackward::of(request())),
        rows_(view_, tensor("x"), tensor("targets")) {
    if (view_.dloss) dloss_ = tensor(view_.reduction == LossReduction::none ? "dlosses" : "dloss");
    if (view_.reduction == LossReduction::mean) share_ = 1 / static_cast<double>(rows_.count());
  }

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    Coordinate at(coordinate.begin(), coordinate.end());
    at.erase(at.begin() + 1);
    if (!rows_.counts(at)) return {};
    const int64_t target = rows_.target(at), c = coordinate[1];
    if (!rows_.is_class(target)) return {.value = nan};
    const double dloss = (dloss_ ? (*dloss_)[by_row() ? at : Coordinate{0}] : 1.0) * share_;
    const Expected probability = rows_.softmax(at).probability(rows_.logit(at, c));
    const double one = c == target ? 1 : 0, factor = std::fabs(dloss);
    Expected result;
    result.value = dloss * (probability.value - one);
    result.magnitude = result.finite_magnitude = factor * (probability.value + one);
    result.roundings = 4;  // a difference, and the factors
    result.quantum = Expected::no_quantum;
    result.transcendental =
        factor * (static_cast<double>(probability.roundings) * probability.magnitude + probability.transcendental);
    // Infinity times what f32 may round to 0.
    result.unspecified = std::isinf(dloss) && !std::isnan(probability.value);
    return result;
  }

 private:
  bool by_row() const { return view_.reduction == LossReduction::none; }

  CrossEntropyBackward view_;
  Rows rows_;
  std::optional<Tensor> dloss_;
  double share_ = 1;  // of one row in the mean
};

}  // namespace

std::unique_ptr<const Oracle::Evaluator> cross_entropy_forward_evaluator(Request request, const Bindings& bindings,
                                                                         std::string_view output) {
  return std::make_unique<CrossEntropyForwardEvaluator>(std::move(request), bindings, output);
}

std::unique_ptr<const Oracle::Evaluator> cross_entropy_backward_evaluator(Request request, const Bindings& bindings,
                                                                          std::string_view output) {
  return std::make_unique<CrossEntropyBackwardEvaluator>(std::move(request), bindings, output);
}

}  // namespace kiln::reference
