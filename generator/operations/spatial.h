// What windowed operations (convolution, pooling) share: pads, windows, output extents.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"

namespace kiln {

/// Throws Error(invalid_argument) "<operation>: <what>" with a hint.
[[noreturn]] void refuse(const Request& request, std::string_view what, std::string_view hint);

/// Expands integers given for `axes` spatial axes: one value for all axes, one per axis, or for pads (`sides` = 2) one
/// per axis for both sides, or begins then ends. Refuses other lengths.
void expand(Request& request, std::string_view attribute, size_t axes, size_t sides);

/// Replaces the integers of an attribute.
void set_ints(Request& request, std::string_view attribute, std::vector<int64_t> values);

/// One spatial axis of a windowed operation.
struct Axis {
  int64_t extent, window, pad_begin, pad_end, stride, dilation;

  int64_t padded() const { return extent + pad_begin + pad_end; }
  int64_t reach() const { return dilation * (window - 1) + 1; }
  /// Number of windows that fit: floor((padded - reach) / stride) + 1; at most 0 if not even one does.
  int64_t outputs() const;
  /// As outputs(), rounding up, less a last window that would start beyond extent + pad_begin.
  int64_t outputs_ceil() const;
};

/// Refuses strides, dilations and windows below 1, and pads below 0.
void check_axis(const Request& request, const Axis& axis, std::string_view name);

/// The output laid out as the input `like` is where that is packed in a named order, else in logical order.
TensorSpec laid_out_like(const TensorSpec& like, std::vector<int64_t> extents);

/// Refuses `spec` unless it has `expected` extents.
void require_extents(const Request& request, std::string_view operand, const TensorSpec& spec,
                     const std::vector<int64_t>& expected, std::string_view reason);

}  // namespace kiln
