// References of cross_entropy_forward and cross_entropy_backward: the softmax of a row, and its definition.
// docs/numerics.md derives the errors.
#include "kiln/generator/operations/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "evaluator.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/softmax_row.h"

namespace kiln::reference {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Rows as both directions see them. A row is at the coordinate of its target: the coordinate in x without the classes.
class Rows {
 public:
  Rows(const CrossEntropy& view, Tensor x, Tensor targets, std::optional<Tensor> weights, double smoothing)
      : view_(view), x_(std::move(x)), targets_(std::move(targets)), smoothing_(view.smooths ? smoothing : 0) {
    weights_.assign(static_cast<size_t>(view.classes()), 1);
    for (int64_t c = 0; weights && c < view.classes(); ++c) weights_[static_cast<size_t>(c)] = (*weights)({c});
    for_each_coordinate(view.targets, [&](std::span<const int64_t> at) {
      if (!counts(at)) return;
      const double weight = is_class(target(at)) ? weights_[static_cast<size_t>(target(at))] : view.weights ? 0 : 1;
      total_ += weight;
      total_magnitude_ += std::fabs(weight);
      ++counted_;
    });
  }

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
  // Shares that a target gives to itself, and to each class.
  double own(int64_t target) const { return (1 - smoothing_) * weights_[static_cast<size_t>(target)]; }
  double each(int64_t c) const {
    return smoothing_ / static_cast<double>(view_.classes()) * weights_[static_cast<size_t>(c)];
  }
  // Divisor of the mean, and its roundings: numbers of rows are exact.
  double total() const { return total_; }
  double total_roundings() const {
    return view_.weights ? static_cast<double>(counted_) * total_magnitude_ / std::fabs(total_) : 0;
  }

 private:
  CrossEntropy view_;
  Tensor x_, targets_;
  double smoothing_;
  std::vector<double> weights_;
  double total_ = 0, total_magnitude_ = 0;
  int64_t counted_ = 0;
};

double error_of(const Expected& value) {
  return static_cast<double>(value.roundings) * value.magnitude + value.transcendental;
}

class CrossEntropyForwardEvaluator final : public Oracle::Evaluator {
 public:
  CrossEntropyForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(CrossEntropyForward::of(request())),
        rows_(view_, tensor("x"), tensor("targets"), view_.weights ? std::optional(tensor("weights")) : std::nullopt,
              scalar("smoothing")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    return view_.reduction == LossReduction::none ? loss_at(coordinate) : reduced();
  }

 private:
  Expected loss_at(std::span<const int64_t> at) const {
    if (!rows_.counts(at)) return {};
    const int64_t target = rows_.target(at);
    if (!rows_.is_class(target)) return {.value = nan};
    const SoftmaxRow softmax = rows_.softmax(at);
    Expected loss = softmax.log_probability(rows_.logit(at, target));
    loss.value = -loss.value;
    return view_.weights || view_.smooths ? shared_out(at, softmax, loss) : loss;
  }

  // The losses of the target and, where it is smoothed, of all classes, each by its weight. Products round, and sums.
  Expected shared_out(std::span<const int64_t> at, const SoftmaxRow& softmax, const Expected& of_target) const {
    Expected sum{.quantum = Expected::no_quantum};
    const auto add = [&](double weight, double loss, const Expected& logarithm, double roundings) {
      sum.value += weight * loss;
      sum.transcendental += std::fabs(weight) * (error_of(logarithm) + roundings * std::fabs(loss));
      if (std::isfinite(loss)) sum.finite_magnitude = std::max(sum.finite_magnitude, std::fabs(loss));
    };
    add(rows_.own(rows_.target(at)), of_target.value, of_target, 4);
    if (!view_.smooths) return sum;
    const auto classes = static_cast<double>(view_.classes());
    for (int64_t c = 0; c < view_.classes(); ++c) {
      const Expected logarithm = softmax.log_probability(rows_.logit(at, c));
      add(rows_.each(c), -logarithm.value, logarithm, classes + 5);
    }
    return sum;
  }

  // Each loss has its error, and sums round besides.
  Expected reduced() const {
    Expected sum;
    for_each_coordinate(view_.targets, [&](std::span<const int64_t> at) {
      if (!rows_.counts(at)) return;
      const Expected loss = loss_at(at);
      add_term(sum, loss.value);
      sum.transcendental += error_of(loss);
    });
    sum.quantum = Expected::no_quantum;
    if (view_.reduction == LossReduction::sum) return sum;
    const double total = rows_.total();
    if (total == 0) return {.value = sum.value / total};
    sum.value /= total;
    sum.transcendental /= std::fabs(total);
    scale_magnitudes(sum, 1 / std::fabs(total));
    sum.transcendental += rows_.total_roundings() * std::fabs(sum.value);
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
        rows_(view_, tensor("x"), tensor("targets"), view_.weights ? std::optional(tensor("weights")) : std::nullopt,
              scalar("smoothing")) {
    if (view_.dloss) dloss_ = tensor(view_.reduction == LossReduction::none ? "dlosses" : "dloss");
    if (view_.reduction == LossReduction::mean) share_ = 1 / rows_.total();
    for (int64_t c = 0; c < view_.classes(); ++c) {
      all_ += rows_.each(c);
      all_magnitude_ += std::fabs(rows_.each(c));
    }
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
    const double own = rows_.own(target), one = c == target ? own : 0, each = rows_.each(c), all = own + all_;
    const double factor = std::fabs(dloss), all_magnitude = std::fabs(own) + all_magnitude_;
    Expected result;
    result.value = dloss * (all * probability.value - one - each);
    result.magnitude = result.finite_magnitude =
        factor * (all_magnitude * probability.value + std::fabs(one) + std::fabs(each));
    result.roundings = view_.weights || view_.smooths ? 8 : 4;  // differences, and the factors
    result.quantum = Expected::no_quantum;
    result.transcendental = factor * std::fabs(all) * error_of(probability);
    if (view_.reduction == LossReduction::mean) result.transcendental += rows_.total_roundings() * result.magnitude;
    if (view_.weights && view_.smooths) {  // a sum of weights
      result.transcendental += factor * all_magnitude_ * probability.value * static_cast<double>(view_.classes());
    }
    // Infinity times what f32 may round to 0.
    result.unspecified = std::isinf(dloss) && !std::isnan(probability.value);
    return result;
  }

 private:
  bool by_row() const { return view_.reduction == LossReduction::none; }

  CrossEntropyBackward view_;
  Rows rows_;
  std::optional<Tensor> dloss_;
  double share_ = 1;                    // of one row in the mean
  double all_ = 0, all_magnitude_ = 0;  // what a target gives to all classes together
};

// A class, or now and then what rows have that do not count; among special values also what is no class.
int64_t draw_class(const ClassTargets& targets, Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  if (bits % seldom == 0) return targets.ignore;
  if (values == Values::specials && bits % seldom == 1) return (bits & 64) != 0 ? targets.classes : -1;
  return static_cast<int64_t>((bits >> 16) % static_cast<uint64_t>(targets.classes));
}

Filling filling_of_loss(const Request& request, std::string_view operand, Values values) {
  if (const std::optional<ClassTargets> targets = class_targets(request, operand)) {
    return [targets = *targets, values](std::span<const int64_t>, uint64_t bits) {
      return static_cast<double>(draw_class(targets, values, bits));
    };
  }
  if (!is_class_weights(request, operand)) return {};
  // Their sums divide: 1/8 to 9/8.
  return [](std::span<const int64_t>, uint64_t bits) { return 0.125 + (uniform(bits) + 1) / 2; };
}

}  // namespace

Reference cross_entropy_forward_reference() {
  return {.evaluator = make_evaluator<CrossEntropyForwardEvaluator>,
          .slack = slack::of_cross_entropy_forward,
          .filling = filling_of_loss};
}

Reference cross_entropy_backward_reference() {
  return {.evaluator = make_evaluator<CrossEntropyBackwardEvaluator>,
          .slack = slack::of_cross_entropy_backward,
          .filling = filling_of_loss};
}

}  // namespace kiln::reference
