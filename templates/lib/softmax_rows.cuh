// Rows of x and y of a softmax: lib/rows.cuh, what the user's prologue makes of x, and how results are stored.
#include "lib/rows.cuh"
#include "lib/store.cuh"

static_assert(Y_RUN == 1 || Y_STEP == 1, "an access moves what is side by side in y");

using KeptX = typename UserKept<TX>::type;
using Elements = Vector<KeptX, VECTOR>;

// Offset of row (or group of rows) number `row` in x and in y.
__device__ __forceinline__ Index x_row_offset(Index row) {
  return row_offset<X_OUTER_STRIDES>(row);
}
__device__ __forceinline__ Index y_row_offset(Index row) {
  return row_offset<Y_OUTER_STRIDES>(row);
}

// VECTOR neighbours from the one at `first` on, after the user's prologue.
__device__ __forceinline__ Elements load_elements(const TX* first, const UserArguments& user) {
  return user_kept<false>(load_neighbours<X_RUN, X_STEP>(first), 0, user);
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
