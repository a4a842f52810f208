// The gradient of softmax or log-softmax, rows in any layout: LANES threads share a row, lanes of a warp or a block.
//
// With KEEP, what a thread read of y and dy stays in registers between the sum and the result, KEPT vectors at the
// most; without, rows of any length are read twice, the second time backwards: what was read last is still in the
// cache. dx may be y or dy itself: a thread writes the elements that it alone has read. VECTOR divides ROW. Parameters:
// softmax_backward_rows.cpp.
#include "lib/index.cuh"
#include "lib/reduce.cuh"
#include "lib/softmax_gradient.cuh"

constexpr int UNROLL = KEEP ? KEPT : 4;

static_assert(LANES <= 32 || LANES == THREADS, "a row's threads are of one warp, or all of a block");

// Over the threads of a row; all of them get the result.
__device__ __forceinline__ float row_sum(float value) {
  if constexpr (LANES <= 32) {
    return lanes_reduce<LANES>(value, Sum());
  } else {
    __shared__ float scratch[32];
    return block_reduce<THREADS>(value, scratch, Sum());
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_backward_rows(const TY* y, const TDY* dy, TDX* dx, float alpha, float beta, UserArguments user,
                          long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = LANES <= 32 ? global_thread<THREADS, Index>() / LANES : static_cast<Index>(blockIdx.x);
  const int first = static_cast<int>(threadIdx.x) % LANES * VECTOR;
  const bool active = row < rows;  // idle threads stay for the sum
  y += row_offset<Y_OUTER_STRIDES>(row);
  dy += row_offset<DY_OUTER_STRIDES>(row);
  const Index dx_row = row_offset<DX_OUTER_STRIDES>(row);

  const int steps = KEEP ? KEPT : ceil_div<int>(ROW, LANES * VECTOR);  // vectors of a thread, at the most
  Neighbours kept[KEPT];
  float sum = 0.0f;
#pragma unroll UNROLL
  for (int step = 0; step < steps; ++step) {
    const int i = step * LANES * VECTOR + first;
    if (!active || i >= ROW) break;
    Neighbours& neighbours = kept[KEEP ? step : 0];
    neighbours.load(y + i * Index(Y_STEP), dy + i * Index(DY_STEP), user);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sum += neighbours.term(j);
  }
  sum = row_sum(sum);
  if (!active) return;

#pragma unroll UNROLL
  for (int step = steps - 1; step >= 0; --step) {
    const int i = step * LANES * VECTOR + first;
    if (i >= ROW) continue;
    Neighbours& neighbours = kept[KEEP ? step : 0];
    if constexpr (!KEEP) neighbours.load(y + i * Index(Y_STEP), dy + i * Index(DY_STEP), user);
    float gradients[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) gradients[j] = neighbours.gradient(j, sum);
    store_along<DX_RUN, DX_STEP>(dx, dx_row + i * Index(DX_STEP), gradients, {alpha, beta, user});
  }
}
