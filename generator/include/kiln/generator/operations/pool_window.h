// PoolWindow: what pooling and its gradient have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

enum class PoolMode {
  max,         ///< Largest element of the window inside x; NaN if any is NaN; -inf if none is inside.
  avg,         ///< Sum over the elements inside x, divided by their number; 0 if none is inside.
  avg_padded,  ///< Sum over the elements inside x, divided by the number of window elements inside the padded x.
};

/// The word of requests; "?" for a value that is none.
std::string_view to_string(PoolMode mode);

/// The windows of a pooling.
struct PoolWindow : WindowSteps {
  PoolMode mode = PoolMode::max;
  std::vector<int64_t> window;  ///< One value a spatial axis; no default.

  /// Spatial axis `axis` of a pooling from `x` to `y`.
  WindowAxis axis_between(const TensorSpec& x, const TensorSpec& y, int axis) const {
    return between(x, window[static_cast<size_t>(axis)], y, axis);
  }
};

/// How many positions an element of `operand` may name, if that holds the indices of maxima: positions of one channel
/// of x in logical order, from 0. -1 stands for a window without an element inside x. Nothing for other operands.
std::optional<int64_t> pooled_positions(const Request& request, std::string_view operand);
/// The spatial axes of a complete request that has such an operand, without outputs.
std::vector<WindowAxis> pooled_axes(const Request& request);

}  // namespace kiln
