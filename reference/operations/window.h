// Windows over one to three spatial axes, tap by tap.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kiln/generator/operations/conv_pass.h"
#include "kiln/generator/window_axis.h"

namespace kiln::reference {

/// The spatial axes of a ConvForward or PoolForward.
template <class View>
std::vector<WindowAxis> axes_of(const View& view) {
  std::vector<WindowAxis> axes;
  for (int i = 0; i < view.axes(); ++i) axes.push_back(view.axis(i));
  return axes;
}

/// A number for each axis; those beyond the last are 0.
using PerAxis = std::array<int64_t, 3>;

/// One tap of the window of one output.
struct Tap {
  PerAxis number{};           ///< of the tap
  PerAxis mirrored{};         ///< the same, counted from the window's end
  PerAxis position{};         ///< in x
  bool inside = true;         ///< x has that position
  bool inside_padded = true;  ///< x with the padding behind it has
};

/// Where an element of a tensor is: batch (or k), channel, and as many spatial coordinates as there are axes.
class Place {
 public:
  Place(int64_t first, int64_t second, const PerAxis& spatial, size_t axes)
      : values_{first, second, spatial[0], spatial[1], spatial[2]}, rank_(2 + axes) {}
  Place(int64_t region, int64_t k, int64_t c, const PerAxis& tap, size_t axes)
      : values_{region, k, c, tap[0], tap[1], tap[2]}, rank_(3 + axes) {}
  operator std::span<const int64_t>() const { return {values_.data(), rank_}; }

 private:
  std::array<int64_t, 6> values_;
  size_t rank_;
};

/// Where an element of filter `k` of a region is in the w of a ConvForward or ConvBackwardData.
template <class View>
Place place_in_filter(const View& conv, int64_t region, int64_t k, int64_t c, const PerAxis& tap) {
  const auto axes = static_cast<size_t>(conv.axes());
  if (has_regions(conv.w, conv.axes())) return {region, k, c, tap, axes};
  return {region * conv.k() + k, c, tap, axes};
}

/// Calls visit(tap) for every tap of the window of the output at `output`, the last axis fastest.
template <class Visit>
void for_each_tap(const std::vector<WindowAxis>& axes, std::span<const int64_t> output, Visit visit) {
  int64_t taps = 1;
  for (const WindowAxis& axis : axes) taps *= axis.window;
  Tap tap;
  for (int64_t i = 0; i < taps; ++i) {
    tap.inside = tap.inside_padded = true;
    int64_t rest = i;
    for (size_t axis = axes.size(); axis-- > 0;) {
      const WindowAxis& window = axes[axis];
      tap.number[axis] = rest % window.window;
      rest /= window.window;
      tap.mirrored[axis] = window.window - 1 - tap.number[axis];
      tap.position[axis] = window.position(output[axis], tap.number[axis]);
      tap.inside = tap.inside && window.inside(tap.position[axis]);
      tap.inside_padded = tap.inside_padded && tap.position[axis] < window.extent + window.pad_end;
    }
    visit(tap);
  }
}

/// The maximum of a window: the first of the largest, or the last NaN.
struct Maximum {
  double value = -std::numeric_limits<double>::infinity();
  int64_t position = -1;  ///< in its channel, in logical order; -1 if no element is inside
};

/// Maximum under the window of the output at `output`. `element(position)`: the element of x there.
template <class Element>
Maximum maximum_of(const std::vector<WindowAxis>& axes, std::span<const int64_t> output, Element element) {
  Maximum maximum;
  for_each_tap(axes, output, [&](const Tap& tap) {
    if (!tap.inside) return;
    const double value = element(tap.position);
    if (maximum.position >= 0 && !std::isnan(value) && !(value > maximum.value)) return;
    maximum.value = value;
    maximum.position = 0;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      maximum.position = maximum.position * axes[axis].extent + tap.position[axis];
    }
  });
  return maximum;
}

}  // namespace kiln::reference
