// Tensors whose strides are constants: where an element stands, for any dimension order, gaps and sub-regions.
//
// Dimensions are given as pairs of stride (in elements) and extent, innermost first. Extents of 1 do not count, and
// dimensions that continue each other count as one: packed memory costs no division.
#include "lib/index.cuh"

// Offset of element number `index`.
template <long long STRIDE, long long EXTENT, long long... OUTER>
__device__ __forceinline__ Index strided_offset(Index index);

template <long long STRIDE, long long EXTENT, long long NEXT_STRIDE, long long NEXT_EXTENT, long long... OUTER>
__device__ __forceinline__ Index strided_offset_across(Index index) {
  if constexpr (EXTENT == 1) {
    return strided_offset<NEXT_STRIDE, NEXT_EXTENT, OUTER...>(index);
  } else if constexpr (NEXT_EXTENT == 1) {
    return strided_offset<STRIDE, EXTENT, OUTER...>(index);
  } else if constexpr (NEXT_STRIDE == STRIDE * EXTENT) {
    return strided_offset<STRIDE, EXTENT * NEXT_EXTENT, OUTER...>(index);
  } else {
    const Index inner = take_coordinate<EXTENT>(index);
    return inner * Index(STRIDE) + strided_offset<NEXT_STRIDE, NEXT_EXTENT, OUTER...>(index);
  }
}

template <long long STRIDE, long long EXTENT, long long... OUTER>
__device__ __forceinline__ Index strided_offset(Index index) {
  if constexpr (sizeof...(OUTER) == 0) {
    return index * Index(STRIDE);
  } else {
    return strided_offset_across<STRIDE, EXTENT, OUTER...>(index);
  }
}

// Whether the elements are evenly spaced.
template <long long STRIDE, long long EXTENT, long long... OUTER>
__host__ __device__ constexpr bool is_one_run();

template <long long STRIDE, long long EXTENT, long long NEXT_STRIDE, long long NEXT_EXTENT, long long... OUTER>
__host__ __device__ constexpr bool is_one_run_across() {
  if constexpr (EXTENT == 1) return is_one_run<NEXT_STRIDE, NEXT_EXTENT, OUTER...>();
  if constexpr (NEXT_EXTENT == 1) return is_one_run<STRIDE, EXTENT, OUTER...>();
  return NEXT_STRIDE == STRIDE * EXTENT && is_one_run<STRIDE, EXTENT * NEXT_EXTENT, OUTER...>();
}

template <long long STRIDE, long long EXTENT, long long... OUTER>
__host__ __device__ constexpr bool is_one_run() {
  if constexpr (sizeof...(OUTER) == 0) {
    return true;
  } else {
    return is_one_run_across<STRIDE, EXTENT, OUTER...>();
  }
}

// A tensor of batch, channels and three spatial dimensions: strides, then extents without that of the channels. Tensors
// of fewer dimensions have extents of 1.
template <long long BATCH, long long CHANNEL, long long PLANE, long long ROW, long long COLUMN, long long IMAGES,
          long long PLANES, long long ROWS, long long COLUMNS>
struct SpatialTensor {
  // Offset of an element; positions may lie outside.
  __device__ __forceinline__ static Index at(Index image, Index channel, Index plane, Index row, Index column) {
    return image * Index(BATCH) + channel * Index(CHANNEL) + plane * Index(PLANE) + row * Index(ROW) +
           column * Index(COLUMN);
  }
  // Offset of channel 0 of pixel number `pixel`, counted through all images: image by image, or, IMAGES_INNER, those of
  // all images at one place before those at the next.
  template <bool IMAGES_INNER = false>
  __device__ __forceinline__ static Index of_pixel(Index pixel) {
    if constexpr (IMAGES_INNER) {
      return strided_offset<BATCH, IMAGES, COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES>(pixel);
    } else {
      return strided_offset<COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES, BATCH, IMAGES>(pixel);
    }
  }
  // Offset of pixel number `place` of an image, from that image's first.
  __device__ __forceinline__ static Index of_place(Index place) {
    return strided_offset<COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES>(place);
  }
  // Whether the pixels of all images are evenly spaced.
  static constexpr bool PIXELS_ARE_ONE_RUN = is_one_run<COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES, BATCH, IMAGES>();
};
