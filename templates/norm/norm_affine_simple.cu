// Normalisation of a row as scale and shift, the plain way: one thread a row, any axes and strides.
// The trusted kernel of norm_affine: the others are checked against it, so it is written to be obviously right.
//
// From the prelude, besides what lib/simple_rows.cuh has: PAIRS, the elements of scale that a row has, and
// PAIR_EXTENTS, their extents along the axes.
#include "lib/norm_affine.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

constexpr int ALONE = 1;  // the distance of an element from the next, which there is none of

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_affine_simple(const TX* x, const TW* w, const TB* b, TSCALE* scale, TSHIFT* shift, UserArguments user,
                       float epsilon, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();
  if (row >= rows) return;
  x += offset_of_row<X_STRIDES>(row);
  if constexpr (HAS_W) w += offset_of_row<W_STRIDES>(row);
  if constexpr (HAS_B) b += offset_of_row<B_STRIDES>(row);
  const Index scale_row = offset_of_row<SCALE_STRIDES>(row);
  shift += offset_of_row<SHIFT_STRIDES>(row);

  RowMoments moments = RowMoments::of_nothing();
  for (Index i = 0; i < ROW; ++i) {
    const float one[1] = {user_entered(x[offset_in_row<X_STRIDES>(i)], 0, user)};
    moments.add(one);
  }
  const RowStatistics statistics = moments.statistics(float(ROW), epsilon);
  for (Index i = 0; i < PAIRS; ++i) {
    const float by = HAS_W ? to_float(w[offset_in_row<W_STRIDES, PAIR_EXTENTS>(i)]) : 1.0f;
    const float plus = HAS_B ? to_float(b[offset_in_row<B_STRIDES, PAIR_EXTENTS>(i)]) : 0.0f;
    const Affine affine = affine_of(statistics, by, plus);
    const Index place = scale_row + offset_in_row<SCALE_STRIDES, PAIR_EXTENTS>(i);
    float result[] = {affine.scale};
    finish_along<TSCALE, 1, ALONE>(place, result, user);
    scale[place] = result[0];
    shift[offset_in_row<SHIFT_STRIDES, PAIR_EXTENTS>(i)] = affine.shift;
  }
}
