// Values of windowed operations: pairs, paddings, and the third axis of 3-D operands. Nothing here throws.
#pragma once

#include <cstdint>

namespace kiln {

/// A length along the height and along the width, in elements.
struct Pair {
  int64_t h = 0, w = 0;
};

/// Elements added on each side: `{1, 1}` for height and width on both sides, or `{top, left, bottom, right}`.
struct Padding {
  int64_t top = 0, left = 0, bottom = 0, right = 0;

  constexpr Padding() = default;
  constexpr Padding(int64_t h, int64_t w) : top(h), left(w), bottom(h), right(w) {}
  constexpr Padding(int64_t top_, int64_t left_, int64_t bottom_, int64_t right_)
      : top(top_), left(left_), bottom(bottom_), right(right_) {}
};

/// The third axis of operands with three spatial dimensions. Keep the defaults for fewer dimensions. Operands with one
/// spatial dimension use w, left and right of the other values.
struct DepthWindow {
  int64_t window = 1;  ///< For pooling; a convolution has its filter's extent.
  int64_t pad_front = 0, pad_back = 0;
  int64_t stride = 1;
  int64_t dilation = 1;
};

}  // namespace kiln
