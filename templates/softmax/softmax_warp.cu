// Softmax or log-softmax of rows, in any layout, that fit the registers of LANES neighbouring threads of a warp.
//
// A row is read once; its maximum, its sum and the result are made from registers. STEPS: vectors that a thread may
// have of it; VECTOR divides ROW. Parameters: softmax_warp.cpp.
#include "lib/index.cuh"
#include "lib/reduce.cuh"
#include "lib/softmax.cuh"
#include "lib/softmax_rows.cuh"

static_assert(THREADS % 32 == 0, "shuffles need whole warps");

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_warp(const TX* x, TY* y, float alpha, float beta, UserArguments user, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index thread = global_thread<THREADS, Index>();
  const Index row = thread / LANES;
  const int first = static_cast<int>(thread % LANES) * VECTOR;
  const bool active = row < rows;  // idle lanes stay for the shuffles
  x += x_row_offset(row);
  const Index y_row = y_row_offset(row);

  float elements[STEPS][VECTOR];
  float maximum = -infinity();
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int i = step * LANES * VECTOR + first;
    Elements loaded;
    const bool inside = active && i < ROW;
    if (inside) loaded = load_elements(x + i * Index(X_STEP), user);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      elements[step][j] = inside ? to_float(loaded[j]) : -infinity();
      maximum = fmaxf(maximum, elements[step][j]);
    }
  }
  maximum = lanes_reduce<LANES>(maximum, Maximum());

  float sum = 0.0f;
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += quick_exp(elements[step][j] - maximum);
  }
  sum = lanes_reduce<LANES>(sum, Sum());

  const RowNormaliser<LOG> normalised(maximum, sum);
#pragma unroll
  for (int step = 0; step < STEPS; ++step) {
    const int i = step * LANES * VECTOR + first;
    if (!active || i >= ROW) break;
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) elements[step][j] = normalised(elements[step][j]);
    store_along<Y_RUN, Y_STEP>(y, y_row + i * Index(Y_STEP), elements[step], {alpha, beta, user});
  }
}
