// One value of all elements of a row, the plain way: one thread a row, any axes and strides.
// The trusted kernel of reduce: the other one is checked against it, so it is written to be obviously right.
#include "lib/reduction.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_simple(const TX* x, TY* y, int* indices, float alpha, float beta, UserArguments user, long long n) {
  const Index rows = DYNAMIC_N ? static_cast<Index>(n) * ROWS_PER_IMAGE : ROWS;
  const Index row = global_thread<THREADS, Index>();  // its number in the logical order of y
  if (row >= rows) return;
  x += offset_of_row<X_STRIDES>(row);

  Reduction sum = Reduction::of_nothing();
  for (Index i = 0; i < ROW; ++i) {
    const Reduction one =
        Reduction::of_element(user_entered(x[offset_in_row<X_STRIDES>(i)], 0, user), static_cast<int>(i));
    sum = Reduction::merged(sum, one);
  }
  store_element(y + offset_of_row<Y_STRIDES>(row), row, sum.value(float(ROW)), 0, {alpha, beta, user});
  if constexpr (WITH_INDICES) indices[offset_of_row<INDICES_STRIDES>(row)] = sum.position();
}
