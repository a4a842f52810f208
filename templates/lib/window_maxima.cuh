// The maxima of a window of x, for VECTOR neighbouring channels: the first of the largest, or the last NaN.
//
// From the prelude: what lib/places.cuh asks for, the strides of x and the axes.
#include "lib/math.cuh"
#include "lib/places.cuh"
#include "lib/strided.cuh"
#include "lib/vector.cuh"

using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;

// Prologue of kernels that have none: elements of x as they are stored.
struct AsStored {
  template <class T>
  __device__ __forceinline__ const T& operator()(const T& x, Index) const {
    return x;
  }
};

// `entered(elements, channel)`: what becomes of neighbours of x, from `channel` on, as they are loaded.
// Sets `largest`, and `where` to what `number_of(t, r, s, d, h, w)` calls the tap (t, r, s), which lies at (d, h, w) of
// x. Where no element is inside they are -inf and NONE.
template <auto NONE, class Entered, class NumberOf, class Number>
__device__ __forceinline__ void window_maxima(const TX* __restrict__ x, const Place& window, const Entered& entered,
                                              NumberOf number_of, float (&largest)[VECTOR],
                                              Vector<Number, VECTOR>& where) {
  const Index front = window.plane * STRIDE_D - PAD_FRONT;
  const Index top = window.row * STRIDE_H - PAD_TOP;
  const Index left = window.column * STRIDE_W - PAD_LEFT;
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    where[j] = NONE;
    largest[j] = -infinity();
  }
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (d < 0 || d >= D) continue;
#pragma unroll 1
    for (int r = 0; r < R; ++r) {
      const Index h = top + Index(r) * DILATION_H;
      if (h < 0 || h >= H) continue;
#pragma unroll 4
      for (int s = 0; s < S; ++s) {
        const Index w = left + Index(s) * DILATION_W;
        if (w < 0 || w >= W) continue;
        const auto loaded = entered(load_readonly<VECTOR>(x + Input::at(window.image, window.c, d, h, w)), window.c);
        const Number number = number_of(t, r, s, d, h, w);
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
          const float value = to_float(loaded[j]);
          if (where[j] != NONE && !is_nan(value) && !(value > largest[j])) continue;
          where[j] = number;
          largest[j] = value;
        }
      }
    }
  }
}
