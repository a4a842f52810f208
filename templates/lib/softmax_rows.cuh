// Rows of x and y of a softmax: lib/rows.cuh, what the user's prologue makes of x, and how results are stored.
#include "lib/rows.cuh"
#include "lib/store.cuh"

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
