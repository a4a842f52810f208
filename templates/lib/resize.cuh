// Where elements of y stand in x, and what they are made of, along each axis.
//
// From the prelude, of the axes D, H and W: the extent of x (D), that of y (Z, P, Q), TAPS_D (elements of x an output
// is made of: 1, 2 or 4), and the exact position of output i: (i * STEP_D + START_D) / DENOMINATOR_D, computed in
// integers of the type Position. MODE and ROUNDING; EXCLUDES_OUTSIDE: elements outside x have no weight. N, DYNAMIC_N,
// C, and the strides of x and y.
#include "lib/cubic.cuh"
#include "lib/images.cuh"
#include "lib/strided.cuh"

enum : int { RESIZE_NEAREST, RESIZE_LINEAR, RESIZE_CUBIC };                                 // as ResizeMode
enum : int { ROUNDING_PREFER_FLOOR, ROUNDING_PREFER_CEIL, ROUNDING_FLOOR, ROUNDING_CEIL };  // as ResizeRounding

using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using Output = SpatialTensor<Y_STRIDE_N, Y_STRIDE_C, Y_STRIDE_Z, Y_STRIDE_P, Y_STRIDE_Q, N, Z, P, Q>;

// The elements of x along one axis that an output is made of.
template <int TAPS>
struct Taps {
  Index positions[TAPS];
  float weights[TAPS];
};

template <int TAPS>
__device__ __forceinline__ void exclude_outside(Index extent, const Index (&positions)[TAPS], float (&weights)[TAPS]) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < TAPS; ++i) {
    if (positions[i] < 0 || positions[i] >= extent) weights[i] = 0.0f;
    sum += weights[i];
  }
#pragma unroll
  for (int i = 0; i < TAPS; ++i) weights[i] /= sum;
}

// Taps of element `output` of y along an axis of `extent` elements; `cubic`: a of the cubic kernel. No position lies an
// element or more before x: the sum of `start` and `denominator` is positive.
template <int TAPS>
__device__ __forceinline__ Taps<TAPS> taps_of(Index output, float cubic, Index extent, Position step, Position start,
                                              Position denominator) {
  Position rest = static_cast<Position>(output) * step + (start + denominator);
  const Position beyond = take_coordinate(rest, denominator);
  const Index before = static_cast<Index>(rest) - 1;  // the element at or before the position

  Taps<TAPS> taps;
  if constexpr (TAPS == 1) {
    Index nearest = before;
    if constexpr (MODE == RESIZE_NEAREST) {
      if (ROUNDING == ROUNDING_PREFER_FLOOR) nearest += beyond > denominator - beyond;
      if (ROUNDING == ROUNDING_PREFER_CEIL) nearest += beyond >= denominator - beyond;
      if (ROUNDING == ROUNDING_CEIL) nearest += beyond > 0;
    }
    taps.positions[0] = nearest;
    taps.weights[0] = 1.0f;
  } else {
    const float t = static_cast<float>(beyond) * (1.0f / static_cast<float>(denominator));
    const float rest_of_t = 1.0f - t;
#pragma unroll
    for (int i = 0; i < TAPS; ++i) taps.positions[i] = before + i - (TAPS / 2 - 1);
    if constexpr (TAPS == 2) {
      taps.weights[0] = rest_of_t;
      taps.weights[1] = t;
    } else {
      taps.weights[0] = cubic_outer(t, rest_of_t, cubic);
      taps.weights[1] = cubic_inner(t, cubic);
      taps.weights[2] = cubic_inner(rest_of_t, cubic);
      taps.weights[3] = cubic_outer(rest_of_t, t, cubic);
      if constexpr (EXCLUDES_OUTSIDE) exclude_outside(extent, taps.positions, taps.weights);
    }
  }
#pragma unroll
  for (int i = 0; i < TAPS; ++i) taps.positions[i] = larger<Index>(smaller<Index>(taps.positions[i], extent - 1), 0);
  return taps;
}

__device__ __forceinline__ Taps<TAPS_D> planes_of(Index z, float cubic) {
  return taps_of<TAPS_D>(z, cubic, D, STEP_D, START_D, DENOMINATOR_D);
}
__device__ __forceinline__ Taps<TAPS_H> rows_of(Index p, float cubic) {
  return taps_of<TAPS_H>(p, cubic, H, STEP_H, START_H, DENOMINATOR_H);
}
__device__ __forceinline__ Taps<TAPS_W> columns_of(Index q, float cubic) {
  return taps_of<TAPS_W>(q, cubic, W, STEP_W, START_W, DENOMINATOR_W);
}
