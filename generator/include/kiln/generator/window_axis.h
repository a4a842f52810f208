// WindowAxis: windows along one spatial axis, as convolution and pooling have them.
#pragma once

#include <cstdint>
#include <string_view>

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

/// "h" and the like: the name of spatial axis `axis` of `axes`.
std::string_view axis_name(int axis, int axes);

}  // namespace kiln
