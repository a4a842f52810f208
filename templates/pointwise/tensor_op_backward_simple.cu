// The gradient of a tensor_op by one input, the plain way: one thread an element of dx, which adds up those of its row.
// The trusted kernel of tensor_op_backward: others are checked against it, so it is written to be obviously right.
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"
#include "lib/tensor_op_gradient.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    tensor_op_backward_simple(const TDY* dy, const TA* a, const TB* b, TDX* dx, float alpha, float beta,
                              UserArguments user, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();  // its number in the logical order of dx
  if (row >= rows) return;
  dy += offset_of_row<DY_STRIDES>(row);
  a += offset_of_row<A_STRIDES>(row);
  b += offset_of_row<B_STRIDES>(row);
  float sum = 0.0f;
  for (Index i = 0; i < ROW; ++i) {
    const float of_a = gradient_reads_a<GRADIENT>() ? to_float(a[offset_in_row<A_STRIDES>(i)]) : 0.0f;
    const float of_b = gradient_reads_b<GRADIENT>() ? to_float(b[offset_in_row<B_STRIDES>(i)]) : 0.0f;
    sum += tensor_op_gradient<GRADIENT>(to_float(dy[offset_in_row<DY_STRIDES>(i)]), of_a, of_b);
  }
  store_element(dx + offset_of_row<DX_STRIDES>(row), row, sum, 0, {alpha, beta, user});
}
