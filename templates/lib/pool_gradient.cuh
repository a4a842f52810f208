// Parts that fast kernels for the gradient of pooling share: operands in memory, the taps of maxima, what an average
// divides by. pool_backward_simple has its own, written plainly.
//
// From the prelude: the strides of dy and dx, the axes and MODE.
#include "lib/pooling.cuh"
#include "lib/strided.cuh"

using Incoming = SpatialTensor<DY_STRIDE_N, DY_STRIDE_C, DY_STRIDE_Z, DY_STRIDE_P, DY_STRIDE_Q, N, Z, P, Q>;
using Gradient = SpatialTensor<DX_STRIDE_N, DX_STRIDE_C, DX_STRIDE_D, DX_STRIDE_H, DX_STRIDE_W, N, D, H, W>;

// The tap of a maximum, of a window or along one axis.
using TapNumber = unsigned short;
constexpr TapNumber NO_TAP = 65535;  // no element is inside

// Factor of an average over the window that starts at (front, top, left).
__device__ __forceinline__ float average_scale(Index front, Index top, Index left) {
  return pool_scale(pool_count(counted_taps<MODE, Index>(front, T, DILATION_D, D, PAD_BACK),
                               counted_taps<MODE, Index>(top, R, DILATION_H, H, PAD_BOTTOM),
                               counted_taps<MODE, Index>(left, S, DILATION_W, W, PAD_RIGHT)));
}
