// The gradient of softmax with respect to x, from y = softmax(x) and dy:
//
//   dx = y (dy - sum(y dy)), and of log-softmax dx = dy - exp(y) sum(dy), with sums along the row.
#include "lib/math.cuh"
#include "lib/rows.cuh"
#include "lib/store.cuh"

// VECTOR neighbours of y, as they are stored, and of dy, after the user's prologue.
struct Neighbours {
  Vector<TY, VECTOR> y;
  Vector<typename UserKept<TDY>::type, VECTOR> dy;

  __device__ __forceinline__ void load(const TY* first_y, const TDY* first_dy, const UserArguments& user) {
    y = load_neighbours<Y_RUN, Y_STEP>(first_y);
    dy = user_kept<false>(load_neighbours<DY_RUN, DY_STEP>(first_dy), 0, user);
  }
  // Term that neighbour `j` adds to the sum of its row.
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
