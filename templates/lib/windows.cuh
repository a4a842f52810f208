// Positions in x under a filter at one output pixel, which may be outside.
#include "lib/conv_operands.cuh"

// A tap of the filter: its distances from tap (0, 0, 0) in x. A mirrored filter meets x backwards.
struct Tap {
  Index deep, down, right;

  __device__ __forceinline__ Tap(int t, int r, int s)
      : deep(Index(MIRRORED ? T - 1 - t : t) * DILATION_D),
        down(Index(MIRRORED ? R - 1 - r : r) * DILATION_H),
        right(Index(MIRRORED ? S - 1 - s : s) * DILATION_W) {}

  __device__ __forceinline__ Index offset() const { return Input::at(0, 0, deep, down, right); }
};

// The input position under the filter's tap (0, 0, 0) at one output pixel.
struct Window {
  Index d, h, w;
  Index offset;  // of x at (image, first channel of the group, d, h, w): maybe outside

  int image;

  Index deep_end, down_end, right_end;  // distances that the taps of a region stay below; UNEVEN_TAPS

  // Places the window at pixel number `pixel` of a region, for the channels of a group. If it does not exist every tap
  // is outside.
  __device__ __forceinline__ void place(const Region& region, Index group, Index pixel, bool exists) {
    Index number = 0;
    if constexpr (IMAGES_INNER) number = take_coordinate(pixel, N);
    w = take_coordinate(pixel, Q) * STRIDE_W - PAD_LEFT + region.q * step_w();
    const Index top = take_coordinate(pixel, P) * STRIDE_H - PAD_TOP + region.p * step_h();
    d = take_coordinate(pixel, Z) * STRIDE_D - PAD_FRONT + region.z * step_d();
    deep_end = region.planes * DILATION_D;
    down_end = region.rows * DILATION_H;
    right_end = region.columns * DILATION_W;
    if constexpr (!IMAGES_INNER) number = pixel;
    image = static_cast<int>(number);
    offset = group * Index(X_STRIDE_G) + Input::at(number, 0, d, top, w);
    h = exists ? top : -(Index(1) << 30) - H;
  }

  // Whether a tap is inside the image.
  __device__ __forceinline__ bool holds(const Tap& tap) const {
    if (UNEVEN_TAPS && (tap.deep >= deep_end || tap.down >= down_end || tap.right >= right_end)) return false;
    return static_cast<UnsignedIndex>(d + tap.deep) < UnsignedIndex(D) &&
           static_cast<UnsignedIndex>(h + tap.down) < UnsignedIndex(H) &&
           static_cast<UnsignedIndex>(w + tap.right) < UnsignedIndex(W);
  }

 private:
  // Elements of x from one output of the forward convolution to the next: what lies before a region.
  __device__ __forceinline__ static Index step_d() { return REGIONS_OF_TAPS ? DILATION_D : STRIDE_D; }
  __device__ __forceinline__ static Index step_h() { return REGIONS_OF_TAPS ? DILATION_H : STRIDE_H; }
  __device__ __forceinline__ static Index step_w() { return REGIONS_OF_TAPS ? DILATION_W : STRIDE_W; }
};
