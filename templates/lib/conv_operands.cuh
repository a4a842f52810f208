// The operands of a convolution in memory, whatever their strides.
//
// From the prelude: the problem, with TAPS (those of a channel), FILTER_ELEMENTS (elements of one output channel's
// filter) and PIXELS_PER_IMAGE (of y); and the strides of x, w, y and residual. X_STRIDE_G and W_STRIDE_G lead from the
// channels and filters of one group to those of the next: where x and w are the operands of a gradient, groups are not
// just further channels; FILTERS_ARE_ONE_RUN where those of w are. Where a block works for one region of a local
// convolution, REGIONS_OF_PIXELS, those of y are divided, and W_STRIDE_REGION leads to the filters of the next region;
// or, REGIONS_OF_TAPS, the taps are, and Y_STRIDE_REGION leads to the next region's y. Z, P, Q or T, R, S are then
// those of the largest region. CHANNELS_INNER numbers the elements of a filter (t, r, s, c), which suits an x whose
// channels stand side by side; otherwise they are numbered (c, t, r, s). IMAGES_INNER numbers the pixels of y (z, p, q,
// image). IMAGES_ARE_CHANNELS: what x has here are the channels of a tensor whose images are its channels, for the
// gradient by the filter. W_FIRST, Y_FIRST and RESIDUAL_FIRST are the offsets of the first elements of w, y and the
// residual. With NO_TAPS there is nothing to multiply. Elements that ARE_ONE_RUN are evenly spaced, their STRIDE apart:
// those of a filter in their order, the taps of a channel in a filter, the places of an image of y and the residual.
#include "lib/epilogue.cuh"
#include "lib/images.cuh"
#include "lib/regions.cuh"
#include "lib/strided.cuh"

using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using Output = SpatialTensor<Y_STRIDE_N, Y_STRIDE_K, Y_STRIDE_Z, Y_STRIDE_P, Y_STRIDE_Q, N, Z, P, Q>;
using Residual = SpatialTensor<RESIDUAL_STRIDE_N, RESIDUAL_STRIDE_K, RESIDUAL_STRIDE_Z, RESIDUAL_STRIDE_P,
                               RESIDUAL_STRIDE_Q, N, Z, P, Q>;
using UnsignedIndex = UnsignedOf<Index>::type;

constexpr bool MULTIPLIES = ALPHA != SCALE_ZERO && !NO_TAPS;

static_assert(!IMAGES_INNER || !DYNAMIC_N, "images that pixels are counted through are a constant");

// Whether some regions have fewer outputs than the largest.
constexpr bool UNEVEN_PIXELS = REGIONS_OF_PIXELS && UNEVEN_REGIONS;
constexpr bool UNEVEN_TAPS = REGIONS_OF_TAPS && UNEVEN_REGIONS;
static_assert(!REGIONS_OF_PIXELS || !IMAGES_INNER, "the pixels of a region are counted image by image");

// Offset of the filters, or taps, of a region in w.
__device__ __forceinline__ Index filters_of(const Region& region) {
  if constexpr (REGIONS_OF_PIXELS) return region.number * Index(W_STRIDE_REGION);
  if constexpr (REGIONS_OF_TAPS) {
    return region.z * Index(W_STRIDE_T) + region.p * Index(W_STRIDE_R) + region.q * Index(W_STRIDE_S);
  }
  return 0;
}

// Whether a region has the pixel of that number, counted as those of the largest region are.
__device__ __forceinline__ bool has_pixel(const Region& region, Index pixel) {
  if constexpr (UNEVEN_PIXELS) {
    const Index q = take_coordinate(pixel, Q);
    const Index p = take_coordinate(pixel, P);
    return q < region.columns && p < region.rows && take_coordinate(pixel, Z) < region.planes;
  }
  return true;
}

// The first channel that a prologue meets at pixel number `pixel` of y, for the channels of a group; at channel c of
// these it is channel_at(first, c).
__device__ __forceinline__ int first_channel(int group, Index pixel) {
  if constexpr (IMAGES_ARE_CHANNELS) {
    const Index inner = take_coordinate(pixel, IMAGES_INNER ? N : PIXELS_PER_IMAGE);
    return group * static_cast<int>(N) + static_cast<int>(IMAGES_INNER ? inner : pixel);
  }
  return group * C_PER_GROUP;
}
__device__ __forceinline__ int channel_at(int first, int c) {
  return IMAGES_ARE_CHANNELS ? first : first + c;
}

// Offset of the first element of the filter of channel `k` of y.
__device__ __forceinline__ Index first_filter_element(Index k) {
  if constexpr (FILTERS_ARE_ONE_RUN) {
    return k * Index(W_STRIDE_K) + Index(W_FIRST);
  } else {
    const Index in_group = take_coordinate(k, K_PER_GROUP);
    return k * Index(W_STRIDE_G) + in_group * Index(W_STRIDE_K) + Index(W_FIRST);
  }
}

// Offset of tap number `tap` of a filter from its first.
__device__ __forceinline__ Index tap_offset(Index tap) {
  if constexpr (TAPS_OF_FILTER_ARE_ONE_RUN) {
    return tap * Index(TAP_OF_FILTER_STRIDE);
  } else {
    return strided_offset(tap, W_STRIDE_S, S, W_STRIDE_R, R, W_STRIDE_T, T);
  }
}

// Offset of element number `element` of a filter from its first.
__device__ __forceinline__ Index filter_offset(Index element) {
  if constexpr (ELEMENTS_OF_FILTER_ARE_ONE_RUN) {
    return element * Index(ELEMENT_OF_FILTER_STRIDE);
  } else if constexpr (CHANNELS_INNER) {
    const Index c = take_coordinate(element, C_PER_GROUP);
    return c * Index(W_STRIDE_C) + tap_offset(element);
  } else {
    const Index tap = take_coordinate(element, TAPS);
    return tap_offset(tap) + element * Index(W_STRIDE_C);
  }
}

// Offset of channel 0 of pixel number `pixel` of y, or of the residual.
template <class Tensor, bool PLACES_ARE_ONE_RUN, const auto& IMAGE_STRIDE, const auto& PLACE_STRIDE>
__device__ __forceinline__ Index output_offset(Index pixel) {
  if constexpr (!PLACES_ARE_ONE_RUN) {
    return Tensor::template of_pixel<IMAGES_INNER>(pixel);
  } else if constexpr (IMAGES_INNER) {
    return strided_offset(pixel, IMAGE_STRIDE, N, PLACE_STRIDE, PIXELS_PER_IMAGE);
  } else {
    return strided_offset(pixel, PLACE_STRIDE, PIXELS_PER_IMAGE, IMAGE_STRIDE, N);
  }
}

// The first channel of an output pixel, in y and in the residual.
struct OutputPixel {
  Index y, residual;

  __device__ __forceinline__ explicit OutputPixel(Index pixel)
      : y(output_offset<Output, Y_PLACES_ARE_ONE_RUN, Y_STRIDE_N, Y_PLACE_STRIDE>(pixel) + Index(Y_FIRST)),
        residual(output_offset<Residual, RESIDUAL_PLACES_ARE_ONE_RUN, RESIDUAL_STRIDE_N, RESIDUAL_PLACE_STRIDE>(pixel) +
                 Index(RESIDUAL_FIRST)) {}
  __device__ __forceinline__ OutputPixel(Index image, Index z, Index p, Index q)
      : y(Output::at(image, 0, z, p, q) + Index(Y_FIRST)),
        residual(Residual::at(image, 0, z, p, q) + Index(RESIDUAL_FIRST)) {}

  // The same pixel counted from the first of a region.
  __device__ __forceinline__ void move_into(const Region& region) {
    if constexpr (REGIONS_OF_PIXELS) {
      y += Output::at(0, 0, region.z, region.p, region.q);
      residual += Residual::at(0, 0, region.z, region.p, region.q);
    }
    if constexpr (REGIONS_OF_TAPS) y += region.number * Index(Y_STRIDE_REGION);
  }
};

// Finishes COUNT sums that lie side by side in y from channel k of `pixel` on, along the channels if ALONG_K, else
// along the pixels, and stores them in one access.
template <bool ALONG_K, int COUNT>
__device__ __forceinline__ void finish_outputs(TY* y, const OutputPixel& pixel, Index k, const float (&sums)[COUNT],
                                               const EpilogueArguments& arguments) {
  finish_run<ALONG_K>(y, pixel.y + k * Index(Y_STRIDE_K), pixel.residual + k * Index(RESIDUAL_STRIDE_K), sums,
                      static_cast<int>(k), arguments);
}
