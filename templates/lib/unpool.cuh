// Where the gradient of max unpooling finds what an index names.
//
// From the prelude: the axes, and the strides of dy.
#include "lib/index.cuh"
#include "lib/strided.cuh"

using Incoming = SpatialTensor<DY_STRIDE_N, DY_STRIDE_C, DY_STRIDE_D, DY_STRIDE_H, DY_STRIDE_W, N, D, H, W>;

// Whether the window of output `output` has a tap at `position`, along one axis.
__device__ __forceinline__ bool window_holds(Index output, Index position, Index window, Index pad, Index stride,
                                             Index dilation) {
  const Index distance = position + pad - output * stride;
  return distance >= 0 && distance <= (window - 1) * dilation && distance % dilation == 0;
}

// The offset, from the first element of a channel of dy, of what `named` names for the output (z, p, q); -1 where that
// is no position of the output's window.
__device__ __forceinline__ Index named_offset(int named, Index z, Index p, Index q) {
  const long long positions = static_cast<long long>(D) * H * W;  // of a channel of dy; indices count them
  if (named < 0 || named >= positions) return -1;
  Index d = named;
  const Index w = take_coordinate(d, W);
  const Index h = take_coordinate(d, H);
  const bool held = window_holds(z, d, T, PAD_FRONT, STRIDE_D, DILATION_D) &&
                    window_holds(p, h, R, PAD_TOP, STRIDE_H, DILATION_H) &&
                    window_holds(q, w, S, PAD_LEFT, STRIDE_W, DILATION_W);
  return held ? Incoming::at(0, 0, d, h, w) : -1;
}
