// y[..., p, ...] = the updates whose index is p, brought together in their order, the plain way: one thread an element
// of y, which goes through all indices of its line. The trusted kernel of scatter: others are checked against it.
// Parameters: scatter_simple.cpp.
#include "lib/scatter.cuh"
#include "lib/simple_rows.cuh"
#include "lib/store.cuh"

__device__ __forceinline__ float together(float a, float b) {
  if constexpr (MODE == SCATTER_ADD) return a + b;
  if constexpr (MODE == SCATTER_MUL) return a * b;
  if constexpr (MODE == SCATTER_MIN) return -max_nan(-a, -b);
  return max_nan(a, b);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    scatter_simple(const TUPDATES* updates, const i32* indices, TY* y, float alpha, float beta, UserArguments user,
                   long long n) {
  Index line = global_thread<THREADS, Index>();
  const Index position = take_coordinate(line, DIVISOR);
  if (line >= scatter_lines(n)) return;
  const TUPDATES* const own_updates = updates + offset_of_row<UPDATES_STRIDES>(line);
  const i32* const own_indices = indices + offset_of_row<INDICES_STRIDES>(line);
  float value = of_no_update();
  for (Index i = 0; i < Index(COUNT); ++i) {
    if (position_in_y(own_indices[i * Index(INDICES_ALONG)]) != position) continue;
    value = together(value, to_float(own_updates[i * Index(UPDATES_ALONG)]));
  }
  TY* const target = y + offset_of_row<Y_STRIDES>(line) + position * Index(Y_ALONG);
  store_element(target, number_of(line, position), value, 0, {alpha, beta, user});
}
