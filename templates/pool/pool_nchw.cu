// Pooling along the pixels: a thread makes TILE_P x TILE_Q neighbouring outputs of one plane. Any strides; fast where
// pixels of a row stand side by side.
//
// A row of x that windows of the tile cover is loaded once, in aligned vectors of VECTOR elements, and reduced along w
// for each of the TILE_Q columns; windows that share the row share that result. Rows and vectors outside x are not
// loaded. Because VECTOR divides W and TILE_Q * STRIDE_W, a vector lies wholly inside or wholly outside a row, at
// positions in the segment that are known at compile time: LEAD columns behind the vector's start at first. STORE
// divides Q. Parameters: pool_nchw.cpp.
#include "lib/pool_operands.cuh"
#include "lib/store.cuh"
#include "lib/vector.cuh"

constexpr int SPAN = (TILE_Q - 1) * STRIDE_W + (S - 1) * DILATION_W + 1;  // columns that windows of the tile cover
constexpr int VECTORS = ceil_div(LEAD + SPAN, VECTOR);
constexpr int ROWS = (TILE_P - 1) * STRIDE_H + (R - 1) * DILATION_H + 1;  // rows that windows of the tile cover

static_assert(TILE_Q % STORE == 0, "a store must lie inside a tile");

struct TileRow {
  float values[TILE_Q];
};

// For each column of the tile, row h of the plane reduced over the S taps of its window.
__device__ __forceinline__ TileRow reduced_row(const TX* plane, Index h, Index first_column, int channel,
                                               const UserArguments& user) {
  float segment[VECTORS * VECTOR];
#pragma unroll
  for (int i = 0; i < VECTORS; ++i) {
    const Index column = first_column + i * VECTOR;
    if (column >= 0 && column < W) {
      const Vector<TX, VECTOR> loaded =
          load_readonly<VECTOR>(plane + h * Index(X_STRIDE_H) + column * Index(X_STRIDE_W));
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) segment[i * VECTOR + j] = user_entered(loaded[j], channel, user);
    } else {
#pragma unroll
      for (int j = 0; j < VECTOR; ++j) segment[i * VECTOR + j] = pool_start<MODE>();
    }
  }
  TileRow row;
#pragma unroll
  for (int q = 0; q < TILE_Q; ++q) {
    row.values[q] = pool_start<MODE>();
#pragma unroll
    for (int s = 0; s < S; ++s) {
      row.values[q] = pool_add<MODE>(row.values[q], segment[LEAD + q * STRIDE_W + s * DILATION_W]);
    }
  }
  return row;
}

// Results of a row of a tile; `offset` is that of the first in y.
__device__ __forceinline__ void store_row(TY* y, Index offset, const float (&values)[TILE_Q], Index q0, int channel,
                                          const OutputArguments& output) {
#pragma unroll
  for (int i = 0; i < TILE_Q; i += STORE) {
    if (q0 + i >= Q) break;
    float run[STORE];
#pragma unroll
    for (int j = 0; j < STORE; ++j) run[j] = values[i + j];
    store_run<false>(y, offset + i * Index(Y_STRIDE_Q), run, channel, output);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_nchw(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user, long long n) {
  const Index tiles_p = ceil_div<int>(P, TILE_P), tiles_q = ceil_div<int>(Q, TILE_Q);
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(C) * Z * tiles_p * tiles_q) return;
  const Index q0 = take_coordinate(index, tiles_q) * TILE_Q;
  const Index p0 = take_coordinate(index, tiles_p) * TILE_P;
  const Index z = take_coordinate(index, Z);
  const Index c = take_coordinate(index, C);
  const Index front = z * STRIDE_D - PAD_FRONT;
  const Index top = p0 * STRIDE_H - PAD_TOP;
  const Index left = q0 * STRIDE_W - PAD_LEFT;

  float values[TILE_P][TILE_Q];
#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
#pragma unroll
    for (int q = 0; q < TILE_Q; ++q) values[p][q] = pool_start<MODE>();
  }
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (d < 0 || d >= D) continue;
    const TX* const plane = x + Input::at(index, c, d, 0, 0);
#pragma unroll ROW_UNROLL
    for (int i = 0; i < ROWS; i += ROW_STEP) {
      const Index h = top + i;
      if (h < 0 || h >= H) continue;
      const TileRow row = reduced_row(plane, h, left - LEAD, static_cast<int>(c), user);
#pragma unroll
      for (int p = 0; p < TILE_P; ++p) {
        const int tap = i - p * STRIDE_H;  // of output row p; known at compile time if TILE_P > 1
        if (TILE_P > 1 && (tap < 0 || tap % DILATION_H != 0 || tap / DILATION_H >= R)) continue;
#pragma unroll
        for (int q = 0; q < TILE_Q; ++q) values[p][q] = pool_add<MODE>(values[p][q], row.values[q]);
      }
    }
  }

#pragma unroll
  for (int p = 0; p < TILE_P; ++p) {
    if (p0 + p >= P) break;
    if constexpr (MODE != POOL_MAX) {
      const Index planes = counted_taps<MODE, Index>(front, T, DILATION_D, D, PAD_BACK);
      const Index rows = counted_taps<MODE, Index>(top + p * STRIDE_H, R, DILATION_H, H, PAD_BOTTOM);
#pragma unroll
      for (int q = 0; q < TILE_Q; ++q) {
        const Index columns = counted_taps<MODE, Index>(left + q * STRIDE_W, S, DILATION_W, W, PAD_RIGHT);
        values[p][q] *= pool_scale(pool_count(planes, rows, columns));
      }
    }
    store_row(y, Output::at(index, c, z, p0 + p, q0), values[p], q0, static_cast<int>(c), {alpha, beta, user});
  }
}
