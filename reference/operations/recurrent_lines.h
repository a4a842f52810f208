// Parts that the references of recurrent_forward and recurrent_backward share. A line is an image in a direction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/recurrent.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/bounded.h"

namespace kiln::reference {

/// Numbers of the gates along the rows of weights.
struct GatePlaces {
  int64_t input, forget, cell, output;  ///< lstm
  int64_t reset, update, fresh;         ///< gru
};

inline GatePlaces gate_places(RecurrentOrder order) {
  return order == RecurrentOrder::ifco ? GatePlaces{0, 1, 2, 3, 0, 1, 2} : GatePlaces{0, 2, 3, 1, 1, 0, 2};
}

/// The outputs of a line.
struct RecurrentLine {
  std::vector<Bounded> result, further;  ///< T,... of y and saved, or of dgates and dproducts.
  std::vector<Bounded> h, c;             ///< States behind the last step that counts, or gradients of the first ones.
};

/// The lines of a call, of which `View` is the typed request.
template <class View>
class RecurrentLines {
 public:
  /// An operand by its name; nothing if the call has none.
  using Find = std::function<std::optional<Tensor>(const std::string&)>;

  virtual ~RecurrentLines() = default;

  /// Worked out once.
  const RecurrentLine& of(int64_t image, int64_t direction) const {
    Entry& entry = lines_[static_cast<size_t>(image * view_.directions() + direction)];
    std::call_once(entry.once, [&] { entry.line = work_out(image, direction); });
    return entry.line;
  }

 protected:
  RecurrentLines(const Request& request, const Find& find)
      : view_(View::of(request)),
        lengths_(find("lengths")),
        lines_(static_cast<size_t>(result_of(request).spec.extents[0] * view_.directions())) {
    const Tensor r = *find("r");
    weights_.reserve(static_cast<size_t>(view_.r.elements()));
    for_each_coordinate(view_.r, [&](std::span<const int64_t> at) { weights_.push_back(r[at]); });
  }

  virtual RecurrentLine work_out(int64_t image, int64_t direction) const = 0;

  const View& view() const { return view_; }
  double weight(int64_t direction, int64_t row, int64_t column) const {
    return weights_[static_cast<size_t>((direction * view_.r.extents[1] + row) * view_.r.extents[2] + column)];
  }
  /// Steps of an image that count.
  int64_t length_of(int64_t image) const {
    return lengths_ ? std::clamp<int64_t>(static_cast<int64_t>((*lengths_)({image})), 0, view_.steps()) : view_.steps();
  }
  /// Place in time of step number `number` of `length`.
  int64_t time_of(int64_t number, int64_t length, int64_t direction) const {
    const bool is_reverse = direction == 1 || view_.direction == RecurrentDirection::reverse;
    return is_reverse ? length - 1 - number : number;
  }

 private:
  struct Entry {
    std::once_flag once;
    RecurrentLine line;
  };

  View view_;
  std::optional<Tensor> lengths_;
  std::vector<double> weights_;  // r, D,GH,H
  mutable std::deque<Entry> lines_;
};

/// The element of a state, 0 where there is none.
inline double of_state(const std::optional<Tensor>& state, int64_t image, int64_t direction, int64_t unit_number) {
  return state ? (*state)({image, direction, unit_number}) : 0;
}

/// How the operands of both are filled.
inline Filling filling_of_recurrence(const Request& request, std::string_view operand, Values values) {
  if (const std::optional<int64_t> steps = most_recurrent_steps(request, operand)) return lengths_to(*steps, values);
  const std::optional<int64_t> terms = recurrent_terms(request, operand);
  if (!terms || values != Values::uniform) return {};
  // Their magnitudes add up to about 1: errors die away from step to step, and bounds stay tight however many there
  // are.
  const double scale = 2 / static_cast<double>(*terms);
  return [scale](std::span<const int64_t>, uint64_t bits) { return scale * uniform(bits); };
}

/// Elements of the outputs of `Lines`, a RecurrentLines.
template <class Lines>
class RecurrentEvaluator final : public Oracle::Evaluator {
 public:
  RecurrentEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        lines_(request(), [this](const std::string& operand) { return optional_tensor(operand); }) {}

 protected:
  Expected operation_at(std::span<const int64_t> at) const override {
    const auto last = static_cast<size_t>(at.back());
    if (output().rank() == 3) {
      const RecurrentLine& line = lines_.of(at[0], at[1]);
      return (output_name() == "cn" || output_name() == "dc0" ? line.c : line.h)[last].expected();
    }
    const RecurrentLine& line = lines_.of(at[0], at[2]);
    const bool is_further = output_name() == "saved" || output_name() == "dproducts";
    return (is_further ? line.further : line.result)[static_cast<size_t>(at[1] * output().extents.back()) + last]
        .expected();
  }

 private:
  Lines lines_;
};

}  // namespace kiln::reference
