// The elements of x that resize makes an output of, and sums of elements by their weights: resize and its gradient.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "evaluator.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/reference/tensor_memory.h"
#include "operations/norm.h"

namespace kiln::reference {

struct ResizeTap {
  int64_t position = 0;  ///< In x.
  double weight = 1;
  double error = 0;  ///< Error of the weight as kernels compute it in f32, in units of 2^-24.
};

/// Four taps around a position that is `t` behind element `before`, by Keys' kernel with the coefficient `a`.
std::vector<ResizeTap> cubic_taps(double t, double a, int64_t before);

/// Taps of element `output` of y; `cubic`: the number of the call.
std::vector<ResizeTap> resize_taps(const Resizing& resizing, const ResizeAxis& axis, int64_t output, double cubic);

/// Taps along each spatial axis.
using ResizeTapsOfAxes = std::vector<std::vector<ResizeTap>>;

/// The products of weights along the axes: calls `visit(position, weight, error)` for each combination of taps,
/// where `position` is the whole coordinate, which begins as `coordinate`.
template <class Visit>
void for_each_resize_tap(const ResizeTapsOfAxes& axes, std::vector<int64_t> coordinate, const Visit& visit,
                         size_t axis = 0, double weight = 1, double error = 0) {
  if (axis == axes.size()) return visit(coordinate, weight, error);
  for (const ResizeTap& tap : axes[axis]) {
    coordinate[2 + axis] = tap.position;
    // Error of a product of two: what either errs by, and its own rounding.
    const double size = weight < 0 ? -weight : weight, own = tap.weight < 0 ? -tap.weight : tap.weight;
    const bool is_product = axis > 0 && size * own != 1;
    const double both = error * (own + tap.error * 0x1p-24) + size * tap.error + (is_product ? size * own : 0);
    for_each_resize_tap(axes, coordinate, visit, axis + 1, weight * tap.weight, both);
  }
}

/// A sum of elements times weights, with what f32 arithmetic may be off.
class WeightedSum {
 public:
  /// `weight_error`: in units of 2^-24.
  void add(double element, double weight, double weight_error);
  /// `roundings`: of each term, its products and the sums that it is in. `most_weight`: no weight along one axis, by
  /// which elements are summed up before those of the others count, is larger.
  Expected expected(double roundings, double most_weight) const;

 private:
  double value_ = 0, magnitude_ = 0;
  double partial_ = 0;                                // without weights
  double finite_magnitude_ = 0, finite_partial_ = 0;  // of finite elements
  double error_ = 0;
  bool open_ = false;
};

/// slack_of() of a linear operation: the moves of the elements of `from`, each times its weight's magnitude, for each
/// element of `to`. `taps.of(coordinate)` are ResizeTapsOfAxes.
template <class Taps>
std::vector<float> resize_slack(const slack::Question& asked, const TensorSpec& from, const TensorSpec& to,
                                const Taps& taps) {
  std::vector<float> slack;
  slack.reserve(static_cast<size_t>(to.elements()));
  for_each_coordinate(to, [&](std::span<const int64_t> coordinate) {
    double moved = 0;
    for_each_resize_tap(taps.of(coordinate), {coordinate.begin(), coordinate.end()},
                        [&](const Coordinate& at, double weight, double error) {
                          const auto place = static_cast<size_t>(offset_of(from, at));
                          const double size = weight < 0 ? -weight : weight;
                          moved += slack::times(asked.perturbations[place], size + error * unit);
                        });
    slack.push_back(slack::as_slack(moved * asked.scale));
  });
  return slack;
}

}  // namespace kiln::reference
