// Reference of scatter: the updates of an element one after the other.
#include "kiln/generator/operations/scatter.h"

#include <cmath>
#include <limits>
#include <utility>

#include "evaluator.h"
#include "operations/bounded.h"
#include "operations/indices.h"
#include "operations/norm.h"

namespace kiln::reference {
namespace {

class ScatterEvaluator final : public Oracle::Evaluator {
 public:
  ScatterEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        scatter_(Scatter::of(request())),
        updates_(tensor("updates")),
        indices_(scatter_.indices, tensor("indices")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    constexpr double most = std::numeric_limits<double>::infinity();
    BoundedSum sum;
    Bounded product_of_all = {1, 0};
    const bool is_min = scatter_.mode == ScatterMode::min;
    double extreme = is_min ? most : -most;
    for_each_update(coordinate, [&](double update) {
      sum.add({update, 0});
      product_of_all = product(product_of_all, {update, 0});
      const bool is_beyond = is_min ? update < extreme : update > extreme;
      if (is_beyond || std::isnan(update)) extreme = std::isnan(extreme) ? extreme : update;
    });
    switch (scatter_.mode) {
      case ScatterMode::add:
        return sum.result().expected();
      case ScatterMode::mul:
        return product_of_all.expected();
      default:
        return {.value = extreme, .magnitude = std::fabs(extreme), .quantum = quantum_of(extreme)};
    }
  }

 private:
  template <class Visit>
  void for_each_update(std::span<const int64_t> coordinate, const Visit& visit) const {
    const auto axis = static_cast<size_t>(scatter_.axis);
    const int64_t positions = scatter_.y.extents[axis];
    Coordinate at(coordinate.begin(), coordinate.end());
    for (int64_t i = 0; i < scatter_.updates.extents[axis]; ++i) {
      at[axis] = i;
      const auto index = static_cast<int64_t>(indices_[at]);
      if ((index < 0 ? index + positions : index) == coordinate[axis]) visit(updates_[at]);
    }
  }

  Scatter scatter_;
  Tensor updates_;
  Repeating indices_;
};

Filling filling_of_scatter(const Request& request, std::string_view operand, Values values) {
  if (operand != "indices") return {};
  const Scatter view = Scatter::of(request);
  const int64_t positions = view.y.extents[static_cast<size_t>(view.axis)];
  return [positions, values](std::span<const int64_t>, uint64_t bits) {
    return static_cast<double>(draw_index(positions, values, bits));
  };
}

}  // namespace

Reference scatter_reference() {
  return {.evaluator = make_evaluator<ScatterEvaluator>, .filling = filling_of_scatter};
}

}  // namespace kiln::reference
