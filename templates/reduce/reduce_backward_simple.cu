// The gradient of a reduction, the plain way: one thread a row, any axes and strides.
// The trusted kernel of reduce_backward: the other one is checked against it, so it is written to be obviously right.
#include "lib/reduce_gradient.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_backward_simple(const TDY* dy, const TX* x, const TY* y, const int* indices, TDX* dx, float alpha,
                           float beta, UserArguments user, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();  // its number in the logical order of dy
  if (row >= rows) return;
  RowGradient gradient;
  gradient.read(dy + offset_of_row<DY_STRIDES>(row), y + offset_of_row<Y_STRIDES>(row),
                indices + offset_of_row<INDICES_STRIDES>(row));
  const TX* const own_x = x + offset_of_row<X_STRIDES>(row);
  const auto element = [&](Index i) { return READS_X ? to_float(own_x[offset_in_row<X_STRIDES>(i)]) : 0.0f; };
  for (Index i = 0; i < ROW; ++i) {
    const float value =
        gradient.at(element(i), static_cast<int>(i), [&](float factor) { return times_others(factor, i, element); });
    TDX* const target = dx + offset_of_row<DX_STRIDES>(row) + offset_in_row<DX_STRIDES>(i);
    store_element(target, number_of(row, i), value, 0, {alpha, beta, user});
  }
}
