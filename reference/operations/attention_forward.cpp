// Reference of attention_forward: the scores of a query, their softmax, and the sum of the values by it.
#include <limits>

#include "operations/attention_lines.h"

namespace kiln::reference {
namespace {

struct ForwardLine {
  std::vector<Bounded> y;
  Bounded lse;
};

class AttentionForwardEvaluator final : public Oracle::Evaluator {
 public:
  AttentionForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(AttentionForward::of(request())),
        scores_(view_, scalar("scale"), {static_cast<float>(scalar("dropout")), integer("seed"), integer("offset")},
                [this](const std::string& operand) { return optional_tensor(operand); }),
        v_(tensor("v")),
        lines_(view_.images() * view_.heads() * view_.queries()) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const AttentionQuery query{at[0], at[1], at[2]};
    const int64_t number = (at[0] * view_.heads() + at[1]) * view_.queries() + at[2];
    const ForwardLine& line = lines_.of(number, [&] { return work_out(query); });
    return (output().rank() == 3 ? line.lse : line.y[static_cast<size_t>(at[3])]).expected();
  }

 private:
  struct Seen {
    int64_t key;
    Bounded score;
  };

  // Errors of exp(score - maximum), relative: the score's, those of the function, and a running maximum's factors.
  static double error_of_power(const Bounded& score, double distance, int64_t keys) {
    constexpr int64_t rescales = 128;
    const double steps =
        exp_error + exp_argument_error * distance + (exp_error + 2) * static_cast<double>(std::min(keys, rescales));
    return std::expm1(score.error + unit * steps);
  }

  ForwardLine work_out(const AttentionQuery& query) const {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    const int64_t count = scores_.keys_of(query.image), head = scores_.key_head(query.head);
    std::vector<Seen> seen;
    std::vector<int64_t> hidden;  // within the image's length
    double maximum = -infinity;
    for (int64_t key = 0; key < count; ++key) {
      if (!scores_.sees(query, key)) {
        hidden.push_back(key);
        continue;
      }
      seen.push_back({key, scores_.score(query, key)});
      const double score = seen.back().score.value;
      maximum = std::isnan(score) || std::isnan(maximum) ? std::nan("") : std::max(maximum, score);
    }
    ForwardLine line{std::vector<Bounded>(static_cast<size_t>(view_.width())), {-infinity, 0}};
    if (maximum != -infinity) {
      BoundedSum sum;
      std::vector<Bounded> powers, counts;
      double score_error = 0;
      for (const auto& [key, score] : seen) {
        const double power = std::exp(score.value - maximum), distance = power == 0 ? 0 : maximum - score.value;
        const double error = error_of_power(score, distance, count);
        powers.push_back({power, std::isinf(score.error) ? Bounded::unknown : power * error + 0x1p-125});
        sum.add(powers.back());
        counts.push_back(scores_.counts(query, key));
        if (counts.back().value == 0) hidden.push_back(key);
        score_error = std::max(score_error, score.error);
      }
      const Bounded whole = sum.result();
      std::vector<Bounded> weights = powers;
      for (size_t i = 0; view_.drops && i < powers.size(); ++i) weights[i] = product(powers[i], counts[i]);
      const double log = std::log(whole.value), lse = maximum + log;
      const double of_sum = whole.error / whole.value + unit * (log_error * (1 + std::fabs(log)) + 3 * std::fabs(lse));
      line.lse = {lse, std::isfinite(lse) ? of_sum + score_error + 2 * unit * std::fabs(maximum) : 0};
      if (std::isinf(whole.error)) line.lse.error = Bounded::unknown;
      for (size_t i = 0; i < line.y.size(); ++i)
        line.y[i] = mean(query.image, head, static_cast<int64_t>(i), seen, weights, whole);
    }
    spoil(query.image, head, hidden, line);
    return line;
  }

  // Element `i` of the values' mean, weighted by the powers, whose sum is `whole`.
  Bounded mean(int64_t image, int64_t head, int64_t i, const std::vector<Seen>& seen,
               const std::vector<Bounded>& powers, Bounded whole) const {
    BoundedProductSum weighted(view_.v.dtype, view_.v.dtype);
    for (size_t place = 0; place < seen.size(); ++place) {
      weighted.add(v_({image, head, seen[place].key, i}), as_factor(powers[place], view_.v.dtype));
    }
    const Bounded sum = weighted.result();
    const double value = sum.value / whole.value, least = whole.value - whole.error;
    if (std::isinf(sum.error) || !(least > 0)) return {value, Bounded::unknown};
    if (!std::isfinite(value)) return {value, 0};
    return {value, (sum.error + std::fabs(value) * whole.error) / least + 4 * unit * std::fabs(value) + 0x1p-125};
  }

  // Kernels multiply the values of hidden keys by 0: where such a value is not finite, anything is right.
  void spoil(int64_t image, int64_t head, const std::vector<int64_t>& hidden, ForwardLine& line) const {
    for (const int64_t key : hidden) {
      for (int64_t i = 0; i < view_.width(); ++i) {
        if (!std::isfinite(v_({image, head, key, i}))) line.y[static_cast<size_t>(i)].error = Bounded::unknown;
      }
    }
  }

  AttentionForward view_;
  AttentionScores scores_;
  Tensor v_;
  Once<ForwardLine> lines_;
};

}  // namespace

Reference attention_forward_reference() {
  return {.evaluator = make_evaluator<AttentionForwardEvaluator>, .filling = filling_of_attention};
}

}  // namespace kiln::reference
