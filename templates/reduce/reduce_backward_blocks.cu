// The gradient of a reduction, rows along any axes and in any layout (lib/row_blocks.cuh). Parameters:
// reduce_backward_blocks.cpp.
#include "lib/reduce_gradient.cuh"
#include "lib/row_blocks.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    reduce_backward_blocks(const TDY* dy, const TX* x, const TY* y, const int* indices, TDX* dx, float alpha,
                           float beta, UserArguments user, long long n) {
  const ThreadRows rows(n);
  if (!rows.active) return;
  dy += rows.offset<DY_OUTER_STRIDES, DY_STEP>();
  x += rows.offset<X_OUTER_STRIDES, X_STEP>();
  y += rows.offset<Y_OUTER_STRIDES, Y_STEP>();
  indices += rows.offset<INDICES_OUTER_STRIDES, INDICES_STEP>();
  RowGradient gradients[SIDE];
#pragma unroll
  for (int j = 0; j < SIDE; ++j) {
    gradients[j].read(dy + j * Index(DY_STEP), y + j * Index(Y_STEP), indices + j * Index(INDICES_STEP));
  }
  const Index first = rows.offset<DX_OUTER_STRIDES, DX_STEP>();
  for_each_taken(rows.lane, [&](Index i) {
    Vector<TX, VECTOR> elements = zeros<TX, VECTOR>();
    if constexpr (READS_X) elements = load_neighbours<X_RUN, X_STEP>(x + element_offset<X_ROW_STRIDES>(i));
    const int position = static_cast<int>(element_offset<POSITION_ROW_STRIDES>(i));
    float results[VECTOR];
#pragma unroll
    for (int j = 0; j < VECTOR; ++j) {
      const int at = ACROSS ? position : position + j * static_cast<int>(POSITION_STEP);
      const TX* const row = x + (ACROSS ? j * Index(X_STEP) : Index(0));
      results[j] = gradients[ACROSS ? j : 0].at(to_float(elements[j]), at, [&](float factor) {
        return times_others(factor, ACROSS ? i : i + j,
                            [&](Index other) { return to_float(row[element_offset<X_ROW_STRIDES>(other)]); });
      });
    }
    store_along<DX_RUN, DX_STEP>(dx, first + element_offset<DX_ROW_STRIDES>(i), results, {alpha, beta, user});
  });
}
