// What the kernels of cross entropy and of its gradient share: rows of logits, their targets, and sums over rows.
//
// loss of a row = log(sum over c of exp(x[c])) - x[target]; 0 where the target is IGNORE, NaN where it is no class.
//
// From the prelude: lib/simple_rows.cuh, AXIS, REDUCTION (the codes below), IGNORE, the block of the kernel
// THREADS, and COUNT_BLOCKS, COUNT_THREADS of the kernels that see all rows.
#include "lib/math.cuh"
#include "lib/reduce.cuh"
#include "lib/simple_rows.cuh"

enum : int { REDUCTION_NONE = 0, REDUCTION_MEAN = 1, REDUCTION_SUM = 2 };

__device__ __forceinline__ Index rows_of(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : static_cast<Index>(ROWS);
}

__device__ __forceinline__ bool is_class(int target) {
  return target >= 0 && target < ROW;
}

// The sum of the losses of some rows, and how many of them count.
struct LossPart {
  float sum;
  int rows;
};

// The sum over the threads of a warp, for all of them.
__device__ __forceinline__ int warp_total(int value) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The parts of all threads of a block as one, in thread 0. `scratch` is shared memory that nobody is using.
struct PartScratch {
  float sums[32];
  int rows[32];
};
template <int BLOCK>
__device__ __forceinline__ LossPart block_part(LossPart mine, PartScratch& scratch) {
  mine.sum = block_reduce<BLOCK>(mine.sum, scratch.sums, Sum());
  const int in_warp = warp_total(mine.rows);
  if (threadIdx.x % 32 == 0) scratch.rows[threadIdx.x / 32] = in_warp;
  __syncthreads();
  mine.rows = 0;
#pragma unroll
  for (int warp = 0; warp < BLOCK / 32; ++warp) mine.rows += scratch.rows[warp];
  return mine;
}
