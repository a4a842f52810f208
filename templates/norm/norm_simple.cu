// Normalisation of a row, the plain way: one thread a row, any axes and strides.
// The trusted kernel of norm_forward and norm_inference: the others are checked against it, so it is written to be
// obviously right.
#include "lib/norm.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

constexpr int ALONE = 1;  // the distance of an element from the next, which there is none of

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_simple(const TX* x, const TW* w, const TB* b, TY* y, float* mean, float* inv_deviation, float* running_mean,
                float* running_variance, const TRESIDUAL* residual, float alpha, float beta, UserArguments user,
                float epsilon, float momentum, float slope, float offset, float low, float high, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();
  if (row >= rows) return;
  x += offset_of_row<X_STRIDES>(row);
  const Index y_row = offset_of_row<Y_STRIDES>(row);
  if constexpr (HAS_W) w += offset_of_row<W_STRIDES>(row);
  if constexpr (HAS_B) b += offset_of_row<B_STRIDES>(row);
  if constexpr (ADD) residual += offset_of_row<RESIDUAL_STRIDES>(row);
  if constexpr (HAS_RUNNING_MEAN) {
    running_mean += offset_of_row<RUNNING_MEAN_STRIDES>(row);
    running_variance += offset_of_row<RUNNING_VARIANCE_STRIDES>(row);
  }

  RowStatistics statistics;
  if constexpr (GIVEN) {
    statistics = {*running_mean, rsqrtf(*running_variance + epsilon), 0.0f};
  } else {
    RowMoments moments = RowMoments::of_nothing();
    for (Index i = 0; i < ROW; ++i) {
      const float one[1] = {user_entered(x[offset_in_row<X_STRIDES>(i)], 0, user)};
      moments.add(one);
    }
    statistics = moments.statistics(float(ROW), epsilon);
    store_statistics(
        statistics, {mean + offset_of_row<MEAN_STRIDES>(row), inv_deviation + offset_of_row<INV_DEVIATION_STRIDES>(row),
                     running_mean, running_variance, momentum});
  }
  for (Index i = 0; i < ROW; ++i) {
    const float by = HAS_W ? to_float(w[offset_in_row<W_STRIDES>(i)]) : 1.0f;
    const float shift = HAS_B ? to_float(b[offset_in_row<B_STRIDES>(i)]) : 0.0f;
    const float other = ADD ? to_float(residual[offset_in_row<RESIDUAL_STRIDES>(i)]) : 0.0f;
    const Index place = y_row + offset_in_row<Y_STRIDES>(i);
    const float old = BETA != SCALE_ZERO ? to_float(y[place]) : 0.0f;
    const float entered = user_entered(x[offset_in_row<X_STRIDES>(i)], 0, user);
    const float value = normalised(entered, statistics, by, shift);
    float result[] = {finished(value, old, other, alpha, beta, {slope, offset, low, high})};
    finish_along<TY, 1, ALONE>(place, result, user);
    y[place] = from_float<TY>(result[0]);
  }
}
