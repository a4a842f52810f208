// The gradient of softmax or log-softmax along an axis that is not the innermost dimension: NCHW over its channels, for
// instance.
//
// A thread takes VECTOR neighbouring rows, so that neighbouring threads read (or write) neighbouring addresses, and
// every AXIS_LANES-th element of them; the threads that share rows meet in shared memory. With KEEP a thread's elements
// stay in registers between the sums and the result, KEPT at the most of each row; without, rows of any length are read
// twice. VECTOR divides INNER. dx may be y or dy itself. Parameters: softmax_backward_strided.cpp.
#include "lib/index.cuh"
#include "lib/softmax_gradient.cuh"

constexpr int COLUMNS = INNER_LANES * VECTOR;  // rows of a block
constexpr int UNROLL = KEEP ? KEPT : 4;

// The sums of whole rows from those of the threads that share them, in the same order for all of them.
__device__ __forceinline__ void merge_lanes(int inner_lane, int axis_lane, float (&sums)[VECTOR]) {
  __shared__ float parts[AXIS_LANES][COLUMNS];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) parts[axis_lane][j * INNER_LANES + inner_lane] = sums[j];
  __syncthreads();
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    sums[j] = parts[0][j * INNER_LANES + inner_lane];
#pragma unroll
    for (int lane = 1; lane < AXIS_LANES; ++lane) sums[j] += parts[lane][j * INNER_LANES + inner_lane];
  }
}

extern "C" __global__ void __launch_bounds__(INNER_LANES* AXIS_LANES)
    softmax_backward_strided(const TY* y, const TDY* dy, TDX* dx, float alpha, float beta, UserArguments user,
                             long long) {
  const int inner_lane = static_cast<int>(threadIdx.x) % INNER_LANES;
  const int axis_lane = static_cast<int>(threadIdx.x) / INNER_LANES;
  const Index slices = ceil_div<Index>(INNER, COLUMNS);
  // Elements that a thread takes of each of its rows, at the most.
  const int steps = KEEP ? KEPT : ceil_div<int>(ROW, AXIS_LANES);
  const Index outer = static_cast<Index>(blockIdx.x) / slices;
  const Index column = static_cast<Index>(blockIdx.x) % slices * COLUMNS + inner_lane * VECTOR;
  const bool active = column < INNER;  // idle threads stay for the barrier
  y += row_offset<Y_OUTER_STRIDES>(outer) + column * Index(Y_STEP);
  dy += row_offset<DY_OUTER_STRIDES>(outer) + column * Index(DY_STEP);
  const Index dx_column = row_offset<DX_OUTER_STRIDES>(outer) + column * Index(DX_STEP);

  Neighbours kept[KEPT];
  float sums[VECTOR] = {};
#pragma unroll UNROLL
  for (int step = 0; step < steps; ++step) {
    const Index i = axis_lane + step * AXIS_LANES;
    if (!active || i >= ROW) break;
    Neighbours& neighbours = kept[KEEP ? step : 0];
    neighbours.load(y + i * Index(Y_AXIS_STRIDE), dy + i * Index(DY_AXIS_STRIDE), user);
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) sums[j] += neighbours.term(j);
  }
  if constexpr (AXIS_LANES > 1) merge_lanes(inner_lane, axis_lane, sums);
  if (!active) return;

#pragma unroll UNROLL
  for (int step = steps - 1; step >= 0; --step) {
    const Index i = axis_lane + step * AXIS_LANES;
    if (i >= ROW) continue;
    Neighbours& neighbours = kept[KEEP ? step : 0];
    if constexpr (!KEEP) neighbours.load(y + i * Index(Y_AXIS_STRIDE), dy + i * Index(DY_AXIS_STRIDE), user);
    float gradients[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) gradients[j] = neighbours.gradient(j, sums[j]);
    store_along<DX_RUN, DX_STEP>(dx, dx_column + i * Index(DX_AXIS_STRIDE), gradients, {alpha, beta, user});
  }
}
