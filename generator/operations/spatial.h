// Parts shared by windowed operations (convolution, pooling): pads, windows, output extents.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln {

/// Throws Error(invalid_argument) "<operation>: <what>" with a hint.
[[noreturn]] void refuse(const Request& request, std::string_view what, std::string_view hint);

/// Expands integers given for `axes` spatial axes: one value for all axes, one per axis, or for pads (`sides` = 2) one
/// per axis for both sides, or begins then ends. Refuses other lengths.
void expand(Request& request, std::string_view attribute, size_t axes, size_t sides);

/// The integers that a user wrote, who may as well have written a word: refused.
std::vector<int64_t> given_ints(const Request& request, std::string_view name);

/// Replaces the integers of an attribute.
void set_ints(Request& request, std::string_view attribute, std::vector<int64_t> values);

/// Spatial axes of an operand: its dimensions without N and C. Refuses one of other than one to three; 2 if it is not
/// there yet.
int spatial_axes(const Request& request, std::string_view operand = "x");

/// The part of a complete attribute `pad` for the begins or for the ends.
std::vector<int64_t> pad_side(const Request& request, bool end);

/// The complete attributes pad, stride and dilation of a request.
WindowSteps steps_of(const Request& request);

/// Values as a builder's request has them: `values`, or the default if there are none.
std::vector<int64_t> given_or(const std::vector<int64_t>& values, int64_t fallback);

/// Begins, then ends; a side that is not given is 0.
std::vector<int64_t> pads_of(const std::vector<int64_t>& begin, const std::vector<int64_t>& end);

/// Refuses strides, dilations and windows below 1, and pads below 0.
void check_axis(const Request& request, const WindowAxis& axis, std::string_view name);

/// Refuses a window, called `what`, that is larger than the padded `input` along the axis with that name.
[[noreturn]] void refuse_large_window(const Request& request, std::string_view what, const WindowAxis& axis,
                                      std::string_view name, std::string_view input);

/// The output laid out as the input `like` is where that is packed in a named order, else in logical order.
TensorSpec laid_out_like(const TensorSpec& like, std::vector<int64_t> extents);

/// Bytes of the elements, for roofline figures.
double bytes_of(const TensorSpec& spec);

/// Adds the bytes of an operation that goes through each operand once: outputs are written, and the result is read
/// where beta adds it.
void add_each_operand(const Request& request, Work& work);

/// Refuses `spec` unless it has `expected` extents.
void require_extents(const Request& request, std::string_view operand, const TensorSpec& spec,
                     const std::vector<int64_t>& expected, std::string_view reason);

}  // namespace kiln
