// Normalisation of rows whose runs of RUN neighbours stand side by side in memory, as the channels of a group do in
// channels last (lib/row_blocks.cuh): threads take neighbours of all rows alike, and each of these, a channel, has sums
// of its own. norm_statistics leaves parts of them in the workspace, norm_channels merges those of the channels of a
// row, norm_apply normalises. Parameters: norm_channels.cpp.
//
// From the prelude, besides what lib/norm_blocks.cuh and lib/norm_merge.cuh have for channels as rows:
// MEAN_GROUP_STRIDES and the like of the operands for statistics along GROUP_EXTENTS.
#include "lib/norm_blocks.cuh"
#include "lib/norm_merge.cuh"

// A block for each row.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_channels(float* mean, float* inv_deviation, float* running_mean, float* running_variance, float* workspace,
                  float epsilon, float momentum) {
  const Index group = static_cast<Index>(blockIdx.x);
  const RowMoments sum = merged_row<THREADS>(workspace, group, static_cast<int>(threadIdx.x));
  const RowStatistics statistics = sum.statistics(float(ROW) * float(RUN), epsilon);
  float* const of_channels = behind_parts<RowMoments>(workspace) + group * RUN;
  for (int channel = static_cast<int>(threadIdx.x); channel < RUN; channel += THREADS) {
    of_channels[channel] = statistics.mean;
    of_channels[Index(ROWS) + channel] = statistics.inv_deviation;
  }
  if (threadIdx.x != 0) return;
  store_statistics(statistics, {mean + group_offset<MEAN_GROUP_STRIDES>(group),
                                inv_deviation + group_offset<INV_DEVIATION_GROUP_STRIDES>(group),
                                running_mean + group_offset<RUNNING_MEAN_GROUP_STRIDES>(group),
                                running_variance + group_offset<RUNNING_VARIANCE_GROUP_STRIDES>(group), momentum});
}
