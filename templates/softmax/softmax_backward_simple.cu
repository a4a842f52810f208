// The gradient of softmax or log-softmax of a row, the plain way: one thread a row, two passes, any strides and axis.
// The trusted kernel of softmax_backward: other kernels are checked against it, so it is written to be obviously right.
#include "lib/math.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_backward_simple(const TY* y, const TDY* dy, TDX* dx, float alpha, float beta, UserArguments user,
                            long long n) {
  const long long y_stride = Y_STRIDES[AXIS], dy_stride = DY_STRIDES[AXIS], dx_stride = DX_STRIDES[AXIS];
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();
  if (row >= rows) return;
  y += offset_of_row<Y_STRIDES>(row);
  dy += offset_of_row<DY_STRIDES>(row);
  dx += offset_of_row<DX_STRIDES>(row);

  float sum = 0.0f;
  for (Index i = 0; i < ROW; ++i) {
    const float by = user_entered(dy[i * Index(dy_stride)], 0, user);
    sum += LOG ? by : to_float(y[i * Index(y_stride)]) * by;
  }
  for (Index i = 0; i < ROW; ++i) {
    const float element = to_float(y[i * Index(y_stride)]), by = user_entered(dy[i * Index(dy_stride)], 0, user);
    const float value = LOG ? by - expf(element) * sum : element * (by - sum);
    store_element(dx + i * Index(dx_stride), number_of(row, i), value, 0, {alpha, beta, user});
  }
}
