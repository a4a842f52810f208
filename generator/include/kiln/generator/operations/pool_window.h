// PoolWindow: what pooling and its gradient have in common.
#pragma once

#include <cstdint>
#include <vector>

#include "kiln/generator/tensor_spec.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

enum class PoolMode {
  max,         ///< Largest element of the window inside x; NaN if any is NaN; -inf if none is inside.
  avg,         ///< Sum over the elements inside x, divided by their number; 0 if none is inside.
  avg_padded,  ///< Sum over the elements inside x, divided by the number of window elements inside the padded x.
};

/// The windows of a pooling. One value a spatial axis, as for ConvForward; the window has no default.
struct PoolWindow {
  PoolMode mode = PoolMode::max;
  std::vector<int64_t> window, pad_begin, pad_end, stride, dilation;

  /// Spatial axis number `axis` of a pooling from `x` to `y`.
  WindowAxis axis_between(const TensorSpec& x, const TensorSpec& y, int axis) const;
};

}  // namespace kiln
