// Rows for trusted kernels: their numbers split into coordinates one dimension after the other.
//
// From the prelude: RANK, AXES (1 for the dimensions along a row), EXTENTS, and for each operand X_STRIDES (0 where it
// repeats).
#include "lib/index.cuh"

// Offset of the first element of row `row` in the operand of these STRIDES. Rows are numbered by their coordinates
// without the axis, the last dimension fastest.
template <const long long (&STRIDES)[RANK], int DIMENSION = RANK - 1>
__device__ __forceinline__ Index offset_of_row(Index row) {
  if constexpr (DIMENSION < 0) {
    return 0;
  } else if constexpr (AXES[DIMENSION] != 0) {
    return offset_of_row<STRIDES, DIMENSION - 1>(row);
  } else {
    const Index coordinate = take_coordinate(row, EXTENTS[DIMENSION]);
    return coordinate * Index(STRIDES[DIMENSION]) + offset_of_row<STRIDES, DIMENSION - 1>(row);
  }
}

// Offset of element `element` of a row from its first: numbered by the coordinates along the axes, the last fastest, of
// OF_ROW that there are.
template <const long long (&STRIDES)[RANK], const auto& OF_ROW = EXTENTS, int DIMENSION = RANK - 1>
__device__ __forceinline__ Index offset_in_row(Index element) {
  if constexpr (DIMENSION < 0) {
    return 0;
  } else if constexpr (AXES[DIMENSION] == 0) {
    return offset_in_row<STRIDES, OF_ROW, DIMENSION - 1>(element);
  } else {
    const Index coordinate = take_coordinate(element, OF_ROW[DIMENSION]);
    return coordinate * Index(STRIDES[DIMENSION]) + offset_in_row<STRIDES, OF_ROW, DIMENSION - 1>(element);
  }
}

// Number, in logical order, of element `element` of row `row`.
template <int DIMENSION = RANK - 1>
__device__ __forceinline__ Index number_of(Index row, Index element) {
  if constexpr (DIMENSION < 0) {
    return 0;
  } else {
    const auto extent = static_cast<Index>(EXTENTS[DIMENSION]);
    const Index coordinate = AXES[DIMENSION] != 0 ? take_coordinate(element, extent) : take_coordinate(row, extent);
    return number_of<DIMENSION - 1>(row, element) * extent + coordinate;
  }
}
