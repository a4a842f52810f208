// References of grid_sample and its gradients: weights along each axis, at positions that are exact.
#include "kiln/generator/operations/grid_sample.h"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "evaluator.h"
#include "operations/bounded.h"
#include "operations/grid_taps.h"
#include "operations/norm.h"
#include "operations/once.h"
#include "operations/resize_taps.h"

namespace kiln::reference {
namespace {

using TapsOfAxes = std::vector<std::vector<GridTap>>;

/// Taps along h and w, or d, h and w, of an output: `at` is its coordinate in y, whose dimension 1 is not looked at.
TapsOfAxes taps_at(const GridSampling& sampling, const Tensor& grid, const TensorSpec& x, std::span<const int64_t> at) {
  const size_t axes = x.extents.size() - 2;
  Coordinate place = {at[0]};
  place.insert(place.end(), at.begin() + 2, at.end());
  place.push_back(0);
  TapsOfAxes taps;
  for (size_t axis = 0; axis < axes; ++axis) {
    place.back() = static_cast<int64_t>(axes - 1 - axis);  // coordinates are along w first
    taps.push_back(grid_taps(sampling, static_cast<float>(grid[place]), x.extents[2 + axis]));
  }
  return taps;
}

/// The same as the taps that resize has. `derived`: the axis whose slopes stand in place of weights, if there is one.
ResizeTapsOfAxes weights_of(const TapsOfAxes& taps, std::optional<size_t> derived = std::nullopt) {
  ResizeTapsOfAxes weights;
  for (size_t axis = 0; axis < taps.size(); ++axis) {
    std::vector<ResizeTap>& of_axis = weights.emplace_back();
    for (const GridTap& tap : taps[axis]) {
      const bool slopes = derived == axis;
      of_axis.push_back({tap.position, slopes ? tap.slope : tap.weight, slopes ? tap.slope_error : tap.error});
    }
  }
  return weights;
}

class GridSampleEvaluator final : public Oracle::Evaluator {
 public:
  GridSampleEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(GridSample::of(request())),
        x_(tensor("x")),
        grid_(tensor("grid")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const ResizeTapsOfAxes axes = weights_of(taps_at(view_, grid_, view_.x, coordinate));
    WeightedSum sum;
    for_each_resize_tap(axes, {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double weight, double error) { sum.add(x_[at], weight, error); });
    if (view_.mode != GridMode::nearest) return sum.expected(17, 2);
    double copied = 0;  // of the only term, if there is one
    for_each_resize_tap(axes, {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double, double) { copied = x_[at]; });
    return {.value = copied, .magnitude = std::fabs(copied), .quantum = quantum_of(copied)};
  }

 private:
  GridSample view_;
  Tensor x_, grid_;
};

// Adds a product to a sum: anything where an infinity meets what may be 0.
void add_product(double dy, Bounded derivative, BoundedSum& sum) {
  const bool may_be_zero = std::fabs(derivative.value) <= derivative.error;
  sum.add(!std::isfinite(dy) && may_be_zero ? Bounded{0, Bounded::unknown} : product({dy, 0}, derivative));
}

struct GridElement {
  WeightedSum sum;
  int64_t terms = 0;
};
/// A plane of dx: an image and a channel, in logical order.
using GridPlane = std::vector<GridElement>;

class GridSampleBackwardDataEvaluator final : public Oracle::Evaluator {
 public:
  GridSampleBackwardDataEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(GridSampleBackwardData::of(request())),
        dy_(tensor("dy")),
        grid_(tensor("grid")),
        planes_(view_.dx.extents[0] * view_.dx.extents[1]) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const int64_t number = coordinate[0] * view_.dx.extents[1] + coordinate[1];
    const GridPlane& plane = planes_.of(number, [&] { return work_out(coordinate[0], coordinate[1]); });
    const GridElement& element = plane[place_of(coordinate)];
    return element.sum.expected(4 + static_cast<double>(element.terms), 2);
  }

 private:
  size_t place_of(std::span<const int64_t> coordinate) const {
    int64_t place = 0;
    for (size_t i = 2; i < coordinate.size(); ++i) place = place * view_.dx.extents[i] + coordinate[i];
    return static_cast<size_t>(place);
  }

  GridPlane work_out(int64_t image, int64_t channel) const {
    int64_t elements = 1;
    for (size_t i = 2; i < view_.dx.extents.size(); ++i) elements *= view_.dx.extents[i];
    GridPlane plane(static_cast<size_t>(elements));
    for_each_coordinate(view_.dy, [&](std::span<const int64_t> at) {
      if (at[0] != image || at[1] != channel) return;
      const double dy = dy_[at];
      for_each_resize_tap(weights_of(taps_at(view_, grid_, view_.dx, at)), {at.begin(), at.end()},
                          [&](const Coordinate& element, double weight, double error) {
                            GridElement& own = plane[place_of(element)];
                            own.sum.add(dy, weight, error);
                            ++own.terms;
                          });
    });
    return plane;
  }

  GridSampleBackwardData view_;
  Tensor dy_, grid_;
  Once<GridPlane> planes_;
};

class GridSampleBackwardGridEvaluator final : public Oracle::Evaluator {
 public:
  GridSampleBackwardGridEvaluator(Request call, const Bindings& bindings, std::string_view output)
      : Evaluator(std::move(call), bindings, output),
        view_(GridSampleBackwardGrid::of(request())),
        dy_(tensor("dy")),
        x_(tensor("x")),
        grid_(tensor("grid")) {}

 protected:
  Expected operation_at(std::span<const int64_t> coordinate) const override {
    const size_t axes = view_.x.extents.size() - 2;
    Coordinate at = {coordinate[0], 0};
    at.insert(at.end(), coordinate.begin() + 1, coordinate.end() - 1);
    if (view_.mode == GridMode::nearest) return {};
    const auto derived = axes - 1 - static_cast<size_t>(coordinate.back());
    const ResizeTapsOfAxes slopes = weights_of(taps_at(view_, grid_, view_.x, at), derived);
    BoundedSum sum;
    for (int64_t c = 0; c < view_.x.extents[1]; ++c) {
      at[1] = c;
      BoundedSum derivative;
      for_each_resize_tap(slopes, at, [&](const Coordinate& element, double weight, double error) {
        derivative.add(product({x_[element], 0}, {weight, error * unit}));
      });
      add_product(dy_[at], derivative.result(3), sum);
    }
    return sum.result().expected();
  }

 private:
  GridSampleBackwardGrid view_;
  Tensor dy_, x_, grid_;
};

// Coordinates in x and around it, now and then far outside.
Filling filling_of_grid(const Request&, std::string_view operand, Values values) {
  if (operand != "grid") return {};
  return [values](std::span<const int64_t>, uint64_t bits) -> double {
    constexpr uint64_t seldom = 16;
    if (values == Values::specials && bits % seldom == 1) {
      constexpr double infinity = std::numeric_limits<double>::infinity();
      constexpr std::array special = {
          std::numeric_limits<double>::quiet_NaN(), infinity, -infinity, 1.0, -1.0, 0.0, 30000.0, -30000.0};
      return special[(bits >> 8) % special.size()];
    }
    const double within = uniform(bits) * 1.25;
    return bits % seldom == 2 ? within * 8 : within;
  };
}

}  // namespace

Reference grid_sample_reference() {
  return {.evaluator = make_evaluator<GridSampleEvaluator>, .filling = filling_of_grid};
}
Reference grid_sample_backward_data_reference() {
  return {.evaluator = make_evaluator<GridSampleBackwardDataEvaluator>, .filling = filling_of_grid};
}
Reference grid_sample_backward_grid_reference() {
  return {.evaluator = make_evaluator<GridSampleBackwardGridEvaluator>, .filling = filling_of_grid};
}

}  // namespace kiln::reference
