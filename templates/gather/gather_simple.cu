// y = x where indices say, element by element, the plain way: one thread an element, any strides, no vectors.
// The trusted kernel of gather: others are checked against it, so it is written to be obviously right. Here the
// dimensions are those of the request, last first.
#include "lib/gather.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_simple(const TA* x, const TB* indices, const TC*, TY* y, float alpha, float beta, UserArguments user, float,
                  float, float, float, unsigned long long, unsigned long long, long long n) {
  const Index element = global_thread<THREADS, Index>();  // in logical order
  if (element >= element_count(n)) return;
  Place place = {};
  move_to<0>(element, place);
  const i32 position = position_of(indices[place.offsets[1]]);
  const bool inside = position >= 0;
  const TA* const source = x + place.offsets[0] + position * Index(AXIS_STRIDE);

  TY* const target = y + place.offsets[RESULT];
  if constexpr (IS_COPY) {
    store_copy<1>(target, inside ? load<1>(source) : zeros<TA, 1>());
    return;
  }
  const float value = inside ? user_entered(*source, 0, user) : 0.0f;
  store_element(target, element, value, 0, {alpha, beta, user});
}
