// Normalisation of rows as scale and shift (lib/row_blocks.cuh): norm_statistics leaves parts of the statistics of each
// row, or of each of RUN neighbours of it, in the workspace; norm_affine merges those of a row and writes what it has
// of scale and shift. Parameters: norm_affine.cpp.
//
// From the prelude, besides what lib/norm_merge.cuh has: ROW_THREADS, threads of a row in norm_affine; PAIRS, elements
// of scale that a row has, PAIR_EXTENTS, which number them, innermost first, and for each operand but x
// SCALE_GROUP_STRIDES and SCALE_PAIR_STRIDES: its strides from one row to the next and along PAIR_EXTENTS.
#include "lib/norm_affine.cuh"
#include "lib/norm_merge.cuh"

constexpr int ALONE = 1;  // the distance of an element from the next, which there is none of

// Offset of pair `pair` of row `row`.
template <const long long (&GROUP_STRIDES)[5], const long long (&STRIDES)[6]>
__device__ __forceinline__ Index place_of(Index row, Index pair) {
  return group_offset<GROUP_STRIDES>(row) +
         strided_offset(pair, STRIDES[0], PAIR_EXTENTS[0], STRIDES[1], PAIR_EXTENTS[1], STRIDES[2], PAIR_EXTENTS[2],
                        STRIDES[3], PAIR_EXTENTS[3], STRIDES[4], PAIR_EXTENTS[4], STRIDES[5], PAIR_EXTENTS[5]);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_affine(const TW* w, const TB* b, TSCALE* scale, TSHIFT* shift, const float* workspace, UserArguments user,
                float epsilon, long long n) {
  const Index row = global_thread<THREADS, Index>() / ROW_THREADS;
  const int thread = static_cast<int>(threadIdx.x) % ROW_THREADS;
  const bool active = row * RUN < rows_of_call(n);
  const RowMoments sum = merged_row<ROW_THREADS>(workspace, active ? row : 0, thread);
  if (!active) return;
  const RowStatistics statistics = sum.statistics(float(ROW) * float(RUN), epsilon);
  for (Index pair = thread; pair < PAIRS; pair += ROW_THREADS) {
    const float by = HAS_W ? to_float(w[place_of<W_GROUP_STRIDES, W_PAIR_STRIDES>(row, pair)]) : 1.0f;
    const float plus = HAS_B ? to_float(b[place_of<B_GROUP_STRIDES, B_PAIR_STRIDES>(row, pair)]) : 0.0f;
    const Affine affine = affine_of(statistics, by, plus);
    const Index place = place_of<SCALE_GROUP_STRIDES, SCALE_PAIR_STRIDES>(row, pair);
    float result[] = {affine.scale};
    finish_along<TSCALE, 1, ALONE>(place, result, user);
    scale[place] = result[0];
    shift[place_of<SHIFT_GROUP_STRIDES, SHIFT_PAIR_STRIDES>(row, pair)] = affine.shift;
  }
}
