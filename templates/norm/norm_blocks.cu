// Normalisation of rows along any axes and in any layout (lib/row_blocks.cuh).
//
// norm_blocks: the threads of a row find its statistics and normalise it, with KEEP from registers, else by reading it
// again, backwards: what was read last is still in the cache. Few long rows are split: norm_statistics leaves the parts
// of their statistics in the workspace, norm_finish merges these in order, norm_apply normalises. norm_apply alone
// serves statistics that are GIVEN. Parameters: norm_blocks.cpp.
#include "lib/norm_blocks.cuh"

constexpr int UNROLL = KEEP ? KEPT : 4;

// The statistics of row `column` of group `outer`, where they are asked for.
struct Statistics {
  StatisticsArguments to;

  __device__ __forceinline__ void store(Index outer, Index column, const RowStatistics& row) const {
    store_statistics(
        row, {to.mean + row_offset<MEAN_OUTER_STRIDES>(outer) + column * Index(MEAN_STEP),
              to.inv_deviation + row_offset<INV_DEVIATION_OUTER_STRIDES>(outer) + column * Index(INV_DEVIATION_STEP),
              to.running_mean + row_offset<RUNNING_MEAN_OUTER_STRIDES>(outer) + column * Index(RUNNING_MEAN_STEP),
              to.running_variance + row_offset<RUNNING_VARIANCE_OUTER_STRIDES>(outer) +
                  column * Index(RUNNING_VARIANCE_STEP),
              to.momentum});
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_blocks(const TX* x, const TW* w, const TB* b, TY* y, float* mean, float* inv_deviation, float* running_mean,
                float* running_variance, const TRESIDUAL* residual, float* workspace, float alpha, float beta,
                UserArguments user, float epsilon, float momentum, float slope, float offset, float low, float high,
                long long n) {
  const ThreadRows rows(n);
  Operands operands = {x, w, b, y, residual, {alpha, beta, user}, {slope, offset, low, high}};
  operands.move_to(rows);
  Elements kept[KEPT];
  RowMoments sums[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) sums[j] = RowMoments::of_nothing();
  const int steps = KEEP ? KEPT : ceil_div<int>(ROW, LANES * TAKEN);  // that a thread takes of its rows, at the most
#pragma unroll UNROLL
  for (int step = 0; step < steps; ++step) {
    const Index i = (step * LANES + rows.lane) * TAKEN;
    if (!rows.active || i >= ROW) break;
    kept[KEEP ? step : 0] = operands.load_x(i);
    add_taken(kept[KEEP ? step : 0], sums);
  }
  merge_lanes(rows, sums);
  if (!rows.active) return;

  RowStatistics statistics[SIDE];
  const Statistics asked_for = {{mean, inv_deviation, running_mean, running_variance, momentum}};
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    statistics[j] = sums[j].statistics(float(ROW), epsilon);
    if (rows.lane == 0) asked_for.store(rows.outer, rows.column + j, statistics[j]);
  }
#pragma unroll UNROLL
  for (int step = steps - 1; step >= 0; --step) {
    const Index i = (step * LANES + rows.lane) * TAKEN;
    if (i >= ROW) continue;
    if constexpr (!KEEP) kept[0] = operands.load_x(i);
    operands.finish(i, kept[KEEP ? step : 0], statistics);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_finish(float* mean, float* inv_deviation, float* running_mean, float* running_variance, float* workspace,
                float epsilon, float momentum, long long n) {
  const Index row = global_thread<THREADS, Index>() / MERGE_LANES;
  const bool active = row < rows_of_call(n);
  const RowMoments sum = merged_parts<RowMoments>(workspace, active ? row : 0);
  if (!active || threadIdx.x % MERGE_LANES != 0) return;
  const RowStatistics statistics = sum.statistics(float(ROW), epsilon);
  behind_parts<RowMoments>(workspace)[row] = statistics.mean;
  behind_parts<RowMoments>(workspace)[ROWS + row] = statistics.inv_deviation;
  const Statistics asked_for = {{mean, inv_deviation, running_mean, running_variance, momentum}};
  asked_for.store(row / INNER, row % INNER, statistics);
}
