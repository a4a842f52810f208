// Threads that take a place of a tensor each, for VECTOR neighbouring channels.
//
// From the prelude: N, DYNAMIC_N, C, VECTOR, which divides C, and CHANNELS_INNER: whether neighbouring threads take
// neighbouring channels, not neighbouring pixels.
#include "lib/images.cuh"
#include "lib/index.cuh"

static_assert(VECTOR == 1 || CHANNELS_INNER, "a vector holds neighbouring channels of a pixel");

// A place in a tensor of C channels and of the given extents; its first channel.
struct Place {
  Index image, c, plane, row, column;
};

__device__ __forceinline__ Place place_of(Index index, long long planes, long long rows, long long columns) {
  Place place;
  if constexpr (CHANNELS_INNER) place.c = take_coordinate(index, C / VECTOR) * VECTOR;
  place.column = take_coordinate(index, columns);
  place.row = take_coordinate(index, rows);
  place.plane = take_coordinate(index, planes);
  if constexpr (!CHANNELS_INNER) place.c = take_coordinate(index, C);
  place.image = index;
  return place;
}

// Offset of the first channel of a place in a packed tensor that holds its elements in the order of threads.
__device__ __forceinline__ Index packed_at(const Place& place, Index planes, Index rows, Index columns) {
  const Index pixel = (place.plane * rows + place.row) * columns + place.column;
  const Index pixels = planes * rows * columns;
  if constexpr (CHANNELS_INNER) return (place.image * pixels + pixel) * C + place.c;
  return (place.image * C + place.c) * pixels + pixel;
}
