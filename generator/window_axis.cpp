#include "kiln/generator/window_axis.h"

namespace kiln {

int64_t WindowAxis::outputs_floor() const {
  return padded() < reach() ? 0 : (padded() - reach()) / stride + 1;
}

int64_t WindowAxis::outputs_ceil() const {
  if (padded() < reach()) return 0;
  const int64_t count = (padded() - reach() + stride - 1) / stride + 1;
  return (count - 1) * stride >= extent + pad_begin ? count - 1 : count;
}

WindowAxis WindowSteps::along(int axis) const {
  const auto i = static_cast<size_t>(axis);
  WindowAxis result;
  result.pad_begin = pad_begin[i];
  result.pad_end = pad_end[i];
  result.stride = stride[i];
  result.dilation = dilation[i];
  return result;
}

WindowAxis WindowSteps::between(const TensorSpec& x, int64_t window, const TensorSpec& y, int axis) const {
  const auto dimension = 2 + static_cast<size_t>(axis);
  WindowAxis result = along(axis);
  result.extent = x.extents[dimension];
  result.window = window;
  result.outputs = y.extents[dimension];
  return result;
}

std::string_view axis_name(int axis, int axes) {
  return dimension_letters(2 + axes).substr(2 + static_cast<size_t>(axis), 1);
}

}  // namespace kiln
