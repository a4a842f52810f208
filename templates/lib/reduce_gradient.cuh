// Gradient of a reduction: kiln/generator/operations/reduce_backward.h has the formulas.
//
// From the prelude: MODE; READS_X, READS_Y and READS_INDICES, whether it reads these; ROW, TDY, TX, TY.
#include "lib/math.cuh"
#include "lib/reduce_modes.cuh"

__device__ __forceinline__ float sign_of(float x) {
  return x > 0.0f ? 1.0f : x < 0.0f ? -1.0f : x;
}

// Operands of a row.
struct RowGradient {
  float dy, y;
  int index;

  // Reads those of a row; `y` and `indices` only where the mode has them.
  __device__ __forceinline__ void read(const TDY* of_dy, const TY* of_y, const int* of_index) {
    dy = to_float(*of_dy);
    y = READS_Y ? to_float(*of_y) : 0.0f;
    index = READS_INDICES ? *of_index : 0;
    if constexpr (MODE == REDUCE_MEAN) dy /= float(ROW);
  }

  // Gradient of the element `x` at `position`. `others`: called for their product, with REDUCE_MUL where x is 0.
  template <class Others>
  __device__ __forceinline__ float at(float x, int position, const Others& others) const {
    if constexpr (MODE == REDUCE_MUL) return x == 0.0f ? others(dy) : dy * (y / x);
    if constexpr (MODE == REDUCE_MUL_NO_ZEROS) return x == 0.0f ? 0.0f : dy * (y / x);
    if constexpr (MODE == REDUCE_NORM1) return dy * sign_of(x);
    if constexpr (MODE == REDUCE_NORM2) return y == 0.0f ? 0.0f : dy * (x / y);
    if constexpr (MODE == REDUCE_MIN || MODE == REDUCE_MAX) return index == position ? dy : 0.0f;
    if constexpr (MODE == REDUCE_AMAX) return index == position ? dy * sign_of(x) : 0.0f;
    return dy;
  }
};

// `product` times all elements of a row but number `own`, which is 0; 0 where another is 0. `element(i)` is number i.
// It goes from each zero to the next one at most: all zeros of a row together go through it once.
template <class Element>
__device__ __forceinline__ float times_others(float product, Index own, const Element& element) {
  for (Index i = own + 1;; ++i) {
    if (i == Index(ROW)) i = 0;
    if (i == own) return product;
    const float x = element(i);
    if (x == 0.0f) return 0.0f;
    product *= x;
  }
}
