// Gradients by filters of few channels, as sums that SPLIT blocks share: where elements stand in dw and in the parts
// that these blocks leave, and how the parts are added.
//
// A filter here is one channel of one k: its TAPS elements of dw. parts: [SPLIT][K][C_PER_GROUP][TAPS] f32, or, where
// FILTERS_INNER, [SPLIT][TAPS][K][C_PER_GROUP].
//
// From the prelude: the problem, SPLIT, IS_SPLIT (more than one) and REDUCE_THREADS.
#include "lib/images.cuh"
#include "lib/index.cuh"
#include "lib/store.cuh"

constexpr int TAPS = T * R * S;

__device__ __forceinline__ int filters() {
  return K * C_PER_GROUP;
}

// Offset in dw of element `tap` (of x, not of memory) of filter number `filter`.
__device__ __forceinline__ Index offset_of(Index filter, int tap) {
  const int stored = MIRRORED ? TAPS - 1 - tap : tap;
  const Index c = take_coordinate(filter, C_PER_GROUP);
  return filter * Index(DW_STRIDE_K) + c * Index(DW_STRIDE_C) + stored / (R * S) * Index(DW_STRIDE_T) +
         stored / S % R * Index(DW_STRIDE_R) + stored % S * Index(DW_STRIDE_S);
}

// Leaves a block's sum of one element: in dw, if the block has no others to share it with, else in part `part`.
template <bool FILTERS_INNER>
__device__ __forceinline__ void leave_sum(TDW* dw, float* parts, int part, Index filter, int tap, float sum,
                                          const OutputArguments& output) {
  if constexpr (!IS_SPLIT) {
    store_result(dw, offset_of(filter, tap), sum, 0, output);
  } else {
    const Index number = FILTERS_INNER ? tap * Index(filters()) + filter : filter * TAPS + tap;
    parts[part * (Index(filters()) * TAPS) + number] = sum;
  }
}

// dw from the parts. A block adds 32 elements, each by REDUCE_THREADS / 32 threads.
template <bool FILTERS_INNER>
__device__ __forceinline__ void add_parts(const float* parts, TDW* dw, const OutputArguments& output) {
  constexpr int SHARES = REDUCE_THREADS / 32;
  __shared__ float sums[SHARES][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, share = static_cast<int>(threadIdx.x) / 32;
  const Index number = static_cast<Index>(blockIdx.x) * 32 + lane;
  const bool exists = number < Index(filters()) * TAPS;
  const float* const first = parts + (exists ? number : 0);  // not under a condition: the loads start together
  float sum = 0.0f;
#pragma unroll 8
  for (int part = share; part < SPLIT; part += SHARES) {
    sum += load_readonly<1>(first + part * (Index(filters()) * TAPS))[0];
  }
  sums[share][lane] = sum;
  __syncthreads();
  if (share != 0 || !exists) return;
#pragma unroll
  for (int i = 1; i < SHARES; ++i) sum += sums[i][lane];
  Index outer = number;
  const auto inner = static_cast<int>(take_coordinate(outer, FILTERS_INNER ? filters() : TAPS));
  store_result(dw, FILTERS_INNER ? offset_of(inner, static_cast<int>(outer)) : offset_of(outer, inner), sum, 0, output);
}
