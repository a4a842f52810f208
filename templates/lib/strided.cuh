// Where an element of a tensor stands, for any dimension order, gaps and sub-regions.
//
// Dimensions are given as pairs of stride (in elements) and extent, innermost first. Extents of 1 do not count, and
// dimensions that continue each other count as one: packed memory costs no division.
#include "lib/index.cuh"

// Offset of element number `index`.
template <class Extent, class OuterExtent>
__device__ __forceinline__ Index strided_offset(Index index, long long stride, Extent extent, long long outer_stride,
                                                OuterExtent outer_extent) {
  if (extent == 1) return index * Index(outer_stride);
  if (outer_extent == 1 || outer_stride == stride * extent) return index * Index(stride);
  const Index inner = take_coordinate(index, extent);
  return inner * Index(stride) + index * Index(outer_stride);
}
template <class... Outer>
__device__ __forceinline__ Index strided_offset(Index index, long long stride, long long extent, long long next_stride,
                                                long long next_extent, long long outer_stride, Outer... outer) {
  Index offset = 0;
  if (extent == 1) {
    stride = next_stride;
    extent = next_extent;
  } else if (next_extent != 1 && next_stride == stride * extent) {
    extent *= next_extent;
  } else if (next_extent != 1) {
    offset = take_coordinate(index, extent) * Index(stride);
    stride = next_stride;
    extent = next_extent;
  }
  return offset + strided_offset(index, stride, extent, outer_stride, outer...);
}

// A tensor of batch, channels and three spatial dimensions: strides, then extents without that of the channels. Tensors
// of fewer dimensions have extents of 1.
template <const auto& BATCH, const auto& CHANNEL, const auto& PLANE, const auto& ROW, const auto& COLUMN,
          const auto& IMAGES, const auto& PLANES, const auto& ROWS, const auto& COLUMNS>
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
      return strided_offset(pixel, BATCH, IMAGES, COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES);
    } else {
      return strided_offset(pixel, COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES, BATCH, IMAGES);
    }
  }
  // Offset of pixel number `place` of an image, from that image's first.
  __device__ __forceinline__ static Index of_place(Index place) {
    return strided_offset(place, COLUMN, COLUMNS, ROW, ROWS, PLANE, PLANES);
  }
};
