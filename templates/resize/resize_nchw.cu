// Resizing along the rows: a thread makes TILE_Q neighbouring outputs of a row. Any strides; fast where columns stand
// side by side.
//
// Neighbouring threads take neighbouring tiles, so that a warp stores whole lines and loads from few. The planes and
// rows of x are the same for a tile, and are looked up once. STORE divides Q. Parameters: resize_nchw.cpp.
#include "lib/resize.cuh"
#include "lib/store.cuh"

static_assert(TILE_Q % STORE == 0, "a store must lie inside a tile");

extern "C" __global__ void __launch_bounds__(THREADS)
    resize_nchw(const TX* __restrict__ x, TY* __restrict__ y, float alpha, float beta, UserArguments user, long long n,
                float cubic) {
  const Index tiles_q = ceil_div<int>(Q, TILE_Q);
  Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(C) * Z * P * tiles_q) return;
  const Index q0 = take_coordinate(index, tiles_q) * TILE_Q;
  const Index p = take_coordinate(index, P);
  const Index z = take_coordinate(index, Z);
  const Index c = take_coordinate(index, C);

  const Taps<TAPS_D> planes = planes_of(z, cubic);
  const Taps<TAPS_H> rows = rows_of(p, cubic);
  Taps<TAPS_W> columns[TILE_Q];
#pragma unroll
  for (int q = 0; q < TILE_Q; ++q) columns[q] = columns_of(smaller<Index>(q0 + q, Q - 1), cubic);

  float values[TILE_Q] = {};
#pragma unroll
  for (int i = 0; i < TAPS_D; ++i) {
#pragma unroll
    for (int j = 0; j < TAPS_H; ++j) {
      const TX* const row = x + Input::at(index, c, planes.positions[i], rows.positions[j], 0);
      const float weight = planes.weights[i] * rows.weights[j];
#pragma unroll
      for (int q = 0; q < TILE_Q; ++q) {
        float sum = 0.0f;
#pragma unroll
        for (int k = 0; k < TAPS_W; ++k) {
          const TX element = row[columns[q].positions[k] * Index(X_STRIDE_W)];
          sum += columns[q].weights[k] * user_entered(element, static_cast<int>(c), user);
        }
        values[q] += weight * sum;
      }
    }
  }

  const Index offset = Output::at(index, c, z, p, q0);
#pragma unroll
  for (int q = 0; q < TILE_Q; q += STORE) {
    if (q0 + q >= Q) break;
    float run[STORE];
#pragma unroll
    for (int j = 0; j < STORE; ++j) run[j] = values[q + j];
    store_run<false>(y, offset + q * Index(Y_STRIDE_Q), run, static_cast<int>(c), {alpha, beta, user});
  }
}
