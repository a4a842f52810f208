// Parts shared by the kernels of cross entropy and of its gradient: rows of logits, their targets, and sums over rows.
//
// loss of a row = (1 - smoothing) * weight[target] * surprise[target] + smoothing / ROW * sum of weight * surprise,
// with surprise[c] = log(sum over c of exp(x[c])) - x[c]; 0 where the target is IGNORE, NaN where it is no class.
//
// From the prelude: lib/simple_rows.cuh, AXIS, REDUCTION (the codes below), IGNORE, HAS_WEIGHTS (without: 1) and
// WEIGHTS_STRIDE, SMOOTHS (without: the smoothing is 0), the block of the kernel THREADS, and COUNT_BLOCKS,
// COUNT_THREADS of the kernels that see all rows.
#include "lib/math.cuh"
#include "lib/reduce.cuh"
#include "lib/select.cuh"
#include "lib/simple_rows.cuh"

enum : int { REDUCTION_NONE = 0, REDUCTION_MEAN = 1, REDUCTION_SUM = 2 };

__device__ __forceinline__ Index rows_of(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : static_cast<Index>(ROWS);
}

__device__ __forceinline__ bool is_class(int target) {
  return target >= 0 && target < ROW;
}

__device__ __forceinline__ float weight_of(const float* weights, Index c) {
  return HAS_WEIGHTS ? weights[static_cast<long long>(c) * WEIGHTS_STRIDE] : 1.0f;
}

// Weight of a row in a mean: 1, or the weight of its target.
using Share = Select<HAS_WEIGHTS, float, int>::type;

__device__ __forceinline__ Share share_of(const float* weights, int target) {
  if (target == IGNORE) return 0;
  if constexpr (HAS_WEIGHTS) return is_class(target) ? weight_of(weights, target) : 0.0f;
  return 1;
}

// The sum of the losses of some rows, and what they count for.
struct LossPart {
  float sum;
  Share rows;
};

// The sum over the threads of a warp, for all of them.
__device__ __forceinline__ Share warp_total(Share value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The parts of all threads of a block as one, in thread 0. `scratch` is shared memory that nobody is using.
struct PartScratch {
  float sums[32];
  Share rows[32];
};
template <int BLOCK>
__device__ __forceinline__ LossPart block_part(LossPart mine, PartScratch& scratch) {
  mine.sum = block_reduce<BLOCK>(mine.sum, scratch.sums, Sum());
  const Share in_warp = warp_total(mine.rows);
  if (threadIdx.x % 32 == 0) scratch.rows[threadIdx.x / 32] = in_warp;
  __syncthreads();
  mine.rows = 0;
#pragma unroll
  for (int warp = 0; warp < BLOCK / 32; ++warp) mine.rows += scratch.rows[warp];
  return mine;
}
