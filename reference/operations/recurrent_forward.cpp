// Reference of recurrent_forward: the steps of an image one after the other, each with a bound of its error.
// docs/numerics.md derives the errors.
#include <algorithm>
#include <utility>
#include <vector>

#include "operations/recurrent_lines.h"

namespace kiln::reference {
namespace {

class ForwardLines final : public RecurrentLines<RecurrentForward> {
 public:
  ForwardLines(const Request& request, const Find& find)
      : RecurrentLines(request, find),
        gates_(*find("gates")),
        r_bias_(find("r_bias")),
        peepholes_(find("peepholes")),
        h0_(find("h0")),
        c0_(find("c0")) {}

 private:
  // A step as its gates see it.
  struct Step {
    int64_t image, time, direction;
  };

  Bounded products(const Step& step, int64_t row, const std::vector<Bounded>& h) const {
    BoundedSum sum;
    for (int64_t k = 0; k < view().hidden(); ++k) {
      sum.add(weight(step.direction, row, k), as_factor(h[static_cast<size_t>(k)], view().r.dtype));
    }
    if (r_bias_) sum.add({(*r_bias_)({step.direction, row}), 0});
    return sum.result();
  }
  Bounded given(const Step& step, int64_t row) const {
    return {gates_({step.image, step.time, step.direction, row}), 0};
  }
  Bounded seen(const Step& step, int64_t which, int64_t unit_number, Bounded c) const {
    if (!peepholes_) return {};
    return product({(*peepholes_)({step.direction, which * view().hidden() + unit_number}), 0}, c);
  }

  // Parts of what a step saves, by their number.
  void save(const Step& step, int64_t unit_number, std::initializer_list<std::pair<int64_t, Bounded>> parts,
            RecurrentLine& line) const {
    const int64_t first = step.time * saved_parts_of(view().cell) * view().hidden() + unit_number;
    for (const auto& [part, value] : parts) line.further[static_cast<size_t>(first + part * view().hidden())] = value;
  }

  void lstm(const Step& step, const std::vector<Bounded>& h, RecurrentLine& next) const {
    const int64_t hidden = view().hidden();
    const GatePlaces at = gate_places(view().order);
    for (int64_t u = 0; u < hidden; ++u) {
      const auto part = [&](int64_t place) {
        return sum_of({given(step, place * hidden + u), products(step, place * hidden + u, h)});
      };
      Bounded& c = next.c[static_cast<size_t>(u)];
      const Bounded i = bounded_logistic(sum_of({part(at.input), seen(step, 0, u, c)}));
      const Bounded f = bounded_logistic(sum_of({part(at.forget), seen(step, 2, u, c)}));
      const Bounded n = bounded_tanh(part(at.cell));
      c = sum_of({product(f, c), product(i, n)});
      const Bounded o = bounded_logistic(sum_of({part(at.output), seen(step, 1, u, c)}));
      next.h[static_cast<size_t>(u)] = product(o, bounded_tanh(c));
      save(step, u, {{at.input, i}, {at.forget, f}, {at.cell, n}, {at.output, o}, {4, c}}, next);
    }
  }

  void gru(const Step& step, const std::vector<Bounded>& h, RecurrentLine& next) const {
    const int64_t hidden = view().hidden();
    const GatePlaces at = gate_places(view().order);
    std::vector<Bounded> reset, kept;  // the gate, and what it lets through
    for (int64_t u = 0; u < hidden; ++u) {
      const int64_t row = at.reset * hidden + u;
      reset.push_back(bounded_logistic(sum_of({given(step, row), products(step, row, h)})));
      kept.push_back(product(reset.back(), h[static_cast<size_t>(u)]));
    }
    for (int64_t u = 0; u < hidden; ++u) {
      const auto place = static_cast<size_t>(u);
      const int64_t row = at.fresh * hidden + u, update = at.update * hidden + u;
      const Bounded z = bounded_logistic(sum_of({given(step, update), products(step, update, h)}));
      const bool is_before = view().reset == RecurrentReset::before;
      const Bounded of_new = products(step, row, is_before ? kept : h);
      const Bounded inside = is_before ? of_new : product(reset[place], of_new);
      const Bounded n = bounded_tanh(sum_of({given(step, row), inside}));
      const Bounded rest = sum_of({{1, 0}, negative(z)});
      next.h[place] = sum_of({product(rest, n), product(z, h[place])});
      save(step, u, {{at.reset, reset[place]}, {at.update, z}, {at.fresh, n}, {3, of_new}}, next);
    }
  }

  void plain(const Step& step, const std::vector<Bounded>& h, RecurrentLine& next) const {
    for (int64_t u = 0; u < view().hidden(); ++u) {
      const Bounded sum = sum_of({given(step, u), products(step, u, h)});
      const auto relu = [](double value) { return value < 0 ? 0 : value; };
      next.h[static_cast<size_t>(u)] = view().cell == RecurrentCell::tanh ? bounded_tanh(sum) : rising(relu, sum, 0);
      save(step, u, {{0, next.h[static_cast<size_t>(u)]}}, next);
    }
  }

  RecurrentLine work_out(int64_t image, int64_t direction) const override {
    const int64_t hidden = view().hidden(), length = length_of(image);
    RecurrentLine line;
    line.result.resize(static_cast<size_t>(view().steps() * hidden));
    line.further.resize(static_cast<size_t>(view().steps() * saved_parts_of(view().cell) * hidden));
    for (int64_t u = 0; u < hidden; ++u) {
      line.h.push_back({of_state(h0_, image, direction, u), 0});
      line.c.push_back({of_state(c0_, image, direction, u), 0});
    }
    for (int64_t number = 0; number < length; ++number) {
      const Step step{image, time_of(number, length, direction), direction};
      const std::vector<Bounded> before = line.h;
      if (view().cell == RecurrentCell::lstm) {
        lstm(step, before, line);
      } else if (view().cell == RecurrentCell::gru) {
        gru(step, before, line);
      } else {
        plain(step, before, line);
      }
      std::copy(line.h.begin(), line.h.end(), line.result.begin() + step.time * hidden);
    }
    return line;
  }

  Tensor gates_;
  std::optional<Tensor> r_bias_, peepholes_, h0_, c0_;
};

}  // namespace

Reference recurrent_forward_reference() {
  return {.evaluator = make_evaluator<RecurrentEvaluator<ForwardLines>>, .filling = filling_of_recurrence};
}

}  // namespace kiln::reference
