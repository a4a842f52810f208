// im2col along the rows: a thread makes TILE_Q neighbouring elements of a row of y for ROWS x TAPS neighbouring taps of
// the window. Any strides; fast where columns stand side by side.
//
// Neighbouring threads take neighbouring tiles of one channel of y, so that a warp stores whole lines. What several
// taps of a row have in common is loaded once. An element outside x is loaded from its edge, so that no load waits for
// a branch, and replaced by 0. STORE divides Q. Parameters: im2col_nchw.cpp.
#include "lib/columns.cuh"
#include "lib/store.cuh"

static_assert(TILE_Q % STORE == 0, "a store must lie inside a tile");
static_assert(ROWS <= R && TAPS <= S, "a window has so many taps");

extern "C" __global__ void __launch_bounds__(THREADS)
    im2col_nchw(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user,
                long long n) {
  constexpr int GROUPS_R = ceil_div<int>(R, ROWS), GROUPS_S = ceil_div<int>(S, TAPS);
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(LINES) * GROUPS_S * Z * P * TILES) return;
  const Index q0 = take_coordinate(index, TILES) * TILE_Q;
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index s0 = take_coordinate(index, GROUPS_S) * TAPS;
  Index line = take_coordinate(index, LINES);  // rows of the window, counted through all channels
  const Index r0 = take_coordinate(line, GROUPS_R) * ROWS;
  const Index t = take_coordinate(line, T);
  const Index c = line;
  const Index k0 = ((c * T + t) * R + r0) * S + s0;

  const Index d = z * STRIDE_D - PAD_FRONT + t * DILATION_D;
  const Index h0 = p * STRIDE_H - PAD_TOP + r0 * DILATION_H;
  const Index w0 = q0 * STRIDE_W - PAD_LEFT + s0 * DILATION_W;
  float values[ROWS][TAPS][TILE_Q];
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    const Index h = h0 + Index(r * DILATION_H);
    const bool row_inside = d >= 0 && d < D && h >= 0 && h < H;
    const TX* const row = x + (row_inside ? ImagesOfX::at(index, c, d, h, 0) : Index(0));
#pragma unroll
    for (int s = 0; s < TAPS; ++s) {
#pragma unroll
      for (int q = 0; q < TILE_Q; ++q) {
        const Index w = w0 + Index(q * STRIDE_W + s * DILATION_W);
        const Index nearest = smaller<Index>(larger<Index>(w, 0), W - 1);
        const float value = to_float(load_readonly<1>(row + nearest * Index(X_STRIDE_W))[0]);
        values[r][s][q] = row_inside && w == nearest ? value : 0.0f;
      }
    }
  }

  const Index offset = ColumnsOfY::at(index, k0, z, p, q0);
#pragma unroll
  for (int r = 0; r < ROWS; ++r) {
    if (R % ROWS != 0 && r0 + r >= R) break;
#pragma unroll
    for (int s = 0; s < TAPS; ++s) {
      if (S % TAPS != 0 && s0 + s >= S) break;
      const int tap = r * int(S) + s;
#pragma unroll
      for (int q = 0; q < TILE_Q; q += STORE) {
        if (q0 + q >= Q) break;
        float run[STORE];
#pragma unroll
        for (int j = 0; j < STORE; ++j) run[j] = values[r][s][q + j];
        store_run<false>(y, offset + tap * Index(Y_STRIDE_K) + q * Index(Y_STRIDE_Q), run, static_cast<int>(k0) + tap,
                         {alpha, beta, user});
      }
    }
  }
}
