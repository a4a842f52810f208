// prologue_slack() of softmax, of cross entropy and of their gradients. docs/numerics.md, "User code", derives the
// bounds.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "kiln/base/parallel.h"
#include "kiln/generator/operations/cross_entropy.h"
#include "kiln/generator/operations/softmax_backward.h"
#include "kiln/generator/operations/softmax_forward.h"
#include "kiln/reference/tensor_memory.h"
#include "slack.h"

namespace kiln::reference::slack {
namespace {

// A row of a packed tensor: `length` elements, `stride` apart; `number` counts rows in logical order.
struct Row {
  size_t number, first, length, stride;

  size_t at(size_t i) const { return first + i * stride; }
  double most(std::span<const float> perturbations) const {
    double most = 0;
    for (size_t i = 0; i < length; ++i) most = std::max<double>(most, perturbations[at(i)]);
    return most;
  }
};

// Calls visit(row) for each of them, from several threads.
template <class Visit>
void for_each_row(const TensorSpec& spec, int64_t axis, const Visit& visit) {
  const auto along = static_cast<size_t>(axis), length = static_cast<size_t>(spec.extents[along]);
  size_t inner = 1;
  for (size_t i = along + 1; i < spec.extents.size(); ++i) inner *= static_cast<size_t>(spec.extents[i]);
  const auto elements = static_cast<size_t>(spec.elements());
  if (elements == 0) return;
  for_each_part(elements / length, 4096 / length + 1, [&](size_t begin, size_t end) {
    for (size_t number = begin; number < end; ++number) {
      visit(Row{number, number / inner * length * inner + number % inner, length, inner});
    }
  });
}

// Adds the slack of log-softmax, 2 D, with D the most that an element of the row moves, or of softmax: its value times
// exp(2 D) - 1, and never more than the whole of it, 1.
void add_softmax_row(const Row& row, bool log, std::span<const float> x, std::span<const float> perturbations,
                     double scale, std::vector<float>& slack) {
  const double most = row.most(perturbations);
  double maximum = -infinity, sum = 0;
  if (most == 0) return;
  for (size_t i = 0; i < row.length; ++i) maximum = std::max<double>(maximum, x[row.at(i)]);
  for (size_t i = 0; i < row.length; ++i) sum += std::exp(x[row.at(i)] - maximum);
  for (size_t i = 0; i < row.length; ++i) {
    const double value = std::exp(x[row.at(i)] - maximum) / sum;
    const double moved = log ? 2 * most : std::min(1.0, value == 0 ? 0 : value * std::expm1(2 * most));
    const bool is_known = std::isfinite(most);
    slack[row.at(i)] = static_cast<float>(!is_known ? infinity : std::isnan(value) ? 0 : scale * moved);
  }
}

// |y| (d + sum(|y| d)), or of log-softmax d + exp(y) sum(d): both are linear in dy.
void add_gradient_row(const Row& row, bool log, std::span<const double> y, std::span<const float> perturbations,
                      double scale, std::vector<float>& slack) {
  double sum = 0;
  if (row.most(perturbations) == 0) return;
  for (size_t i = 0; i < row.length; ++i) {
    const double perturbation = perturbations[row.at(i)], value = y[row.at(i)];
    if (!log && std::isnan(value)) return;  // all of the row is NaN
    if (perturbation != 0) sum += log ? perturbation : std::fabs(value) * perturbation;
  }
  for (size_t i = 0; i < row.length; ++i) {
    const double value = y[row.at(i)], perturbation = perturbations[row.at(i)];
    const double moved = log ? perturbation + std::exp(value) * sum : std::fabs(value) * (perturbation + sum);
    slack[row.at(i)] = static_cast<float>(std::isnan(value) ? 0 : std::isnan(moved) ? infinity : scale * moved);
  }
}

// Factors that cross entropy multiplies the logarithms of a row's softmax by, and its gradient the softmax itself.
class LossFactors {
 public:
  LossFactors(const CrossEntropy& view, const Question& asked)
      : ignore_(static_cast<double>(view.ignore)),
        targets_(read_all(view.targets, asked.operands.at("targets"))),
        weights_(static_cast<size_t>(view.classes()), 1),
        smoothing_(view.smooths ? asked.number("smoothing") : 0) {
    if (view.weights) weights_ = read_all(*view.weights, asked.operands.at("weights"));
    for (const double weight : weights_) {
      each_ += smoothing_ / static_cast<double>(view.classes()) * weight;
      each_magnitude_ += smoothing_ / static_cast<double>(view.classes()) * std::fabs(weight);
    }
    if (view.reduction != LossReduction::mean) return;
    double total = 0;
    for (size_t row = 0; row < targets_.size(); ++row) {
      if (targets_[row] != ignore_) total += is_class(row) ? weights_[target(row)] : view.weights ? 0 : 1;
    }
    share_ = 1 / std::fabs(total);
  }

  // Whether the loss of a row depends on its logits: it counts, and is not NaN.
  bool depends(size_t row) const { return targets_[row] != ignore_ && is_class(row); }
  double of_loss(size_t row) const { return std::fabs(own(row)) + each_magnitude_; }
  double of_gradient(size_t row) const { return std::fabs(own(row) + each_) * share_; }
  double share() const { return share_; }  // of a row in the mean

 private:
  bool is_class(size_t row) const { return targets_[row] >= 0 && targets_[row] < static_cast<double>(weights_.size()); }
  size_t target(size_t row) const { return static_cast<size_t>(targets_[row]); }
  double own(size_t row) const { return (1 - smoothing_) * weights_[target(row)]; }

  double ignore_;
  std::vector<double> targets_, weights_;
  double smoothing_, each_ = 0, each_magnitude_ = 0, share_ = 1;
};

}  // namespace

std::vector<float> of_softmax(const Question& asked) {
  const SoftmaxForward softmax = SoftmaxForward::of(asked.plain);
  const std::vector<float> x = floats_of(asked.operands, "x");
  std::vector<float> slack(asked.perturbations.size());
  for_each_row(softmax.x, softmax.axis, [&](const Row& row) {
    add_softmax_row(row, softmax.mode == SoftmaxMode::log, x, asked.perturbations, asked.scale, slack);
  });
  return slack;
}

std::vector<float> of_softmax_backward(const Question& asked) {
  const SoftmaxBackward softmax = SoftmaxBackward::of(asked.plain);
  const std::vector<double> y = read_all(softmax.y, asked.operands.at("y"));
  std::vector<float> slack(asked.perturbations.size());
  for_each_row(softmax.dy, softmax.axis, [&](const Row& row) {
    add_gradient_row(row, softmax.mode == SoftmaxMode::log, y, asked.perturbations, asked.scale, slack);
  });
  return slack;
}

std::vector<float> of_cross_entropy_forward(const Question& asked) {
  const CrossEntropyForward loss = CrossEntropyForward::of(asked.plain);
  const LossFactors factors(loss, asked);
  std::vector<double> moved(static_cast<size_t>(loss.targets.elements()));  // of each row
  for_each_row(loss.x, 1, [&](const Row& row) {
    const double most = row.most(asked.perturbations);
    if (most != 0 && factors.depends(row.number)) {
      moved[row.number] = asked.scale * factors.of_loss(row.number) * 2 * most;
    }
  });
  if (loss.reduction == LossReduction::none) return {moved.begin(), moved.end()};
  const double sum = std::accumulate(moved.begin(), moved.end(), 0.0);
  return {sum == 0 ? 0 : static_cast<float>(sum * factors.share())};
}

std::vector<float> of_cross_entropy_backward(const Question& asked) {
  const CrossEntropyBackward loss = CrossEntropyBackward::of(asked.plain);
  const LossFactors factors(loss, asked);
  const bool is_reduced = loss.reduction != LossReduction::none;
  const std::vector<float> x = floats_of(asked.operands, "x");
  std::vector<double> given{1};
  if (loss.dloss) given = read_all(*loss.dloss, asked.operands.at(is_reduced ? "dloss" : "dlosses"));
  std::vector<float> slack(asked.perturbations.size());
  for_each_row(loss.x, 1, [&](const Row& row) {
    const double by = std::fabs(given[given.size() == 1 ? 0 : row.number]);
    if (!factors.depends(row.number) || std::isnan(by)) return;
    add_softmax_row(row, false, x, asked.perturbations, asked.scale * by * factors.of_gradient(row.number), slack);
  });
  return slack;
}

}  // namespace kiln::reference::slack
