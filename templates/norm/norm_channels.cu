// Normalisation of rows whose runs of RUN neighbours stand side by side in memory, as the channels of a group do in
// channels last (lib/row_blocks.cuh): threads take neighbours of all rows alike, and each of these, a channel, has sums
// of its own. norm_statistics leaves parts of them in the workspace, norm_channels merges those of the channels of a
// row, norm_apply normalises. Parameters: norm_channels.cpp.
//
// From the prelude, besides what lib/norm_blocks.cuh has for channels as rows: RUN, GROUP_EXTENTS, which number the
// rows, innermost first, and MEAN_GROUP_STRIDES and the like of the operands for statistics along them.
#include "lib/norm_blocks.cuh"

// Offset of row `group` in the operand of these strides.
template <const long long (&STRIDES)[5]>
__device__ __forceinline__ Index group_offset(Index group) {
  return strided_offset(group, STRIDES[0], GROUP_EXTENTS[0], STRIDES[1], GROUP_EXTENTS[1], STRIDES[2], GROUP_EXTENTS[2],
                        STRIDES[3], GROUP_EXTENTS[3], STRIDES[4], GROUP_EXTENTS[4]);
}

// A block for each row. Its threads take parts in turn, a channel after the other.
extern "C" __global__ void __launch_bounds__(THREADS)
    norm_channels(float* mean, float* inv_deviation, float* running_mean, float* running_variance, float* workspace,
                  float epsilon, float momentum) {
  const Index group = static_cast<Index>(blockIdx.x);
  RowMoments sum = RowMoments::of_nothing();
  for (int i = static_cast<int>(threadIdx.x); i < RUN * SPLITS; i += THREADS) {
    RowMoments part;
#pragma unroll
    for (int w = 0; w < RowMoments::WORDS; ++w) {
      part.words[w] = workspace[(w * SPLITS + i / RUN) * Index(ROWS) + group * RUN + i % RUN];
    }
    sum = RowMoments::merged(sum, part);
  }
  sum = merged_warps(merged_lanes<32>(sum));
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
