// The tiles of TILE_P x TILE_Q outputs that threads of the depthwise kernels have, and the part of x under one.
//
// From the prelude, besides the problem: TILE_P and TILE_Q, and MULTIPLIER, the filters of a channel.
#include "lib/index.cuh"

using UnsignedIndex = UnsignedOf<Index>::type;

constexpr int INPUT_COLUMNS = (TILE_Q - 1) * STRIDE_W + (S - 1) * DILATION_W + 1;

// Tiles in a column, and in a row, of y.
__device__ __forceinline__ int p_tiles() {
  return ceil_div<int>(P, TILE_P);
}
__device__ __forceinline__ int q_tiles() {
  return ceil_div<int>(Q, TILE_Q);
}

// Rows of x under a tile, for `taps` rows of the filter.
__host__ __device__ constexpr int input_rows(int taps) {
  return (TILE_P - 1) * STRIDE_H + (taps - 1) * DILATION_H + 1;
}

// Whether some tap of some output of a thread meets its input column (or row) number `at`.
template <int TILE, int STRIDE, int DILATION, int TAPS>
__host__ __device__ constexpr bool meets(int at) {
  for (int output = 0; output < TILE; ++output) {
    const int distance = at - output * STRIDE;
    if (distance >= 0 && distance % DILATION == 0 && distance / DILATION < TAPS) return true;
  }
  return false;
}
