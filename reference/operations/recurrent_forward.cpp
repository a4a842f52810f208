// Reference of recurrent_forward: the steps of an image one after the other, each with a bound of its error.
// docs/numerics.md derives the errors.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/recurrent.h"
#include "operations/norm.h"

namespace kiln::reference {
namespace {

constexpr double unknown = std::numeric_limits<double>::infinity();  // an error: f32 may overflow

/// A value, and the most that f32 arithmetic is off it; infinite where that may overflow.
struct Bounded {
  double value = 0, error = 0;
};

// A sum of terms that are known to errors of their own, in any order.
class BoundedSum {
 public:
  void add(Bounded term) {
    value_ += term.value;
    magnitude_ += std::fabs(term.value);
    error_ += term.error;
    ++terms_;
  }
  // Products whose factor is exact; no error stays none, and an unknown one unknown, whatever the factor.
  void add(double factor, Bounded other) {
    add({factor * other.value, other.error == 0 ? 0 : std::isinf(other.error) ? unknown : std::fabs(factor) * other.error});
  }

  Bounded result() const {
    if (std::isfinite(magnitude_) && magnitude_ + error_ > largest_sum) return {value_, unknown};
    if (!std::isfinite(value_)) return {value_, std::isinf(error_) ? unknown : 0};
    // A product, and its way through the sums; denormal results are off by their distance.
    return {value_, error_ + (static_cast<double>(terms_) + 1) * (unit * (magnitude_ + error_) + 0x1p-149)};
  }

 private:
  double value_ = 0, magnitude_ = 0, error_ = 0;
  int64_t terms_ = 0;
};

// f of a value that is known to an error, for an f that never falls and whose own error is `units` of its result.
template <class Function>
Bounded rising(const Function& f, Bounded x, double units) {
  const double value = f(x.value);
  if (std::isinf(x.error) || !std::isfinite(value)) return {value, x.error};
  const double moved = std::max(f(x.value + x.error) - value, value - f(x.value - x.error));
  return {value, moved + units * unit * (std::fabs(value) + moved) + 0x1p-125};
}

double logistic(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

Bounded gate(Bounded x) {
  return rising(logistic, x, 8);
}

Bounded squashed(Bounded x) {
  return rising([](double value) { return std::tanh(value); }, x, 4);
}

Bounded product(Bounded a, Bounded b) {
  const double value = a.value * b.value;
  if (std::isinf(a.error) || std::isinf(b.error)) return {value, unknown};
  if (!std::isfinite(value)) return {value, 0};
  const double error = std::fabs(a.value) * b.error + (std::fabs(b.value) + b.error) * a.error;
  if (std::fabs(value) + error > largest_sum) return {value, unknown};
  return {value, error + unit * (std::fabs(value) + error) + 0x1p-149};
}

Bounded sum_of(std::initializer_list<Bounded> terms) {
  BoundedSum sum;
  for (const Bounded& term : terms) sum.add(term);
  return sum.result();
}

// The states of one image in one direction.
struct Line {
  std::vector<Bounded> y;  // T,H
  std::vector<Bounded> h, c;
};

class Lines {
 public:
  Lines(const RecurrentForward& view, Tensor gates, const Tensor& r, std::optional<Tensor> r_bias,
        std::optional<Tensor> peepholes, std::optional<Tensor> h0, std::optional<Tensor> c0,
        std::optional<Tensor> lengths)
      : view_(view),
        gates_(std::move(gates)),
        r_bias_(std::move(r_bias)),
        peepholes_(std::move(peepholes)),
        h0_(std::move(h0)),
        c0_(std::move(c0)),
        lengths_(std::move(lengths)),
        lines_(static_cast<size_t>(view.gates.extents[0] * view.directions())) {
    weights_.reserve(static_cast<size_t>(view.r.elements()));
    for_each_coordinate(view.r, [&](std::span<const int64_t> at) { weights_.push_back(r[at]); });
  }

  // Worked out once.
  const Line& of(int64_t image, int64_t direction) const {
    Entry& entry = lines_[static_cast<size_t>(image * view_.directions() + direction)];
    std::call_once(entry.once, [&] { entry.line = work_out(image, direction); });
    return entry.line;
  }

 private:
  struct Entry {
    std::once_flag once;
    Line line;
  };

  // A step as its gates see it.
  struct Step {
    int64_t image, time, direction;
  };

  // Numbers of the gates along the rows of weights.
  struct Places {
    int64_t input, forget, cell, output;  // lstm
    int64_t reset, update, fresh;         // gru
  };
  Places places() const {
    return view_.order == RecurrentOrder::ifco ? Places{0, 1, 2, 3, 0, 1, 2} : Places{0, 2, 3, 1, 1, 0, 2};
  }

  // Kernels may round h to the dtype of r.
  Bounded as_factor(Bounded h) const {
    const DType dtype = view_.r.dtype;
    if (dtype == DType::f32 || !std::isfinite(h.value) || std::isinf(h.error)) return h;
    const double most = std::fabs(h.value) + h.error;
    if (most > traits(dtype).largest) return {h.value, unknown};
    return {h.value, h.error + std::ldexp(most, -traits(dtype).digits) +
                         std::ldexp(1.0, traits(dtype).least_exponent - traits(dtype).digits)};
  }

  Bounded products(const Step& step, int64_t row, const std::vector<Bounded>& h) const {
    BoundedSum sum;
    const size_t first = static_cast<size_t>((step.direction * view_.r.extents[1] + row) * view_.hidden());
    for (size_t k = 0; k < h.size(); ++k) sum.add(weights_[first + k], as_factor(h[k]));
    if (r_bias_) sum.add({(*r_bias_)({step.direction, row}), 0});
    return sum.result();
  }
  Bounded given(const Step& step, int64_t row) const {
    return {gates_({step.image, step.time, step.direction, row}), 0};
  }
  Bounded seen(const Step& step, int64_t which, int64_t unit_number, Bounded c) const {
    if (!peepholes_) return {};
    return product({(*peepholes_)({step.direction, which * view_.hidden() + unit_number}), 0}, c);
  }

  void lstm(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    const int64_t hidden = view_.hidden();
    const Places at = places();
    for (int64_t u = 0; u < hidden; ++u) {
      const auto part = [&](int64_t place) {
        return sum_of({given(step, place * hidden + u), products(step, place * hidden + u, h)});
      };
      Bounded& c = next.c[static_cast<size_t>(u)];
      const Bounded i = gate(sum_of({part(at.input), seen(step, 0, u, c)}));
      const Bounded f = gate(sum_of({part(at.forget), seen(step, 2, u, c)}));
      c = sum_of({product(f, c), product(i, squashed(part(at.cell)))});
      const Bounded o = gate(sum_of({part(at.output), seen(step, 1, u, c)}));
      next.h[static_cast<size_t>(u)] = product(o, squashed(c));
    }
  }

  void gru(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    const int64_t hidden = view_.hidden();
    const Places at = places();
    std::vector<Bounded> reset, kept;  // the gate, and what it lets through
    for (int64_t u = 0; u < hidden; ++u) {
      const int64_t row = at.reset * hidden + u;
      reset.push_back(gate(sum_of({given(step, row), products(step, row, h)})));
      kept.push_back(product(reset.back(), h[static_cast<size_t>(u)]));
    }
    for (int64_t u = 0; u < hidden; ++u) {
      const auto place = static_cast<size_t>(u);
      const int64_t row = at.fresh * hidden + u, update = at.update * hidden + u;
      const Bounded z = gate(sum_of({given(step, update), products(step, update, h)}));
      const Bounded inside = view_.reset == RecurrentReset::before ? products(step, row, kept)
                                                              : product(reset[place], products(step, row, h));
      const Bounded n = squashed(sum_of({given(step, row), inside}));
      const Bounded rest = sum_of({{1, 0}, {-z.value, z.error}});
      next.h[place] = sum_of({product(rest, n), product(z, h[place])});
    }
  }

  void plain(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    for (int64_t u = 0; u < view_.hidden(); ++u) {
      const Bounded sum = sum_of({given(step, u), products(step, u, h)});
      const auto relu = [](double value) { return value < 0 ? 0 : value; };
      next.h[static_cast<size_t>(u)] = view_.cell == RecurrentCell::tanh ? squashed(sum) : rising(relu, sum, 0);
    }
  }

  Line work_out(int64_t image, int64_t direction) const {
    const int64_t hidden = view_.hidden(), steps = view_.steps();
    Line line;
    line.y.resize(static_cast<size_t>(steps * hidden));
    for (int64_t u = 0; u < hidden; ++u) {
      line.h.push_back({h0_ ? (*h0_)({image, direction, u}) : 0, 0});
      line.c.push_back({c0_ ? (*c0_)({image, direction, u}) : 0, 0});
    }
    const int64_t length =
        lengths_ ? std::clamp<int64_t>(static_cast<int64_t>((*lengths_)({image})), 0, steps) : steps;
    const bool is_reverse = direction == 1 || view_.direction == RecurrentDirection::reverse;
    for (int64_t number = 0; number < length; ++number) {
      const Step step{image, is_reverse ? length - 1 - number : number, direction};
      const std::vector<Bounded> before = line.h;
      if (view_.cell == RecurrentCell::lstm) {
        lstm(step, before, line);
      } else if (view_.cell == RecurrentCell::gru) {
        gru(step, before, line);
      } else {
        plain(step, before, line);
      }
      std::copy(line.h.begin(), line.h.end(), line.y.begin() + step.time * hidden);
    }
    return line;
  }

  RecurrentForward view_;
  Tensor gates_;
  std::vector<double> weights_;  // r, D,GH,H
  std::optional<Tensor> r_bias_, peepholes_, h0_, c0_, lengths_;
  mutable std::deque<Entry> lines_;
};

class RecurrentForwardEvaluator final : public Oracle::Evaluator {
 public:
  RecurrentForwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        lines_(RecurrentForward::of(request()), tensor("gates"), tensor("r"), optional("r_bias"), optional("peepholes"),
               optional("h0"), optional("c0"), optional("lengths")) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const auto hidden = static_cast<size_t>(output().extents.back()), unit_number = static_cast<size_t>(at.back());
    const bool is_state = output().rank() == 3;
    const Line& line = lines_.of(at[0], at[is_state ? 1 : 2]);
    const Bounded value = output_name() == "hn"   ? line.h[unit_number]
                          : output_name() == "cn" ? line.c[unit_number]
                                                  : line.y[static_cast<size_t>(at[1]) * hidden + unit_number];
    return approximately(value.value, std::isinf(value.error) ? std::nan("") : value.error);
  }

 private:
  std::optional<Tensor> optional(const std::string& operand) const {
    if (request().find(operand) == nullptr) return std::nullopt;
    return tensor(operand);
  }

  Lines lines_;
};

}  // namespace

Reference recurrent_forward_reference() {
  return {make_evaluator<RecurrentForwardEvaluator>};
}

}  // namespace kiln::reference
