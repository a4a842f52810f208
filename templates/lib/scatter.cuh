// Elements that are brought together where indices say along one dimension.
// generator/operations/scatter.h has the formula.
//
// From the prelude: TUPDATES, TY; MODE; ROWS, ROWS_PER_IMAGE, DYNAMIC_N: the lines; UPDATES_ALONG, INDICES_ALONG and
// Y_ALONG, the strides along that dimension; POSITIONS and COUNT, the extents of y and of updates along it; DIVISOR,
// POSITIONS or 1 where that is 0.
//
// A line is what y, or updates, have along that dimension at one place of the others.
#include "lib/math.cuh"
#include "lib/types.cuh"

enum : int { SCATTER_ADD, SCATTER_MUL, SCATTER_MIN, SCATTER_MAX };  // as ScatterMode

// Result of no update.
__device__ __forceinline__ float of_no_update() {
  return MODE == SCATTER_MUL ? 1.0f : MODE == SCATTER_MIN ? infinity() : MODE == SCATTER_MAX ? -infinity() : 0.0f;
}

// Where an index stands along y; negative where that is outside.
__device__ __forceinline__ i32 position_in_y(i32 index) {
  const i32 position = index < 0 ? index + static_cast<i32>(POSITIONS) : index;
  return position < static_cast<i32>(POSITIONS) ? position : -1;
}

// All lines of this call.
__device__ __forceinline__ Index scatter_lines(long long n) {
  return DYNAMIC_N ? static_cast<Index>(n) * Index(ROWS_PER_IMAGE) : Index(ROWS);
}
