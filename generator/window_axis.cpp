#include "kiln/generator/window_axis.h"

#include "kiln/generator/tensor_spec.h"

namespace kiln {

int64_t WindowAxis::outputs_floor() const {
  return padded() < reach() ? 0 : (padded() - reach()) / stride + 1;
}

int64_t WindowAxis::outputs_ceil() const {
  if (padded() < reach()) return 0;
  const int64_t count = (padded() - reach() + stride - 1) / stride + 1;
  return (count - 1) * stride >= extent + pad_begin ? count - 1 : count;
}

std::string_view axis_name(int axis, int axes) {
  return dimension_letters(2 + axes).substr(2 + static_cast<size_t>(axis), 1);
}

}  // namespace kiln
