// Rows for trusted kernels: their numbers split into coordinates one dimension after the other.
//
// From the prelude: RANK, AXIS, EXTENTS, and for each operand X_STRIDES.
#include "lib/index.cuh"

// Offset of the first element of row `row` in the operand of these STRIDES. Rows are numbered by their coordinates
// without the axis, the last dimension fastest.
template <const long long (&STRIDES)[RANK], int DIMENSION = RANK - 1>
__device__ __forceinline__ Index offset_of_row(Index row) {
  if constexpr (DIMENSION < 0) {
    return 0;
  } else if constexpr (DIMENSION == AXIS) {
    return offset_of_row<STRIDES, DIMENSION - 1>(row);
  } else {
    const Index coordinate = take_coordinate<EXTENTS[DIMENSION]>(row);
    return coordinate * Index(STRIDES[DIMENSION]) + offset_of_row<STRIDES, DIMENSION - 1>(row);
  }
}

// Elements of the dimensions after the axis.
__host__ __device__ constexpr Index inner_elements() {
  Index elements = 1;
  for (int i = AXIS + 1; i < RANK; ++i) elements *= static_cast<Index>(EXTENTS[i]);
  return elements;
}
