// The elements of x that resize makes an output of, along one axis.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kiln/generator/operations/resize.h"

namespace kiln::reference {

struct ResizeTap {
  int64_t position = 0;  ///< In x.
  double weight = 1;
  double error = 0;  ///< Error of the weight as kernels compute it in f32, in units of 2^-24.
};

/// Taps of element `output` of y; `cubic`: the number of the call.
std::vector<ResizeTap> resize_taps(const Resizing& resizing, const ResizeAxis& axis, int64_t output, double cubic);

/// The same along every spatial axis of `coordinate`, an element of y.
std::vector<std::vector<ResizeTap>> resize_taps(const Resize& resize, std::span<const int64_t> coordinate,
                                                double cubic);

/// The products of weights along the axes: calls `visit(position, weight, error)` for each element of x, where
/// `position` is its whole coordinate.
template <class Visit>
void for_each_resize_tap(const std::vector<std::vector<ResizeTap>>& axes, std::vector<int64_t> coordinate,
                         const Visit& visit, size_t axis = 0, double weight = 1, double error = 0) {
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

}  // namespace kiln::reference
