// Rows of x and y of a softmax: lib/row_elements.cuh, and how results are stored.
#include "lib/row_elements.cuh"
#include "lib/store.cuh"

// Offset of row (or group of rows) number `row` in x and in y.
__device__ __forceinline__ Index x_row_offset(Index row) {
  return row_offset<X_OUTER_STRIDES>(row);
}
__device__ __forceinline__ Index y_row_offset(Index row) {
  return row_offset<Y_OUTER_STRIDES>(row);
}
