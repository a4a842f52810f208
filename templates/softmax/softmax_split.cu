// Softmax or log-softmax of few long rows, in any layout: SPLITS blocks share a row, in two kernels.
//
// The first leaves the statistics of every part of a row in the workspace, parts[row][split]; the second merges those
// of its row, always in the same order, and makes its part of the result. Parameters: softmax_split.cpp.
#include "lib/row_parts.cuh"
#include "lib/softmax_passes.cuh"

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
