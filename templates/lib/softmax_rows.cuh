// Rows of x and y in memory, whatever their strides.
//
// From the prelude: OUTER_EXTENTS, X_OUTER_STRIDES and Y_OUTER_STRIDES, the dimensions that number the rows (or groups
// of rows), innermost first. X_STEP and Y_STEP, the distance between two neighbours of the VECTOR that a thread takes
// together, and X_RUN and Y_RUN, how many of these one access moves: 1 where they are not side by side.
#include "lib/store.cuh"
#include "lib/strided.cuh"
#include "lib/vector.cuh"

static_assert(X_RUN == 1 || X_STEP == 1, "an access moves what is side by side in x");
static_assert(Y_RUN == 1 || Y_STEP == 1, "an access moves what is side by side in y");

using Elements = Vector<TX, VECTOR>;

// Offset of row (or group of rows) number `row` in x and in y.
__device__ __forceinline__ Index x_row_offset(Index row) {
  return strided_offset<X_OUTER_STRIDES[0], OUTER_EXTENTS[0], X_OUTER_STRIDES[1], OUTER_EXTENTS[1], X_OUTER_STRIDES[2],
                        OUTER_EXTENTS[2], X_OUTER_STRIDES[3], OUTER_EXTENTS[3]>(row);
}
__device__ __forceinline__ Index y_row_offset(Index row) {
  return strided_offset<Y_OUTER_STRIDES[0], OUTER_EXTENTS[0], Y_OUTER_STRIDES[1], OUTER_EXTENTS[1], Y_OUTER_STRIDES[2],
                        OUTER_EXTENTS[2], Y_OUTER_STRIDES[3], OUTER_EXTENTS[3]>(row);
}

// VECTOR neighbours from the one at `first` on.
__device__ __forceinline__ Elements load_elements(const TX* first) {
  Elements elements;
#pragma unroll
  for (int i = 0; i < VECTOR; i += X_RUN) {
    const Vector<TX, X_RUN> run = load<X_RUN>(first + i * Index(X_STEP));
#pragma unroll
    for (int j = 0; j < X_RUN; ++j) elements[i + j] = run[j];
  }
  return elements;
}

__device__ __forceinline__ void as_floats(const Elements& elements, float (&values)[VECTOR]) {
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) values[i] = to_float(elements[i]);
}

// Stores VECTOR neighbours from element `offset` of y on, blended with what is there and finished by the user's
// epilogue.
__device__ __forceinline__ void store_elements(TY* y, Index offset, const float (&values)[VECTOR],
                                               const OutputArguments& output) {
#pragma unroll
  for (int i = 0; i < VECTOR; i += Y_RUN) {
    float run[Y_RUN];
#pragma unroll
    for (int j = 0; j < Y_RUN; ++j) run[j] = values[i + j];
    store_run<false>(y, offset + i * Index(Y_STEP), run, 0, output);
  }
}
