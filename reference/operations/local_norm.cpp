// References of local_norm_forward and local_norm_backward: each window summed by itself, then the formulas.
#include "kiln/generator/operations/local_norm.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "operations/norm.h"

namespace kiln::reference {
namespace {

constexpr double flushed_power = 0x1p-125;  // powers below 2^-126 may become 0, absolute
constexpr double smallest_normal = 0x1p-126;

// A value and its error, relative, in units of 2^-24; `open`: f32 cannot hold what leads to it.
struct Power {
  double value = 0, roundings = 0;
  bool open = false;
};

// Whether f32 may lose a factor that an infinity is multiplied by.
bool is_lost(double factor, double other) {
  return std::isinf(other) && factor != 0 && std::fabs(factor) < smallest_normal;
}

bool overflows(double value) {
  return std::isfinite(value) && std::fabs(value) > float_max;
}

// docs/numerics.md derives the errors.
class LocalNormEvaluator : public Oracle::Evaluator {
 public:
  using Visit = std::function<void(const Coordinate&)>;

  LocalNormEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        axes_(request().ints("axes")),
        behind_((request().ints("size").front() - 1) / 2),
        ahead_(request().ints("size").front() / 2),
        taps_(std::pow(static_cast<double>(request().ints("size").front()), static_cast<double>(axes_.size()))),
        scale_(scalar("lrn_alpha") / taps_),
        exponent_(scalar("lrn_beta")),
        k_(scalar("lrn_k")),
        x_(tensor("x")) {
    if (request().find("means") != nullptr) means_.emplace(tensor("means"));
  }

 protected:
  // s of an element, to the power of -exponent.
  Power power_at(const Coordinate& centre, double exponent) const {
    double sum = 0;
    bool open = false;
    int64_t count = 0;
    for_each_in_window(centre, behind_, ahead_, [&](const Coordinate& at) {
      const double value = distance_at(at);
      open = open || overflows(value);
      sum += value * value;
      ++count;
    });
    const double s = k_ + scale_ * sum;
    Power power{.value = std::pow(s, -exponent), .open = open || overflows(sum) || overflows(s)};
    if (!std::isfinite(s)) return power;
    const double lost = scale_ * static_cast<double>(count) * 0x1p-149 / (s * unit);  // squares that underflow
    power.roundings =
        exponent * (static_cast<double>(count) + 8 + lost) + 0.7 * exponent * (4 + 5 * std::fabs(std::log2(s))) + 4;
    power.open = power.open || overflows(power.value);
    return power;
  }

  void for_each_in_window(const Coordinate& centre, int64_t before, int64_t after, const Visit& visit) const {
    Coordinate at = centre;
    along_axis(0, centre, before, after, at, visit);
  }

  double x_at(const Coordinate& at) const { return x_[at]; }
  double distance_at(const Coordinate& at) const { return x_[at] - (means_ ? (*means_)[at] : 0); }
  int64_t behind() const { return behind_; }
  int64_t ahead() const { return ahead_; }
  double scale() const { return scale_; }
  double exponent() const { return exponent_; }

 private:
  void along_axis(size_t number, const Coordinate& centre, int64_t before, int64_t after, Coordinate& at,
                  const Visit& visit) const {
    if (number == axes_.size()) return visit(at);
    const auto axis = static_cast<size_t>(axes_[number]);
    const int64_t last = std::min(centre[axis] + after, request().at("x").extents[axis] - 1);
    for (at[axis] = std::max<int64_t>(centre[axis] - before, 0); at[axis] <= last; ++at[axis]) {
      along_axis(number + 1, centre, before, after, at, visit);
    }
    at[axis] = centre[axis];
  }

  std::vector<int64_t> axes_;
  int64_t behind_, ahead_;
  double taps_, scale_, exponent_, k_;
  Tensor x_;
  std::optional<Tensor> means_;
};

class ForwardEvaluator final : public LocalNormEvaluator {
 public:
  using LocalNormEvaluator::LocalNormEvaluator;

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const Coordinate at(coordinate.begin(), coordinate.end());
    const Power power = power_at(at, exponent());
    const double x = x_at(at), y = x * power.value;
    if (power.open || is_lost(power.value, x)) return approximately(y, std::nan(""));
    if (std::isnan(y)) return approximately(y, 0);
    return approximately(y, unit * std::fabs(y) * (power.roundings + 2) + flushed_power * std::fabs(x));
  }
};

class BackwardEvaluator final : public LocalNormEvaluator {
 public:
  BackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : LocalNormEvaluator(std::move(call), bindings, output), dy_(tensor("dy")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const Coordinate at(coordinate.begin(), coordinate.end());
    const Term through_sums = through_sums_of(at);
    if (output_name() == "dmeans") return expected({-through_sums.value, through_sums.error, through_sums.open});
    const Power power = power_at(at, exponent());
    const double dy = dy_[at], direct = dy * power.value;
    const double value = direct + through_sums.value;
    const double error = unit * (std::fabs(direct) * (power.roundings + 2) + std::fabs(value)) +
                         flushed_power * std::fabs(dy) + through_sums.error;
    return expected({value, error, power.open || through_sums.open || overflows(direct) || is_lost(power.value, dy)});
  }

 private:
  struct Term {
    double value = 0, error = 0;
    bool open = false;
  };

  static Expected expected(const Term& term) {
    return approximately(term.value, term.open ? std::nan("") : std::isfinite(term.value) ? term.error : 0);
  }

  // Effect of x and means at `centre` on the sums of all windows that they are in.
  Term through_sums_of(const Coordinate& centre) const {
    double sum = 0, size = 0, error = 0;
    int64_t count = 0;
    bool open = false;
    for_each_in_window(centre, ahead(), behind(), [&](const Coordinate& at) {
      const Power power = power_at(at, exponent() + 1);
      const double x = x_at(at), dy = dy_[at], term = dy * (x * power.value);
      sum += term;
      size += std::fabs(term);
      error += unit * std::fabs(term) * (power.roundings + 3) + flushed_power * std::fabs(dy) * (std::fabs(x) + 1);
      open = open || power.open || overflows(term) || is_lost(x * power.value, dy) || is_lost(power.value, x);
      ++count;
    });
    const double factor = -2 * scale() * exponent() * distance_at(centre);
    error = std::fabs(factor) * (error + (static_cast<double>(count) + 6) * unit * size) + flushed_power * size;
    return {factor * sum, error, open || overflows(size) || overflows(factor * size) || is_lost(factor, sum)};
  }

  Tensor dy_;
};

}  // namespace

Reference local_norm_forward_reference() {
  return {make_evaluator<ForwardEvaluator>, slack::of_local_norm_forward};
}

Reference local_norm_backward_reference() {
  return {make_evaluator<BackwardEvaluator>, slack::of_local_norm_backward};
}

}  // namespace kiln::reference
