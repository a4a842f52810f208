// Reference of recurrent_backward: the steps of an image from the last to the first, each with a bound of its error.
// docs/numerics.md derives the errors.
#include <algorithm>
#include <cmath>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/recurrent.h"
#include "operations/bounded.h"

namespace kiln::reference {
namespace {

// The gradients of one image in one direction.
struct GradientLine {
  std::vector<Bounded> gates, products;  // T,GH
  std::vector<Bounded> h, c;             // of the states before the first step
};

struct GradientOperands {
  Tensor dy, saved;
  std::optional<Tensor> y, peepholes, h0, c0, lengths, dhn, dcn;
};

class GradientLines {
 public:
  GradientLines(const RecurrentBackward& view, const Tensor& r, GradientOperands operands)
      : view_(view), given_(std::move(operands)), lines_(static_cast<size_t>(view.dy.extents[0] * view.directions())) {
    weights_.reserve(static_cast<size_t>(view.r.elements()));
    for_each_coordinate(view.r, [&](std::span<const int64_t> at) { weights_.push_back(r[at]); });
  }

  // Worked out once.
  const GradientLine& of(int64_t image, int64_t direction) const {
    Entry& entry = lines_[static_cast<size_t>(image * view_.directions() + direction)];
    std::call_once(entry.once, [&] { entry.line = work_out(image, direction); });
    return entry.line;
  }

 private:
  struct Entry {
    std::once_flag once;
    GradientLine line;
  };

  // A step, and the place in time of the one before; none (-1) before the first.
  struct Step {
    int64_t image, time, before, direction;
  };

  double part(const Step& step, int64_t number, int64_t u) const {
    return given_.saved({step.image, step.time, step.direction, number * view_.hidden() + u});
  }
  double of_state(const std::optional<Tensor>& state, const Step& step, int64_t u) const {
    return state ? (*state)({step.image, step.direction, u}) : 0;
  }

  // a (1 - a), and 1 - a^2, of exact values.
  static Bounded slope_of_logistic(double a) { return product({a, 0}, sum_of({{1, 0}, {-a, 0}})); }
  static Bounded slope_of_tanh(double a) { return product(sum_of({{1, 0}, {-a, 0}}), sum_of({{1, 0}, {a, 0}})); }

  // The sum over rows `first` to `last` (not with it) of r, of gradients that begin with row 0, in column u.
  Bounded through_weights(const Step& step, const std::vector<Bounded>& gradients, int64_t first, int64_t last,
                          int64_t u) const {
    BoundedSum sum;
    for (int64_t row = first; row < last; ++row) {
      const auto place = static_cast<size_t>((step.direction * view_.r.extents[1] + row) * view_.hidden() + u);
      sum.add(weights_[place], as_factor(gradients[static_cast<size_t>(row)], view_.r.dtype));
    }
    return sum.result();
  }

  // Each fills the gradients of the step's rows, and leaves in `line` those of the states before it.
  void lstm(const Step& step, std::vector<Bounded>& rows, GradientLine& line) const {
    const bool is_ifco = view_.order == RecurrentOrder::ifco;
    const int64_t hidden = view_.hidden(), input = 0, forget = is_ifco ? 1 : 2, cell = is_ifco ? 2 : 3,
                  output = is_ifco ? 3 : 1;
    for (int64_t u = 0; u < hidden; ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      Bounded& dc = line.c[static_cast<size_t>(u)];
      const double i = part(step, input, u), f = part(step, forget, u), n = part(step, cell, u),
                   o = part(step, output, u), c = part(step, 4, u);
      const double before = step.before < 0 ? of_state(given_.c0, step, u)
                                            : given_.saved({step.image, step.before, step.direction, 4 * hidden + u});
      // Part of c's gradient that a gate brings through its peephole.
      const auto seen = [&](int64_t which, Bounded gradient) -> Bounded {
        if (!given_.peepholes) return {};
        return product({(*given_.peepholes)({step.direction, which * hidden + u}), 0}, gradient);
      };
      const Bounded squashed = bounded_tanh({c, 0});
      const Bounded slope = product(sum_of({{1, 0}, negative(squashed)}), sum_of({{1, 0}, squashed}));
      const Bounded of_output = product(product(dh, squashed), slope_of_logistic(o));
      const Bounded of_c = sum_of({dc, product(product(dh, {o, 0}), slope), seen(1, of_output)});
      const Bounded of_input = product(product(of_c, {n, 0}), slope_of_logistic(i));
      const Bounded of_forget = product(product(of_c, {before, 0}), slope_of_logistic(f));
      rows[static_cast<size_t>(input * hidden + u)] = of_input;
      rows[static_cast<size_t>(forget * hidden + u)] = of_forget;
      rows[static_cast<size_t>(cell * hidden + u)] = product(product(of_c, {i, 0}), slope_of_tanh(n));
      rows[static_cast<size_t>(output * hidden + u)] = of_output;
      dc = sum_of({product(of_c, {f, 0}), seen(0, of_input), seen(2, of_forget)});
    }
    for (int64_t u = 0; u < hidden; ++u) {
      line.h[static_cast<size_t>(u)] = through_weights(step, rows, 0, 4 * hidden, u);
    }
  }

  void gru(const Step& step, std::vector<Bounded>& rows, std::vector<Bounded>& products, GradientLine& line) const {
    const bool is_ifco = view_.order == RecurrentOrder::ifco, is_before = view_.reset == RecurrentReset::before;
    const int64_t hidden = view_.hidden(), reset = is_ifco ? 0 : 1, update = is_ifco ? 1 : 0, fresh = 2;
    const auto state = [&](int64_t u) {
      return step.before < 0 ? of_state(given_.h0, step, u) : (*given_.y)({step.image, step.before, step.direction, u});
    };
    for (int64_t u = 0; u < hidden; ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      const double q = part(step, reset, u), z = part(step, update, u), n = part(step, fresh, u);
      const Bounded of_new = product(product(dh, sum_of({{1, 0}, {-z, 0}})), slope_of_tanh(n));
      rows[static_cast<size_t>(update * hidden + u)] =
          product(product(dh, sum_of({{state(u), 0}, {-n, 0}})), slope_of_logistic(z));
      rows[static_cast<size_t>(fresh * hidden + u)] = of_new;
      if (!is_before) {
        rows[static_cast<size_t>(reset * hidden + u)] =
            product(product(of_new, {part(step, 3, u), 0}), slope_of_logistic(q));
      }
    }
    products = rows;
    std::vector<Bounded> next(static_cast<size_t>(hidden));
    for (int64_t u = 0; u < hidden; ++u) {
      const double q = part(step, reset, u);
      Bounded& of_new = products[static_cast<size_t>(fresh * hidden + u)];
      next[static_cast<size_t>(u)] = product(line.h[static_cast<size_t>(u)], {part(step, update, u), 0});
      if (!is_before) {
        of_new = product(of_new, {q, 0});
        continue;
      }
      const Bounded passed = through_weights(step, rows, fresh * hidden, (fresh + 1) * hidden, u);
      products[static_cast<size_t>(reset * hidden + u)] = product(product(passed, {state(u), 0}), slope_of_logistic(q));
      next[static_cast<size_t>(u)] = sum_of({next[static_cast<size_t>(u)], product(passed, {q, 0})});
    }
    if (is_before) rows = products;
    for (int64_t u = 0; u < hidden; ++u) {
      const int64_t last = is_before ? 2 * hidden : 3 * hidden;
      line.h[static_cast<size_t>(u)] =
          sum_of({next[static_cast<size_t>(u)], through_weights(step, products, 0, last, u)});
    }
  }

  void plain(const Step& step, std::vector<Bounded>& rows, GradientLine& line) const {
    for (int64_t u = 0; u < view_.hidden(); ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      const double h = part(step, 0, u);
      const Bounded slope = view_.cell == RecurrentCell::tanh ? slope_of_tanh(h)
                            : std::isnan(h)                   ? Bounded{h, 0}
                                                              : Bounded{h > 0 ? 1.0 : 0.0, 0};
      // Where relu is flat, the gradient is 0 whatever comes.
      const bool is_flat = view_.cell == RecurrentCell::relu && slope.value == 0;
      rows[static_cast<size_t>(u)] = is_flat ? Bounded{} : product(dh, slope);
    }
    for (int64_t u = 0; u < view_.hidden(); ++u) {
      line.h[static_cast<size_t>(u)] = through_weights(step, rows, 0, view_.hidden(), u);
    }
  }

  GradientLine work_out(int64_t image, int64_t direction) const {
    const int64_t hidden = view_.hidden(), steps = view_.steps(), count = view_.r.extents[1];
    GradientLine line;
    line.gates.resize(static_cast<size_t>(steps * count));
    line.products.resize(static_cast<size_t>(steps * count));
    const Step last{image, 0, 0, direction};
    for (int64_t u = 0; u < hidden; ++u) {
      line.h.push_back({of_state(given_.dhn, last, u), 0});
      line.c.push_back({of_state(given_.dcn, last, u), 0});
    }
    const int64_t length =
        given_.lengths ? std::clamp<int64_t>(static_cast<int64_t>((*given_.lengths)({image})), 0, steps) : steps;
    const bool is_reverse = direction == 1 || view_.direction == RecurrentDirection::reverse;
    for (int64_t number = length - 1; number >= 0; --number) {
      const Step step{image, is_reverse ? length - 1 - number : number,
                      number == 0  ? -1
                      : is_reverse ? length - number
                                   : number - 1,
                      direction};
      for (int64_t u = 0; u < hidden; ++u) {
        line.h[static_cast<size_t>(u)] =
            sum_of({line.h[static_cast<size_t>(u)], {given_.dy({image, step.time, direction, u}), 0}});
      }
      std::vector<Bounded> rows(static_cast<size_t>(count)), products;
      if (view_.cell == RecurrentCell::lstm) {
        lstm(step, rows, line);
      } else if (view_.cell == RecurrentCell::gru) {
        gru(step, rows, products, line);
      } else {
        plain(step, rows, line);
      }
      if (products.empty()) products = rows;
      std::copy(rows.begin(), rows.end(), line.gates.begin() + step.time * count);
      std::copy(products.begin(), products.end(), line.products.begin() + step.time * count);
    }
    return line;
  }

  RecurrentBackward view_;
  std::vector<double> weights_;  // r, D,GH,H
  GradientOperands given_;
  mutable std::deque<Entry> lines_;
};

class RecurrentBackwardEvaluator final : public Oracle::Evaluator {
 public:
  RecurrentBackwardEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        lines_(RecurrentBackward::of(request()), tensor("r"),
               {tensor("dy"), tensor("saved"), optional("y"), optional("peepholes"), optional("h0"), optional("c0"),
                optional("lengths"), optional("dhn"), optional("dcn")}) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const auto last = static_cast<size_t>(at.back());
    if (output_name() == "dh0") return lines_.of(at[0], at[1]).h[last].expected();
    if (output_name() == "dc0") return lines_.of(at[0], at[1]).c[last].expected();
    const GradientLine& line = lines_.of(at[0], at[2]);
    const auto place = static_cast<size_t>(at[1] * output().extents.back()) + last;
    return (output_name() == "dproducts" ? line.products : line.gates)[place].expected();
  }

 private:
  std::optional<Tensor> optional(const std::string& operand) const {
    if (request().find(operand) == nullptr) return std::nullopt;
    return tensor(operand);
  }

  GradientLines lines_;
};

}  // namespace

Reference recurrent_backward_reference() {
  return {make_evaluator<RecurrentBackwardEvaluator>};
}

}  // namespace kiln::reference
