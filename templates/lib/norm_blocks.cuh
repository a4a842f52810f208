// Shared by kernels of normalisations by blocks (lib/row_blocks.cuh): normalising elements of x, and the last of the
// launches of rows that are split.
//
// workspace: the parts, then mean and inverse deviation of each row: [2][ROWS] f32. GIVEN: the statistics are operands.
// Every thread reads all that it needs of an element before it writes it, so that y may be x or the residual.
#include "lib/norm.cuh"
#include "lib/norm_statistics.cuh"

// Operands that kernels read, from the first element of a thread's rows on, and write.
struct Operands {
  const TX* x;
  const TW* w;
  const TB* b;
  TY* y;
  const TRESIDUAL* residual;
  OutputArguments output;
  ActivationNumbers numbers;
  Index y_first = 0;  // offset in y of the thread's first element; user code asks for offsets from y's own

  __device__ __forceinline__ void move_to(const ThreadRows& rows) {
    x += rows.offset<X_OUTER_STRIDES, X_STEP>();
    y_first = rows.offset<Y_OUTER_STRIDES, Y_STEP>();
    if constexpr (HAS_W) w += rows.offset<W_OUTER_STRIDES, W_STEP>();
    if constexpr (HAS_B) b += rows.offset<B_OUTER_STRIDES, B_STEP>();
    if constexpr (ADD) residual += rows.offset<RESIDUAL_OUTER_STRIDES, RESIDUAL_STEP>();
  }

  __device__ __forceinline__ Elements load_x(Index i) const { return loaded(x, i, output.user); }

  // Normalises the elements from number `i` of their rows on.
  __device__ __forceinline__ void finish(Index i, const Elements& elements, const RowStatistics (&rows)[SIDE]) const {
    const Index place = y_first + element_offset<Y_ROW_STRIDES>(i);
    Vector<TW, VECTOR> by;
    Vector<TB, VECTOR> shift;
    Vector<TRESIDUAL, VECTOR> other;
    Vector<TY, VECTOR> old;
    if constexpr (HAS_W) by = load_neighbours<W_RUN, W_STEP>(w + element_offset<W_ROW_STRIDES>(i));
    if constexpr (HAS_B) shift = load_neighbours<B_RUN, B_STEP>(b + element_offset<B_ROW_STRIDES>(i));
    if constexpr (ADD)
      other = load_neighbours<RESIDUAL_RUN, RESIDUAL_STEP>(residual + element_offset<RESIDUAL_ROW_STRIDES>(i));
    if constexpr (BETA != SCALE_ZERO) old = load_neighbours<Y_RUN, Y_STEP>(y + place);
    float values[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const float value = normalised(to_float(elements[j]), rows[ACROSS ? j : 0], HAS_W ? to_float(by[j]) : 1.0f,
                                     HAS_B ? to_float(shift[j]) : 0.0f);
      values[j] = finished(value, BETA != SCALE_ZERO ? to_float(old[j]) : 0.0f, ADD ? to_float(other[j]) : 0.0f,
                           output.alpha, output.beta, numbers);
    }
    finish_along<TY, Y_RUN, Y_STEP>(place, values, output.user);
    store_neighbours<Y_RUN, Y_STEP>(y + place, values);
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_apply(const TX* x, const TW* w, const TB* b, TY* y, const float* running_mean, const float* running_variance,
               const TRESIDUAL* residual, const float* workspace, float alpha, float beta, UserArguments user,
               float epsilon, float slope, float offset, float low, float high, long long n) {
  const ThreadRows rows(n);
  if (!rows.active) return;
  Operands operands = {x, w, b, y, residual, {alpha, beta, user}, {slope, offset, low, high}};
  operands.move_to(rows);
  RowStatistics statistics[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    if constexpr (GIVEN) {
      const Index column = rows.column + j;
      statistics[j].mean =
          running_mean[row_offset<RUNNING_MEAN_OUTER_STRIDES>(rows.outer) + column * Index(RUNNING_MEAN_STEP)];
      const float variance = running_variance[row_offset<RUNNING_VARIANCE_OUTER_STRIDES>(rows.outer) +
                                              column * Index(RUNNING_VARIANCE_STEP)];
      statistics[j].inv_deviation = rsqrtf(variance + epsilon);
    } else {
      statistics[j].mean = behind_parts<RowMoments>(workspace)[rows.first() + j];
      statistics[j].inv_deviation = behind_parts<RowMoments>(workspace)[ROWS + rows.first() + j];
    }
  }
  for_each_taken(rows.lane, [&](Index i) { operands.finish(i, operands.load_x(i), statistics); });
}
