// Rows whose statistics are parts that norm_statistics left: of each of RUN neighbours, SPLITS parts. A row is RUN of
// the rows of lib/row_blocks.cuh that follow each other.
//
// From the prelude, besides what lib/norm_statistics.cuh has: RUN, and GROUP_EXTENTS, which number the rows, innermost
// first.
#include "lib/norm_statistics.cuh"

// Offset of row `row` in the operand of these strides along GROUP_EXTENTS.
template <const long long (&STRIDES)[5]>
__device__ __forceinline__ Index group_offset(Index row) {
  return strided_offset(row, STRIDES[0], GROUP_EXTENTS[0], STRIDES[1], GROUP_EXTENTS[1], STRIDES[2], GROUP_EXTENTS[2],
                        STRIDES[3], GROUP_EXTENTS[3], STRIDES[4], GROUP_EXTENTS[4]);
}

// Merges the parts of row `row` by COUNT threads, a warp or all of a block, of which this is number `thread`. They take
// parts in turn, a neighbour after the other; all of them get the result. Once in a kernel.
template <int COUNT>
__device__ __forceinline__ RowMoments merged_row(const float* parts, Index row, int thread) {
  static_assert(COUNT == 32 || COUNT == THREADS, "a warp, or all of a block");
  RowMoments sum = RowMoments::of_nothing();
  for (int i = thread; i < RUN * SPLITS; i += COUNT) {
    RowMoments part;
#pragma unroll
    for (int w = 0; w < RowMoments::WORDS; ++w) {
      part.words[w] = parts[(w * SPLITS + i / RUN) * Index(ROWS) + row * RUN + i % RUN];
    }
    sum = RowMoments::merged(sum, part);
  }
  sum = merged_lanes<32>(sum);
  if constexpr (COUNT > 32) sum = merged_warps(sum);
  return sum;
}
