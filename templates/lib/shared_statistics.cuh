// Statistics of a row that LANES threads share, lanes of a warp or all THREADS of a block.
#include "lib/reduce.cuh"
#include "lib/softmax.cuh"

static_assert(LANES <= 32 || LANES == THREADS, "a row's threads are of one warp, or all of a block");

template <class Combine>
__device__ __forceinline__ float row_reduce(float value, Combine combine) {
  if constexpr (LANES <= 32) {
    return lanes_reduce<LANES>(value, combine);
  } else {
    __shared__ float scratch[32];
    return block_reduce<THREADS>(value, scratch, combine);
  }
}

// Statistics of the row from those of its threads' parts, for all threads. Every thread of the block must take part.
__device__ __forceinline__ RowStatistics of_whole_row(const RowStatistics& mine) {
  RowStatistics all;
  all.maximum = row_reduce(mine.maximum, Maximum());
  all.sum = row_reduce(mine.sum * quick_exp(mine.maximum - RowStatistics::finite_or_zero(all.maximum)), Sum());
  return all;
}
