// y = x where indices say: a thread takes VECTOR neighbours in the memory of y, ITEMS times.
//
// Dimensions stand in the order of y's memory, and those that all operands continue without a gap are one. Neighbours
// that one index is for (whole rows of a table) move in accesses of up to 16 bytes, others element by element. All
// loads of a thread come before its first store. VECTOR divides the innermost dimension, or an image where that is all.
// Parameters: gather_vector.cpp.
#include "lib/gather.cuh"

static_assert(VECTOR == 1 || STEP_KINDS[RESULT] == 1, "a vector holds neighbours");

__device__ __forceinline__ Place place_of(Index vector) {
  Place place = {};
  if constexpr (DIMENSIONS == 1) {
    move_along<0>(vector * VECTOR, place);
  } else {
    move_along<0>(take_coordinate(vector, EXTENTS[0] / VECTOR) * VECTOR, place);
    move_to<1>(vector, place);
  }
  return place;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    gather_vector(const TA* x, const TB* indices, const TC*, TY* y, float alpha, float beta, UserArguments user, float,
                  float, float, float, unsigned long long, unsigned long long, long long n) {
  const PointwiseArguments arguments = {x, indices, nullptr, y, alpha, beta, user, {}};
  const Index vectors = element_count(n) / VECTOR;
  const Index first = static_cast<Index>(blockIdx.x) * (THREADS * ITEMS) + static_cast<Index>(threadIdx.x);

  Place places[ITEMS];
  Vector<TB, VECTOR> named[ITEMS];
  Inputs<VECTOR> inputs[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const Index vector = first + i * THREADS;
    if (vector >= vectors) break;
    places[i] = place_of(vector);
    named[i] = load_strided<STEP_KINDS[1], VECTOR>(indices, places[i].offsets[1], stride_of(1, 0));
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS >= vectors) break;
    inputs[i] = gathered<VECTOR>(named[i], places[i], arguments);
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    if (first + i * THREADS >= vectors) break;
    store_results(inputs[i], places[i].offsets[RESULT], arguments);
  }
}
