// Softmax or log-softmax of few long rows, in any layout: SPLITS blocks share a row, in two kernels.
//
// The first leaves the statistics of every part of a row in the workspace, parts[row][split]; the second merges those
// of its row, always in the same order, and makes its part of the result. Parameters: softmax_split.cpp.
#include "lib/softmax_passes.cuh"

constexpr Index PART = ceil_div<Index>(ROW / VECTOR, SPLITS) * VECTOR;  // elements of a block, but for a row's last

static_assert(ROW % VECTOR == 0, "a vector must not cross the end of a row");

struct Part {
  Index row;
  Index begin, length;  // in the row; the last parts may be empty
};

__device__ __forceinline__ Part part_of_block() {
  const Index block = static_cast<Index>(blockIdx.x);
  const Index begin = smaller<Index>(block % SPLITS * PART, ROW);
  return {block / SPLITS, begin, smaller<Index>(PART, ROW - begin)};
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_split_statistics(const TX* x, UserArguments user, RowStatistics* parts) {
  const Part part = part_of_block();
  const RowStatistics statistics =
      block_statistics<THREADS>(x + x_row_offset(part.row) + part.begin * Index(X_STEP), part.length, user);
  if (threadIdx.x == 0) parts[blockIdx.x] = statistics;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_split_normalise(const TX* x, TY* y, float alpha, float beta, UserArguments user,
                            const RowStatistics* parts) {
  const Part part = part_of_block();
  RowStatistics row = RowStatistics::of_nothing();
#pragma unroll
  for (int split = 0; split < SPLITS; ++split) row.merge(parts[part.row * SPLITS + split]);
  block_normalise<THREADS>(x + x_row_offset(part.row) + part.begin * Index(X_STEP), y,
                           y_row_offset(part.row) + part.begin * Index(Y_STEP), part.length, row, {alpha, beta, user});
}
