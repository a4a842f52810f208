// The gradient of softmax with respect to x, from y = softmax(x) and dy:
//
//   dx = y (dy - sum(y dy)), and of log-softmax dx = dy - exp(y) sum(dy), with sums along the row.
#include "lib/blend.cuh"
#include "lib/math.cuh"
#include "lib/rows.cuh"

static_assert(DX_RUN == 1 || DX_STEP == 1, "an access moves what is side by side in dx");

// VECTOR neighbours of y and of dy, as they are stored.
struct Neighbours {
  Vector<TY, VECTOR> y;
  Vector<TDY, VECTOR> dy;

  __device__ __forceinline__ void load(const TY* first_y, const TDY* first_dy) {
    y = load_neighbours<Y_RUN, Y_STEP>(first_y);
    dy = load_neighbours<DY_RUN, DY_STEP>(first_dy);
  }
  // What neighbour `j` adds to the sum of its row.
  __device__ __forceinline__ float term(int j) const {
    if constexpr (LOG) return to_float(dy[j]);
    return to_float(y[j]) * to_float(dy[j]);
  }
  // Its gradient, given the sum of its row.
  __device__ __forceinline__ float gradient(int j, float sum) const {
    if constexpr (LOG) return to_float(dy[j]) - quick_exp(to_float(y[j])) * sum;
    return to_float(y[j]) * (to_float(dy[j]) - sum);
  }
};

// Stores VECTOR neighbours from `first` on, blended with what is there.
__device__ __forceinline__ void store_gradients(TDX* first, const float (&values)[VECTOR], float alpha, float beta) {
#pragma unroll
  for (int i = 0; i < VECTOR; i += DX_RUN) {
    TDX* const target = first + i * Index(DX_STEP);
    Vector<TDX, DX_RUN> run;
    if constexpr (BETA != SCALE_ZERO) run = load<DX_RUN>(target);
#pragma unroll
    for (int j = 0; j < DX_RUN; ++j) {
      float old = 0.0f;
      if constexpr (BETA != SCALE_ZERO) old = to_float(run[j]);
      run[j] = from_float<TDX>(blended<ALPHA, BETA>(values[i + j], alpha, old, beta));
    }
    store<DX_RUN>(target, run);
  }
}
