// WindowAxis and WindowSteps: windows along spatial axes, as convolution and pooling have them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/tensor_spec.h"

namespace kiln {

/// One spatial axis of a windowed operation. The default is an axis that is not there: one element, one output.
struct WindowAxis {
  int64_t extent = 1;   ///< elements of x
  int64_t window = 1;   ///< taps
  int64_t outputs = 1;  ///< elements of y
  int64_t pad_begin = 0, pad_end = 0;
  int64_t stride = 1, dilation = 1;

  int64_t padded() const { return extent + pad_begin + pad_end; }
  /// Elements from a window's first tap to its last.
  int64_t reach() const { return dilation * (window - 1) + 1; }
  /// Position in x of tap `tap` of the window of output `output`; maybe outside.
  int64_t position(int64_t output, int64_t tap) const { return output * stride - pad_begin + tap * dilation; }
  bool inside(int64_t position) const { return position >= 0 && position < extent; }
  /// Number of windows that fit: floor((padded - reach) / stride) + 1; 0 if not even one does.
  int64_t outputs_floor() const;
  /// As outputs_floor(), rounding up, less a last window that would start beyond extent + pad_begin.
  int64_t outputs_ceil() const;

  bool operator==(const WindowAxis&) const = default;
};

/// How windows move over the spatial dimensions of a tensor.
struct WindowSteps {
  /// One value a spatial axis, in the order of the dimensions. In the views of requests, for request(), one value may
  /// stand for all axes, and none for the default: 0, and 1.
  std::vector<int64_t> pad_begin, pad_end, stride, dilation;

  /// Spatial axis `axis`, of which extent, window and outputs keep the default.
  WindowAxis along(int axis) const;
  /// Spatial axis `axis` from `x` to `y` (each N, C and spatial dimensions), with windows of `window` taps.
  WindowAxis between(const TensorSpec& x, int64_t window, const TensorSpec& y, int axis) const;

  bool operator==(const WindowSteps&) const = default;
};

/// "h" and the like: the name of spatial axis `axis` of `axes`.
std::string_view axis_name(int axis, int axes);

}  // namespace kiln
