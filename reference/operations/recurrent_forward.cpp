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
#include "operations/bounded.h"

namespace kiln::reference {
namespace {

// The states of one image in one direction.
struct Line {
  std::vector<Bounded> y;      // T,H
  std::vector<Bounded> saved;  // T,SH
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

  Bounded products(const Step& step, int64_t row, const std::vector<Bounded>& h) const {
    BoundedSum sum;
    const size_t first = static_cast<size_t>((step.direction * view_.r.extents[1] + row) * view_.hidden());
    for (size_t k = 0; k < h.size(); ++k) sum.add(weights_[first + k], as_factor(h[k], view_.r.dtype));
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

  // Parts of what a step saves, by their number.
  void save(const Step& step, int64_t unit_number, std::initializer_list<std::pair<int64_t, Bounded>> parts,
            Line& line) const {
    const int64_t first = step.time * saved_parts_of(view_.cell) * view_.hidden() + unit_number;
    for (const auto& [part, value] : parts) line.saved[static_cast<size_t>(first + part * view_.hidden())] = value;
  }

  void lstm(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    const int64_t hidden = view_.hidden();
    const Places at = places();
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

  void gru(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    const int64_t hidden = view_.hidden();
    const Places at = places();
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
      const bool is_before = view_.reset == RecurrentReset::before;
      const Bounded of_new = products(step, row, is_before ? kept : h);
      const Bounded inside = is_before ? of_new : product(reset[place], of_new);
      const Bounded n = bounded_tanh(sum_of({given(step, row), inside}));
      const Bounded rest = sum_of({{1, 0}, negative(z)});
      next.h[place] = sum_of({product(rest, n), product(z, h[place])});
      save(step, u, {{at.reset, reset[place]}, {at.update, z}, {at.fresh, n}, {3, of_new}}, next);
    }
  }

  void plain(const Step& step, const std::vector<Bounded>& h, Line& next) const {
    for (int64_t u = 0; u < view_.hidden(); ++u) {
      const Bounded sum = sum_of({given(step, u), products(step, u, h)});
      const auto relu = [](double value) { return value < 0 ? 0 : value; };
      next.h[static_cast<size_t>(u)] = view_.cell == RecurrentCell::tanh ? bounded_tanh(sum) : rising(relu, sum, 0);
      save(step, u, {{0, next.h[static_cast<size_t>(u)]}}, next);
    }
  }

  Line work_out(int64_t image, int64_t direction) const {
    const int64_t hidden = view_.hidden(), steps = view_.steps();
    Line line;
    line.y.resize(static_cast<size_t>(steps * hidden));
    line.saved.resize(static_cast<size_t>(steps * saved_parts_of(view_.cell) * hidden));
    for (int64_t u = 0; u < hidden; ++u) {
      line.h.push_back({h0_ ? (*h0_)({image, direction, u}) : 0, 0});
      line.c.push_back({c0_ ? (*c0_)({image, direction, u}) : 0, 0});
    }
    const int64_t length = lengths_ ? std::clamp<int64_t>(static_cast<int64_t>((*lengths_)({image})), 0, steps) : steps;
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
    const auto last = static_cast<size_t>(at.back());
    if (output_name() == "hn") return lines_.of(at[0], at[1]).h[last].expected();
    if (output_name() == "cn") return lines_.of(at[0], at[1]).c[last].expected();
    const Line& line = lines_.of(at[0], at[2]);
    const auto place = static_cast<size_t>(at[1] * output().extents.back()) + last;
    return (output_name() == "saved" ? line.saved : line.y)[place].expected();
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
