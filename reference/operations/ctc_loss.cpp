// References of ctc_loss_forward and ctc_loss_backward: what is known of the states, step by step, in logarithms.
// docs/numerics.md ("CTC loss") derives the errors.
#include "kiln/generator/operations/ctc_loss.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "operations/bounded.h"
#include "operations/once.h"
#include "operations/softmax_row.h"

namespace kiln::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// log(sum of exp(term)). f32 adds exponentials of terms less the largest, takes a logarithm, and adds the largest.
Bounded log_sum(std::initializer_list<Bounded> terms) {
  double largest = -infinity;
  for (const Bounded& term : terms) largest = std::fmax(largest, term.value);
  if (largest == -infinity) largest = 0;
  double sum = 0, error = 0;
  for (const Bounded& term : terms) {
    const double power = std::exp(term.value - largest);
    sum += power;
    if (power != 0) error = std::max(error, term.error);  // no more than that of the terms
  }
  const double value = largest + std::log(sum);
  if (std::isinf(error)) return {value, Bounded::unknown};
  if (!std::isfinite(value)) return {value, 0};
  // Three exponentials, each with its argument's error at a weight below 1, their sum, its logarithm, and the last sum.
  constexpr double of_powers = exp_error + 3 * exp_argument_error + 3, of_log = 3 * log_error;
  return {value, error + unit * (of_powers + of_log + std::fabs(largest) + std::fabs(value))};
}

/// A logarithm that kernels may have multiplied by log2 e, or divided by it.
Bounded in_any_base(Bounded log) {
  constexpr double largest = std::numeric_limits<float>::max() / std::numbers::log2e;
  if (!std::isfinite(log.value)) return log;
  if (std::fabs(log.value) > largest) return {log.value, Bounded::unknown};
  return {log.value, log.error + 3 * unit * std::fabs(log.value)};
}

/// exp of a logarithm, less one that is known to `of_base`.
Bounded power_of(Bounded log, double of_base) {
  const double power = std::exp(log.value);
  if (std::isinf(log.error) || std::isinf(of_base)) return {power, Bounded::unknown};
  if (!std::isfinite(power)) return {power, 0};
  const double steps = unit * (exp_error + (power == 0 ? 0 : exp_argument_error * std::fabs(log.value)));
  const double error = power * std::expm1(log.error + of_base + steps) + 0x1p-125;
  return {power, std::isinf(error) ? Bounded::unknown : error};
}

/// A way that goes on with another part of it: there is none where the way ends, whatever the part but NaN.
Bounded with_probability(Bounded way, Bounded part) {
  return way.value == -infinity && !std::isnan(part.value) ? way : sum_of({part, way});
}

/// Parts of a call that both need.
class CtcImages {
 public:
  template <class Find>
  CtcImages(const CtcLoss& view, const Find& find)
      : view_(view),
        x_(*find("x")),
        targets_(*find("targets")),
        input_lengths_(find("input_lengths")),
        target_lengths_(find("target_lengths")) {}

  bool zeroes_infinite() const { return view_.infinite == CtcInfinite::zero; }
  int64_t steps(int64_t image) const { return length(input_lengths_, image, view_.steps()); }
  int64_t states(int64_t image) const { return 2 * length(target_lengths_, image, view_.labels()) + 1; }

  /// The class of a state: a label, or the blank around it.
  int64_t class_of(int64_t image, int64_t state) const {
    return state % 2 == 0 ? view_.blank : static_cast<int64_t>(targets_({image, state / 2}));
  }
  /// Whether the class of a state is none: a label that is no class, or the blank.
  bool is_none(int64_t image, int64_t state) const {
    const int64_t c = class_of(image, state);
    return c < 0 || c >= view_.classes() || (state % 2 == 1 && c == view_.blank);
  }
  /// Whether a path may come to a label from the one before, without a blank between them.
  bool skips(int64_t image, int64_t state) const {
    return state % 2 == 1 && state >= 3 && class_of(image, state) != class_of(image, state - 2);
  }

  /// Logarithms of the probabilities of the classes at a step.
  std::vector<Bounded> of_classes(int64_t image, int64_t step) const {
    const auto visit_all = [&](const auto& visit) {
      for (int64_t c = 0; c < view_.classes(); ++c) visit(x_({image, step, c}));
    };
    std::vector<Bounded> result;
    if (view_.input == CtcInput::log_probabilities) {
      visit_all([&](double x) { result.push_back(in_any_base({x, 0})); });
      return result;
    }
    const SoftmaxRow row = SoftmaxRow::of(visit_all);
    visit_all([&](double x) { result.push_back(in_any_base(bounded(row.log_probability(x)))); });
    return result;
  }
  /// Logarithms of the probabilities of the states' classes at a step; NaN for a label that is no class, or the blank.
  std::vector<Bounded> of_states(int64_t image, int64_t step) const {
    const std::vector<Bounded> classes = of_classes(image, step);
    std::vector<Bounded> result(static_cast<size_t>(states(image)));
    for (int64_t state = 0; state < states(image); ++state) {
      const int64_t c = class_of(image, state);
      result[static_cast<size_t>(state)] =
          is_none(image, state) ? Bounded{std::nan(""), 0} : classes[static_cast<size_t>(c)];
    }
    return result;
  }

 private:
  static Bounded bounded(const Expected& expected) {
    const double error =
        unit * (static_cast<double>(expected.roundings) * expected.magnitude + expected.transcendental);
    return {expected.value, std::isfinite(expected.value) ? error : 0};
  }
  static int64_t length(const std::optional<Tensor>& lengths, int64_t image, int64_t most) {
    return lengths ? std::clamp<int64_t>(static_cast<int64_t>((*lengths)({image})), 0, most) : most;
  }

  const CtcLoss& view_;
  Tensor x_, targets_;
  std::optional<Tensor> input_lengths_, target_lengths_;
};

/// Results of an image.
struct CtcForwardImage {
  Bounded loss;
  std::vector<std::vector<Bounded>> prefixes;  // of each step and state
};

/// The largest of a step's numbers, which f32 takes from those of the next one; 0 where all are -inf.
double largest_of(const std::vector<Bounded>& values) {
  double largest = -infinity;
  for (const Bounded& each : values) largest = std::fmax(largest, each.value);
  return largest == -infinity ? 0 : largest;
}

Bounded less(const Bounded& value, double base) {
  const double rest = value.value - base;
  return {rest, std::isfinite(rest) ? value.error + unit * std::fabs(rest) : value.error};
}

double largest_error(const std::vector<Bounded>& values) {
  double error = 0;
  for (const Bounded& each : values) error = std::max(error, each.error);
  return error;
}

class CtcForwardEvaluator final : public Oracle::Evaluator {
 public:
  CtcForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(CtcLossForward::of(request())),
        images_(view_, [this](const std::string& operand) { return optional_tensor(operand); }),
        known_(view_.images()) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const CtcForwardImage& image = known_.of(at[0], [&] { return work_out(at[0]); });
    if (output_name() == "loss") return in_any_base(image.loss).expected();
    const auto step = static_cast<size_t>(at[1]), state = static_cast<size_t>(at[2]);
    const bool counts = step < image.prefixes.size() && state < image.prefixes[step].size();
    if (!counts) return {.value = -infinity};
    // The largest of the step errs, too.
    const Bounded& prefix = image.prefixes[step][state];
    const double error = prefix.error + largest_error(image.prefixes[step]);
    return in_any_base({prefix.value, std::isfinite(prefix.value) ? error : prefix.error}).expected();
  }

 private:
  CtcForwardImage work_out(int64_t image) const {
    CtcForwardImage result;
    const int64_t steps = images_.steps(image), states = images_.states(image);
    std::vector<Bounded> last;
    double base = 0, offsets = 0;  // the largest of the last step, and the sum of those before it
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<Bounded> values = images_.of_states(image, step);
      offsets += base;
      for (int64_t state = 0; state < states; ++state) {
        const Bounded start{state < 2 ? 0 : -infinity, 0};
        const Bounded before = step > 0 ? less(arrival(image, last, state), base) : start;
        Bounded& value = values[static_cast<size_t>(state)];
        value = with_probability(before, value);
      }
      last = std::move(values);
      base = largest_of(last);
      std::vector<Bounded>& prefixes = result.prefixes.emplace_back();
      for (const Bounded& value : last) prefixes.push_back(less(value, base));
    }
    result.loss = loss(last, offsets, states);
    return result;
  }

  Bounded arrival(int64_t image, const std::vector<Bounded>& before, int64_t state) const {
    const Bounded none{-infinity, 0};
    const auto at = [&](int64_t other) { return other < 0 ? none : before[static_cast<size_t>(other)]; };
    return log_sum({at(state), at(state - 1), images_.skips(image, state) ? at(state - 2) : none});
  }

  Bounded loss(const std::vector<Bounded>& last, double offsets, int64_t states) const {
    if (last.empty()) return {states == 1 || images_.zeroes_infinite() ? 0 : infinity, 0};
    const Bounded label = states > 1 ? last[static_cast<size_t>(states - 2)] : Bounded{-infinity, 0};
    Bounded sum = log_sum({last.back(), label});
    sum.value += offsets;
    if (std::isfinite(sum.value)) sum.error += 2 * unit * (std::fabs(sum.value) + std::fabs(offsets));
    if (images_.zeroes_infinite() && sum.value == -infinity) return {0, sum.error};
    return negative(sum);
  }

  CtcLossForward view_;
  CtcImages images_;
  Once<CtcForwardImage> known_;
};

/// dx of each step and class.
using CtcBackwardImage = std::vector<std::vector<Bounded>>;

class CtcBackwardEvaluator final : public Oracle::Evaluator {
 public:
  CtcBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(CtcLossBackward::of(request())),
        images_(view_, [this](const std::string& operand) { return optional_tensor(operand); }),
        prefixes_(tensor("prefixes")),
        known_(view_.images()) {
    if (view_.dloss) dloss_ = tensor("dloss");
  }

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const CtcBackwardImage& image = known_.of(at[0], [&] { return work_out(at[0]); });
    const auto step = static_cast<size_t>(at[1]);
    if (step >= image.size()) return {};
    return image[step][static_cast<size_t>(at[2])].expected();
  }

 private:
  CtcBackwardImage work_out(int64_t image) const {
    const int64_t steps = images_.steps(image), states = images_.states(image);
    CtcBackwardImage result(static_cast<size_t>(steps));
    // Logarithms of the probability of what follows a state, less a number of the step.
    std::vector<Bounded> suffixes(static_cast<size_t>(states));
    for (int64_t state = 0; state < states; ++state) {
      suffixes[static_cast<size_t>(state)].value = state + 2 >= states ? 0 : -infinity;
    }
    for (int64_t step = steps - 1; step >= 0; --step) {
      result[static_cast<size_t>(step)] = gradient(image, step, suffixes);
      if (step > 0) suffixes = departures(image, images_.of_states(image, step), suffixes);
    }
    return result;
  }

  // Suffixes of the step before, from the logarithms of the states' probabilities at a step.
  std::vector<Bounded> departures(int64_t image, std::vector<Bounded> values,
                                  const std::vector<Bounded>& suffixes) const {
    const auto states = static_cast<int64_t>(suffixes.size());
    for (size_t state = 0; state < suffixes.size(); ++state) {
      values[state] = with_probability(suffixes[state], values[state]);
    }
    const Bounded none{-infinity, 0};
    const auto at = [&](int64_t other) { return other >= states ? none : values[static_cast<size_t>(other)]; };
    const double base = largest_of(values);
    std::vector<Bounded> result;
    for (int64_t state = 0; state < states; ++state) {
      const bool skips = state + 2 < states && images_.skips(image, state + 2);
      result.push_back(less(log_sum({at(state), at(state + 1), skips ? at(state + 2) : none}), base));
    }
    return result;
  }

  std::vector<Bounded> gradient(int64_t image, int64_t step, const std::vector<Bounded>& suffixes) const {
    std::vector<Bounded> logs(suffixes.size());
    double largest = -infinity;
    for (size_t state = 0; state < suffixes.size(); ++state) {
      const auto number = static_cast<int64_t>(state);
      const double prefix = images_.is_none(image, number) ? std::nan("") : prefixes_({image, step, number});
      logs[state] = with_probability(suffixes[state], in_any_base({prefix, 0}));
      largest =
          std::isnan(logs[state].value) || std::isnan(largest) ? std::nan("") : std::max(largest, logs[state].value);
    }
    std::vector<Bounded> result(static_cast<size_t>(view_.classes()));
    if (largest == -infinity) {
      for (Bounded& each : result) each.value = images_.zeroes_infinite() ? 0 : std::nan("");
      return result;
    }
    const std::vector<Bounded> shares = shares_of(image, logs, largest);
    const double dloss = dloss_ ? (*dloss_)({image}) : 1;
    const std::vector<Bounded> logs_of_classes = images_.of_classes(image, step);
    for (int64_t c = 0; c < view_.classes(); ++c) {
      const Bounded p = power_of(logs_of_classes[static_cast<size_t>(c)], 0);
      const auto at = static_cast<size_t>(c);
      result[at] = product({dloss, 0}, sum_of({p, negative(shares[at])}));
    }
    return result;
  }

  // The part of each class in all paths.
  std::vector<Bounded> shares_of(int64_t image, const std::vector<Bounded>& logs, double largest) const {
    BoundedSum whole;
    std::vector<Bounded> powers;
    const double of_largest = largest_error(logs);
    for (const Bounded& log : logs) {
      powers.push_back(power_of({log.value - largest, log.error}, of_largest));
      whole.add(powers.back());
    }
    const Bounded sum = whole.result();
    std::vector<BoundedSum> sums(static_cast<size_t>(view_.classes()));
    for (size_t state = 0; state < powers.size(); ++state) {
      const int64_t c = images_.class_of(image, static_cast<int64_t>(state));
      if (c >= 0 && c < view_.classes()) sums[static_cast<size_t>(c)].add(powers[state]);
    }
    std::vector<Bounded> shares;
    for (const BoundedSum& each : sums) {
      const Bounded part = each.result();
      const double share = part.value / sum.value, least = sum.value - sum.error;
      const bool is_unknown = std::isinf(part.error) || !(least > 0);
      const double error = (part.error + share * sum.error) / least + 4 * unit * share;
      shares.push_back({share, is_unknown && !std::isnan(share) ? Bounded::unknown : std::isnan(share) ? 0 : error});
    }
    return shares;
  }

  CtcLossBackward view_;
  CtcImages images_;
  Tensor prefixes_;
  std::optional<Tensor> dloss_;
  Once<CtcBackwardImage> known_;
};

// Prefixes as ctc_loss_forward may give them: none of states that no path reaches yet, seldom none of others, nor a
// number at all.
double prefix_of(std::span<const int64_t> at, uint64_t bits, Values values) {
  constexpr uint64_t seldom = 64;
  const int64_t step = at[1], state = at[2];
  if (values == Values::specials && bits % seldom == 1) return std::nan("");
  if (state > 2 * step + 1 || bits % seldom == 2) return -infinity;
  return -static_cast<double>((bits >> 16) % 128) / 8;
}

// A label, seldom one that is none; lengths as they may be.
Filling filling_of_ctc(const Request& request, std::string_view operand, Values values) {
  const TensorSpec& x = request.at("x");
  const int64_t classes = x.extents[2], blank = request.ints("blank").front();
  if (operand == "input_lengths") return lengths_to(x.extents[1], values);
  if (operand == "target_lengths") return lengths_to(request.at("targets").extents[1], values);
  if (operand == "prefixes") {
    return [=](std::span<const int64_t> at, uint64_t bits) { return prefix_of(at, bits, values); };
  }
  if (operand != "targets") return {};
  return [=](std::span<const int64_t>, uint64_t bits) -> double {
    constexpr uint64_t seldom = 16;
    if (values == Values::specials && bits % seldom == 1) {
      return static_cast<double>(std::array{classes, int64_t{-1}, blank}[(bits >> 6) % 3]);
    }
    if (classes == 1) return 0;
    const auto other = static_cast<int64_t>((bits >> 16) % static_cast<uint64_t>(classes - 1));
    return static_cast<double>(other < blank ? other : other + 1);
  };
}

}  // namespace

Reference ctc_loss_forward_reference() {
  return {.evaluator = make_evaluator<CtcForwardEvaluator>, .filling = filling_of_ctc};
}

Reference ctc_loss_backward_reference() {
  return {.evaluator = make_evaluator<CtcBackwardEvaluator>, .filling = filling_of_ctc};
}

}  // namespace kiln::reference
