// Softmax or log-softmax of a row, the plain way: one thread a row, three passes, any strides and axis.
// The trusted kernel of softmax: other kernels are checked against it, so it is written to be obviously right.
#include "lib/math.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    softmax_simple(const TX* x, TY* y, float alpha, float beta, UserArguments user, long long n) {
  const long long x_stride = X_STRIDES[AXIS], y_stride = Y_STRIDES[AXIS];
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();
  if (row >= rows) return;
  x += offset_of_row<X_STRIDES>(row);
  y += offset_of_row<Y_STRIDES>(row);

  float maximum = -infinity();
  for (Index i = 0; i < ROW; ++i) maximum = max_nan(maximum, user_entered(x[i * Index(x_stride)], 0, user));
  float sum = 0.0f;
  for (Index i = 0; i < ROW; ++i) sum += expf(user_entered(x[i * Index(x_stride)], 0, user) - maximum);
  const float log_sum = logf(sum);
  for (Index i = 0; i < ROW; ++i) {
    const float element = user_entered(x[i * Index(x_stride)], 0, user);
    const float value = LOG ? element - maximum - log_sum : expf(element - maximum) / sum;
    store_element(y + i * Index(y_stride), number_of(row, i), value, 0, {alpha, beta, user});
  }
}
