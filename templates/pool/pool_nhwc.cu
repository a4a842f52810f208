// Pooling along the channels: a thread makes TILE_Q neighbouring outputs of a row, for VECTOR channels. Any strides;
// fast where channels stand side by side.
//
// Neighbouring threads take neighbouring channels, so that a warp moves whole lines. A column of x that several
// windows of the tile cover is loaded once, COLUMN_GROUP columns at a time. VECTOR divides C. Parameters:
// pool_nhwc.cpp.
#include "lib/pool_operands.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_nhwc(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user, long long n) {
  const Index tiles_q = ceil_div<int>(Q, TILE_Q);
  const int columns_of_tile = (TILE_Q - 1) * STRIDE_W + (S - 1) * DILATION_W + 1;  // that its windows cover
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * tiles_q * (C / VECTOR)) return;
  const Index c = take_coordinate(index, C / VECTOR) * VECTOR;
  const Index q0 = take_coordinate(index, tiles_q) * TILE_Q;
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index front = z * STRIDE_D - PAD_FRONT;
  const Index top = p * STRIDE_H - PAD_TOP;
  const Index left = q0 * STRIDE_W - PAD_LEFT;

  float values[TILE_Q][VECTOR];
#pragma unroll
  for (int q = 0; q < TILE_Q; ++q) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) values[q][j] = pool_start<MODE>();
  }
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (d < 0 || d >= D) continue;
#pragma unroll ROW_UNROLL
    for (int r = 0; r < R; ++r) {
      const Index h = top + r * DILATION_H;
      if (h < 0 || h >= H) continue;
#pragma unroll 1
      for (int first = 0; first < columns_of_tile; first += COLUMN_GROUP * COLUMN_STEP) {
#pragma unroll
        for (int g = 0; g < COLUMN_GROUP; ++g) {
          const int i = first + g * COLUMN_STEP;
          const Index w = left + i;
          if (i >= columns_of_tile || w < 0 || w >= W) continue;
          const Vector<TX, VECTOR> loaded = load_readonly<VECTOR>(x + Input::at(index, c, d, h, w));
          float entered[VECTOR];
#pragma unroll
          for (int j = 0; j < VECTOR; ++j) entered[j] = user_entered(loaded[j], static_cast<int>(c) + j, user);
#pragma unroll
          for (int q = 0; q < TILE_Q; ++q) {
            const int tap = i - q * STRIDE_W;  // of output q; known at compile time if TILE_Q > 1
            if (TILE_Q > 1 && (tap < 0 || tap % DILATION_W != 0 || tap / DILATION_W >= S)) continue;
#pragma unroll
            for (int j = 0; j < VECTOR; ++j) values[q][j] = pool_add<MODE>(values[q][j], entered[j]);
          }
        }
      }
    }
  }

  const Index planes = counted_taps<MODE, Index>(front, T, DILATION_D, D, PAD_BACK);
  const Index rows = counted_taps<MODE, Index>(top, R, DILATION_H, H, PAD_BOTTOM);
#pragma unroll
  for (int q = 0; q < TILE_Q; ++q) {
    if (q0 + q >= Q) break;
    if constexpr (MODE != POOL_MAX) {
      const Index columns = counted_taps<MODE, Index>(left + q * STRIDE_W, S, DILATION_W, W, PAD_RIGHT);
      const float scale = pool_scale(pool_count(planes, rows, columns));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) values[q][j] *= scale;
    }
    store_run<true>(y, Output::at(index, c, z, p, q0 + q), values[q], static_cast<int>(c), {alpha, beta, user});
  }
}
