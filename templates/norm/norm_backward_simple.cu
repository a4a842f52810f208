// The gradients of a normalisation, the plain way: one thread a row for dx, one thread an element of w for dw and db,
// any axes and strides. The trusted kernels of norm_backward: the others are checked against them, so they are written
// to be obviously right. Each is compiled with the rows that it goes along (AXES).
#include "lib/norm_gradient.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

struct Operands {
  const TDY* dy;
  const TX* x;
  const TW* w;
  const TB* b;
  const float *mean, *inv_deviation;
  const TY* y;
  const TRESIDUAL* residual;
  ActivationNumbers numbers;
  UserArguments user;

  __device__ __forceinline__ void move_to(Index row) {
    dy += offset_of_row<DY_STRIDES>(row);
    x += offset_of_row<X_STRIDES>(row);
    inv_deviation += offset_of_row<INV_DEVIATION_STRIDES>(row);
    if constexpr (HAS_W) w += offset_of_row<W_STRIDES>(row);
    if constexpr (HAS_B) b += offset_of_row<B_STRIDES>(row);
    if constexpr (HAS_RESIDUAL) residual += offset_of_row<RESIDUAL_STRIDES>(row);
    if constexpr (HAS_MEAN) mean += offset_of_row<MEAN_STRIDES>(row);
    if constexpr (HAS_Y) y += offset_of_row<Y_STRIDES>(row);
  }
  __device__ __forceinline__ float dy_at(Index i) const {
    const float given = user_entered(dy[offset_in_row<DY_STRIDES>(i)], 0, user);
    if constexpr (ACTIVATES) {
      const float by = HAS_W ? to_float(w[offset_in_row<W_STRIDES>(i)]) : 1.0f;
      const float shift = HAS_B ? to_float(b[offset_in_row<B_STRIDES>(i)]) : 0.0f;
      const float other = HAS_RESIDUAL ? to_float(residual[offset_in_row<RESIDUAL_STRIDES>(i)]) : 0.0f;
      return passed(given, xhat_at(i), by, shift, other, numbers);
    }
    return passed(given, HAS_Y ? to_float(y[offset_in_row<Y_STRIDES>(i)]) : 0.0f);
  }
  __device__ __forceinline__ float g_at(Index i) const {
    return HAS_W ? dy_at(i) * to_float(w[offset_in_row<W_STRIDES>(i)]) : dy_at(i);
  }
  __device__ __forceinline__ float xhat_at(Index i) const {
    return normalised(to_float(x[offset_in_row<X_STRIDES>(i)]), HAS_MEAN ? mean[offset_in_row<MEAN_STRIDES>(i)] : 0.0f,
                      inv_deviation[offset_in_row<INV_DEVIATION_STRIDES>(i)]);
  }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_simple(const TDY* dy, const TX* x, const TW* w, const TB* b, const float* mean,
                         const float* inv_deviation, const TY* y, const TRESIDUAL* residual, TDX* dx,
                         TDRESIDUAL* dresidual, float alpha, float beta, UserArguments user, float dresidual_alpha,
                         float dresidual_beta, float slope, float offset, float low, float high, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();
  if (row >= rows) return;
  Operands operands = {dy, x, w, b, mean, inv_deviation, y, residual, {slope, offset, low, high}, user};
  operands.move_to(row);
  const Index dx_row = offset_of_row<DX_STRIDES>(row);
  if constexpr (HAS_DRESIDUAL) dresidual += offset_of_row<DRESIDUAL_STRIDES>(row);

  GradientSums sums = GradientSums::of_nothing();
  for (Index i = 0; i < ROW; ++i) sums.add(operands.g_at(i), operands.xhat_at(i));
  const GradientSums means = sums.means(1.0f, float(ROW));
  for (Index i = 0; i < ROW; ++i) {
    const float inverse = operands.inv_deviation[offset_in_row<INV_DEVIATION_STRIDES>(i)];
    const float value = gradient(operands.g_at(i), operands.xhat_at(i), inverse, means);
    const float by = operands.dy_at(i);
    if constexpr (HAS_DRESIDUAL) {
      ResidualScales{dresidual_alpha, dresidual_beta}.store(dresidual + offset_in_row<DRESIDUAL_STRIDES>(i), by);
    }
    store_result(dx, dx_row + offset_in_row<DX_STRIDES>(i), value, 0, {alpha, beta, user});
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    norm_backward_simple_parameters(const TDY* dy, const TX* x, const TW* w, const TB* b, const float* mean,
                                    const float* inv_deviation, const TY* y, const TRESIDUAL* residual, TDW* dw,
                                    TDB* db, UserArguments user, float parameter_alpha, float parameter_beta,
                                    float slope, float offset, float low, float high) {
  const Index row = global_thread<THREADS, Index>();
  if (row >= ROWS) return;
  Operands operands = {dy, x, w, b, mean, inv_deviation, y, residual, {slope, offset, low, high}, user};
  operands.move_to(row);
  GradientSums sums = GradientSums::of_nothing();
  for (Index i = 0; i < ROW; ++i) sums.add(operands.dy_at(i), operands.xhat_at(i));
  const ParameterScales scales = {parameter_alpha, parameter_beta};
  if constexpr (HAS_DW) scales.store(dw + offset_of_row<DW_STRIDES>(row), sums.words[1]);
  if constexpr (HAS_DB) scales.store(db + offset_of_row<DB_STRIDES>(row), sums.words[0]);
}
