// y = f(a, b, c), element by element: a thread takes VECTOR neighbours in the memory of y, ITEMS times.
//
// Dimensions stand in the order of y's memory, and those that all operands continue without a gap are one: contiguous
// tensors need no division. Inputs whose neighbours lie side by side as well move in accesses of up to 16 bytes, others
// element by element. All loads of a thread come before its first store. VECTOR divides a row, the innermost of several
// dimensions. Parameters: pointwise_vector.cpp.
#include "lib/pointwise.cuh"

constexpr bool HAS_TAIL = DIMENSIONS == 1;  // then the last vector may be a part; else every row is made of whole ones

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
    pointwise_vector(const TA* a, const TB* b, const TC* c, TY* y, float alpha, float beta, UserArguments user,
                     float n0, float n1, float n2, float n3, unsigned long long i0, unsigned long long i1,
                     long long n) {
  const PointwiseArguments arguments = {a, b, c, y, alpha, beta, user, {{n0, n1, n2, n3}, {i0, i1}}};
  const Index elements = element_count(n);
  const Index vectors = elements / VECTOR;  // whole ones
  const Index first = static_cast<Index>(blockIdx.x) * (THREADS * ITEMS) + static_cast<Index>(threadIdx.x);

  Inputs<VECTOR> inputs[ITEMS];
  Place places[ITEMS];
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const Index vector = first + i * THREADS;
    if (vector >= vectors) break;
    places[i] = place_of(vector);
    inputs[i].load_from(arguments, places[i]);
  }
#pragma unroll
  for (int i = 0; i < ITEMS; ++i) {
    const Index vector = first + i * THREADS;
    if (vector < vectors) {
      store_results(inputs[i], places[i].offsets[RESULT], arguments);
    } else if (HAS_TAIL && vector == vectors) {
      for (Index element = vectors * VECTOR; element < elements; ++element) {
        Place place = {};
        move_along<0>(element, place);
        Inputs<1> rest;
        rest.load_from(arguments, place);
        store_results(rest, place.offsets[RESULT], arguments);
      }
    }
  }
}
