// Convolution of an x whose pixels have filters of their own, region by region: the gradient of a local convolution by
// its input, where x is dy. The pixels of y are cut into segments: boxes of pixels all of whose taps number j meet the
// same region of x, or none. A block works for the pixels of one segment, in which a tap's filters are one matrix.
//
// From the prelude, besides the problem: along each axis SEGMENTS_Z, the number of segments, and SEGMENT_Z, the first
// pixel of each and the end; P and Q likewise. Regions are those of D x H x W (lib/regions.cuh), and W_STRIDE_REGION
// leads to the filters of the next.
#include "lib/im2col_pixels.cuh"

static_assert(D == OUTPUTS_Z && H == OUTPUTS_P && W == OUTPUTS_Q, "pixels of x are what is divided");
static_assert(Y_ALONG_K || Y_RUN == 1, "rows of a segment begin and end anywhere");

// BLOCK_M pixels of segment number blockIdx.z, counted image by image.
struct SegmentTile : BlockTile {
  Index z = 0, p = 0, q = 0;                // its first pixel
  Index planes = 1, rows = 1, columns = 1;  // its extents

  __device__ __forceinline__ SegmentTile(const GridBlock& block, long long n) : BlockTile(block, n) {
    int plane = static_cast<int>(blockIdx.z);
    const int column = take_coordinate(plane, SEGMENTS_Q);
    const int row = take_coordinate(plane, SEGMENTS_P);
    pixels = 0;
    if (plane >= SEGMENTS_Z) return;  // another class has more
    z = SEGMENT_Z[plane], p = SEGMENT_P[row], q = SEGMENT_Q[column];
    planes = SEGMENT_Z[plane + 1] - z;
    rows = SEGMENT_P[row + 1] - p;
    columns = SEGMENT_Q[column + 1] - q;
    pixels = images_of(n) * planes * rows * columns;
  }

  __device__ __forceinline__ bool holds(Index pixel) const { return pixel < pixels; }
  __device__ __forceinline__ Index number_of(Index pixel) const {
    const Index right = take(pixel, columns);
    const Index down = take(pixel, rows);
    const Index deep = take(pixel, planes);
    return ((pixel * Z + z + deep) * P + p + down) * Q + q + right;
  }

  __device__ __forceinline__ bool has_tap(int tap) const {
    const Place place = place_of(tap);
    return static_cast<UnsignedIndex>(place.d) < UnsignedIndex(D) &&
           static_cast<UnsignedIndex>(place.h) < UnsignedIndex(H) &&
           static_cast<UnsignedIndex>(place.w) < UnsignedIndex(W);
  }
  // Means nothing for taps that there are not.
  __device__ __forceinline__ Index filters_of_tap(int tap) const {
    const Place place = place_of(tap);
    return region_of(place.d, place.h, place.w) * Index(W_STRIDE_REGION);
  }

 private:
  // Where in x a tap of the first pixel is.
  struct Place {
    Index d, h, w;
  };
  __device__ __forceinline__ Place place_of(int tap) const {
    const int s = take_coordinate(tap, S);
    const int r = take_coordinate(tap, R);
    const Tap at(tap, r, s);
    return {z * STRIDE_D - PAD_FRONT + at.deep, p * STRIDE_H - PAD_TOP + at.down, q * STRIDE_W - PAD_LEFT + at.right};
  }

  // take_coordinate() for an extent that is no constant.
  __device__ __forceinline__ static Index take(Index& index, Index extent) {
    const auto value = static_cast<UnsignedIndex>(index), divisor = static_cast<UnsignedIndex>(extent);
    index = static_cast<Index>(value / divisor);
    return static_cast<Index>(value % divisor);
  }
};
