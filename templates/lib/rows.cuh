// Rows of operands in memory, whatever their strides.
//
// From the prelude: OUTER_DIMENSIONS (2 or 5, of which some may have the extent 1), OUTER_EXTENTS and, for each
// operand, X_OUTER_STRIDES: the dimensions that number the rows (or groups of rows), innermost first. X_STEP, the
// distance between two neighbours of the VECTOR that a thread takes together, and X_RUN, how many of these one access
// moves: 1 where they are not side by side.
#include "lib/store_neighbours.cuh"
#include "lib/strided.cuh"
#include "lib/vector.cuh"

// Offset of row (or group of rows) number `row` in the operand of these X_OUTER_STRIDES.
template <const long long (&STRIDES)[5]>
__device__ __forceinline__ Index row_offset(Index row) {
  if constexpr (OUTER_DIMENSIONS == 2) {
    const Index inner = take_coordinate(row, OUTER_EXTENTS[0]);
    return inner * Index(STRIDES[0]) + row * Index(STRIDES[1]);
  } else {
    return strided_offset(row, STRIDES[0], OUTER_EXTENTS[0], STRIDES[1], OUTER_EXTENTS[1], STRIDES[2], OUTER_EXTENTS[2],
                          STRIDES[3], OUTER_EXTENTS[3], STRIDES[4], OUTER_EXTENTS[4]);
  }
}

// VECTOR neighbours from the one at `first` on, STEP elements apart, in accesses of RUN: 1 unless they are side by
// side.
template <int RUN, const auto& STEP, class T>
__device__ __forceinline__ Vector<T, VECTOR> load_neighbours(const T* first) {
  Vector<T, VECTOR> neighbours;
#pragma unroll
  for (int i = 0; i < VECTOR; i += RUN) {
    const Vector<T, RUN> run = load<RUN>(first + i * Index(STEP));
#pragma unroll
    for (int j = 0; j < RUN; ++j) neighbours[i + j] = run[j];
  }
  return neighbours;
}

template <class T>
__device__ __forceinline__ void as_floats(const Vector<T, VECTOR>& neighbours, float (&values)[VECTOR]) {
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) values[i] = to_float(neighbours[i]);
}
