// Reference of recurrent_backward: the steps of an image from the last to the first, each with a bound of its error.
// docs/numerics.md derives the errors.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "operations/recurrent_lines.h"

namespace kiln::reference {
namespace {

class GradientLines final : public RecurrentLines<RecurrentBackward> {
 public:
  GradientLines(const Request& request, const Find& find)
      : RecurrentLines(request, find),
        dy_(*find("dy")),
        saved_(*find("saved")),
        y_(find("y")),
        peepholes_(find("peepholes")),
        h0_(find("h0")),
        c0_(find("c0")),
        dhn_(find("dhn")),
        dcn_(find("dcn")) {}

 private:
  // A step, and the place in time of the one before; none (-1) before the first.
  struct Step {
    int64_t image, time, before, direction;
  };

  double part(const Step& step, int64_t number, int64_t u) const {
    return saved_({step.image, step.time, step.direction, number * view().hidden() + u});
  }

  // a (1 - a), and 1 - a^2, of exact values.
  static Bounded slope_of_logistic(double a) { return product({a, 0}, sum_of({{1, 0}, {-a, 0}})); }
  static Bounded slope_of_tanh(double a) { return product(sum_of({{1, 0}, {-a, 0}}), sum_of({{1, 0}, {a, 0}})); }

  // The sum over rows `first` to `last` (not with it) of r, of gradients that begin with row 0, in column u.
  Bounded through_weights(const Step& step, const std::vector<Bounded>& gradients, int64_t first, int64_t last,
                          int64_t u) const {
    BoundedSum sum;
    for (int64_t row = first; row < last; ++row) {
      sum.add(weight(step.direction, row, u), as_factor(gradients[static_cast<size_t>(row)], view().r.dtype));
    }
    return sum.result();
  }

  // Each fills the gradients of the step's rows, and leaves in `line` those of the states before it.
  void lstm(const Step& step, std::vector<Bounded>& rows, RecurrentLine& line) const {
    const GatePlaces at = gate_places(view().order);
    const int64_t hidden = view().hidden();
    for (int64_t u = 0; u < hidden; ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      Bounded& dc = line.c[static_cast<size_t>(u)];
      const double i = part(step, at.input, u), f = part(step, at.forget, u), n = part(step, at.cell, u),
                   o = part(step, at.output, u), c = part(step, 4, u);
      const double before = step.before < 0 ? of_state(c0_, step.image, step.direction, u)
                                            : saved_({step.image, step.before, step.direction, 4 * hidden + u});
      // Part of c's gradient that a gate brings through its peephole.
      const auto seen = [&](int64_t which, Bounded gradient) -> Bounded {
        if (!peepholes_) return {};
        return product({(*peepholes_)({step.direction, which * hidden + u}), 0}, gradient);
      };
      const Bounded squashed = bounded_tanh({c, 0});
      const Bounded slope = product(sum_of({{1, 0}, negative(squashed)}), sum_of({{1, 0}, squashed}));
      const Bounded of_output = product(product(dh, squashed), slope_of_logistic(o));
      const Bounded of_c = sum_of({dc, product(product(dh, {o, 0}), slope), seen(1, of_output)});
      const Bounded of_input = product(product(of_c, {n, 0}), slope_of_logistic(i));
      const Bounded of_forget = product(product(of_c, {before, 0}), slope_of_logistic(f));
      rows[static_cast<size_t>(at.input * hidden + u)] = of_input;
      rows[static_cast<size_t>(at.forget * hidden + u)] = of_forget;
      rows[static_cast<size_t>(at.cell * hidden + u)] = product(product(of_c, {i, 0}), slope_of_tanh(n));
      rows[static_cast<size_t>(at.output * hidden + u)] = of_output;
      dc = sum_of({product(of_c, {f, 0}), seen(0, of_input), seen(2, of_forget)});
    }
    for (int64_t u = 0; u < hidden; ++u) {
      line.h[static_cast<size_t>(u)] = through_weights(step, rows, 0, 4 * hidden, u);
    }
  }

  void gru(const Step& step, std::vector<Bounded>& rows, std::vector<Bounded>& products, RecurrentLine& line) const {
    const GatePlaces at = gate_places(view().order);
    const bool is_before = view().reset == RecurrentReset::before;
    const int64_t hidden = view().hidden();
    const auto state = [&](int64_t u) {
      return step.before < 0 ? of_state(h0_, step.image, step.direction, u)
                             : (*y_)({step.image, step.before, step.direction, u});
    };
    for (int64_t u = 0; u < hidden; ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      const double q = part(step, at.reset, u), z = part(step, at.update, u), n = part(step, at.fresh, u);
      const Bounded of_new = product(product(dh, sum_of({{1, 0}, {-z, 0}})), slope_of_tanh(n));
      rows[static_cast<size_t>(at.update * hidden + u)] =
          product(product(dh, sum_of({{state(u), 0}, {-n, 0}})), slope_of_logistic(z));
      rows[static_cast<size_t>(at.fresh * hidden + u)] = of_new;
      if (!is_before) {
        rows[static_cast<size_t>(at.reset * hidden + u)] =
            product(product(of_new, {part(step, 3, u), 0}), slope_of_logistic(q));
      }
    }
    products = rows;
    std::vector<Bounded> next(static_cast<size_t>(hidden));
    for (int64_t u = 0; u < hidden; ++u) {
      const double q = part(step, at.reset, u);
      Bounded& of_new = products[static_cast<size_t>(at.fresh * hidden + u)];
      next[static_cast<size_t>(u)] = product(line.h[static_cast<size_t>(u)], {part(step, at.update, u), 0});
      if (!is_before) {
        of_new = product(of_new, {q, 0});
        continue;
      }
      const Bounded passed = through_weights(step, rows, at.fresh * hidden, (at.fresh + 1) * hidden, u);
      products[static_cast<size_t>(at.reset * hidden + u)] =
          product(product(passed, {state(u), 0}), slope_of_logistic(q));
      next[static_cast<size_t>(u)] = sum_of({next[static_cast<size_t>(u)], product(passed, {q, 0})});
    }
    if (is_before) rows = products;
    for (int64_t u = 0; u < hidden; ++u) {
      const int64_t last = is_before ? 2 * hidden : 3 * hidden;
      line.h[static_cast<size_t>(u)] =
          sum_of({next[static_cast<size_t>(u)], through_weights(step, products, 0, last, u)});
    }
  }

  void plain(const Step& step, std::vector<Bounded>& rows, RecurrentLine& line) const {
    for (int64_t u = 0; u < view().hidden(); ++u) {
      const Bounded dh = line.h[static_cast<size_t>(u)];
      const double h = part(step, 0, u);
      const Bounded slope = view().cell == RecurrentCell::tanh ? slope_of_tanh(h)
                            : std::isnan(h)                    ? Bounded{h, 0}
                                                               : Bounded{h > 0 ? 1.0 : 0.0, 0};
      // Where relu is flat, the gradient is 0 whatever comes.
      const bool is_flat = view().cell == RecurrentCell::relu && slope.value == 0;
      rows[static_cast<size_t>(u)] = is_flat ? Bounded{} : product(dh, slope);
    }
    for (int64_t u = 0; u < view().hidden(); ++u) {
      line.h[static_cast<size_t>(u)] = through_weights(step, rows, 0, view().hidden(), u);
    }
  }

  RecurrentLine work_out(int64_t image, int64_t direction) const override {
    const int64_t hidden = view().hidden(), count = view().r.extents[1], length = length_of(image);
    RecurrentLine line;
    line.result.resize(static_cast<size_t>(view().steps() * count));
    line.further.resize(line.result.size());
    for (int64_t u = 0; u < hidden; ++u) {
      line.h.push_back({of_state(dhn_, image, direction, u), 0});
      line.c.push_back({of_state(dcn_, image, direction, u), 0});
    }
    for (int64_t number = length - 1; number >= 0; --number) {
      const Step step{image, time_of(number, length, direction),
                      number == 0 ? -1 : time_of(number - 1, length, direction), direction};
      for (int64_t u = 0; u < hidden; ++u) {
        line.h[static_cast<size_t>(u)] =
            sum_of({line.h[static_cast<size_t>(u)], {dy_({image, step.time, direction, u}), 0}});
      }
      std::vector<Bounded> rows(static_cast<size_t>(count)), products;
      if (view().cell == RecurrentCell::lstm) {
        lstm(step, rows, line);
      } else if (view().cell == RecurrentCell::gru) {
        gru(step, rows, products, line);
      } else {
        plain(step, rows, line);
      }
      if (products.empty()) products = rows;
      std::copy(rows.begin(), rows.end(), line.result.begin() + step.time * count);
      std::copy(products.begin(), products.end(), line.further.begin() + step.time * count);
    }
    return line;
  }

  Tensor dy_, saved_;
  std::optional<Tensor> y_, peepholes_, h0_, c0_, dhn_, dcn_;
};

}  // namespace

Reference recurrent_backward_reference() {
  return {.evaluator = make_evaluator<RecurrentEvaluator<GradientLines>>, .filling = filling_of_recurrence};
}

}  // namespace kiln::reference
