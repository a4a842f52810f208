// Pooling: what pooling and its gradient have in common; PoolWindow: what unpooling has of it.
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
  std::vector<int64_t> window;  ///< One value a spatial axis; no default.

  /// Spatial axis `axis` of a pooling from `x` to `y`.
  WindowAxis axis_between(const TensorSpec& x, const TensorSpec& y, int axis) const {
    return between(x, window[static_cast<size_t>(axis)], y, axis);
  }
};

/// The same, and what becomes of the elements of each.
struct Pooling : PoolWindow {
  PoolMode mode = PoolMode::max;
};

/// How many positions an element of `operand` may name, if that holds the indices of maxima: positions of one channel
/// of what was pooled, in logical order, from 0. -1 stands for a window without an element inside that. Nothing for
/// other operands.
std::optional<int64_t> pooled_positions(const Request& request, std::string_view operand);
/// The spatial axes that such an operand of a complete request counts positions along, without outputs.
std::vector<WindowAxis> pooled_axes(const Request& request, std::string_view operand);

}  // namespace kiln
