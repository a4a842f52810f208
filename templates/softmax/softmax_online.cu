// Softmax or log-softmax of rows of any length, in any layout: a block a row, in two passes over it.
// VECTOR divides ROW. Parameters: softmax_online.cpp.
#include "lib/softmax_passes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_online(const TX* x, TY* y, float alpha, float beta, UserArguments user, long long) {
  const Index row = static_cast<Index>(blockIdx.x);
  x += x_row_offset(row);
  const RowStatistics statistics = block_statistics<THREADS>(x, Index(ROW), user);
  block_normalise<THREADS>(x, y, y_row_offset(row), Index(ROW), statistics, {alpha, beta, user});
}
