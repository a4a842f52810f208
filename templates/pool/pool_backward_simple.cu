// dx[n,c,d,h,w] = sum over the windows that hold (d,h,w) of dy times the derivative of their result, the plain way: one
// thread an element of dx, any strides. The trusted kernel of pooling's gradient: others are checked against it, so it
// is written to be obviously right.
#include "lib/index.cuh"
#include "lib/pooling.cuh"
#include "lib/store.cuh"
#include "lib/strided.cuh"

using Incoming = SpatialTensor<DY_STRIDE_N, DY_STRIDE_C, DY_STRIDE_Z, DY_STRIDE_P, DY_STRIDE_Q, N, Z, P, Q>;
using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;
using Gradient = SpatialTensor<DX_STRIDE_N, DX_STRIDE_C, DX_STRIDE_D, DX_STRIDE_H, DX_STRIDE_W, N, D, H, W>;

// Whether the maximum of the window of a channel that starts at (front, top, left) is the element at (d, h, w): the
// first of the largest, or the last NaN.
__device__ __forceinline__ bool is_maximum(const TX* x, Index image, Index c, Index front, Index top, Index left,
                                           Index d, Index h, Index w) {
  float largest = 0.0f;
  bool found = false, here = false;
  for (Index t = 0; t < T; ++t) {
    for (Index r = 0; r < R; ++r) {
      for (Index s = 0; s < S; ++s) {
        const Index plane = front + t * DILATION_D, row = top + r * DILATION_H, column = left + s * DILATION_W;
        if (plane < 0 || plane >= D || row < 0 || row >= H || column < 0 || column >= W) continue;
        const float value = to_float(x[Input::at(image, c, plane, row, column)]);
        const bool is_nan = value != value;
        if (found && !is_nan && !(value > largest)) continue;
        found = true;
        largest = value;
        here = plane == d && row == h && column == w;
      }
    }
  }
  return here;
}

// The output along an axis whose window has tap `tap` at `position`; -1 if there is none.
__device__ __forceinline__ Index output_of(Index position, Index pad, Index tap, Index dilation, Index stride,
                                           Index outputs) {
  const Index steps = position + pad - tap * dilation;
  return steps < 0 || steps % stride != 0 || steps / stride >= outputs ? -1 : steps / stride;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_simple(const TDY* dy, const TX* x, const int* indices, TDX* dx, float alpha, float beta,
                         UserArguments user, long long n) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index index = number;
  if (index >= (DYNAMIC_N ? static_cast<Index>(n) : N) * Index(C) * D * H * W) return;
  const Index w = take_coordinate(index, W);
  const Index h = take_coordinate(index, H);
  const Index d = take_coordinate(index, D);
  const Index c = take_coordinate(index, C);
  const Index image = index;

  float sum = 0.0f;
  for (Index t = 0; t < T; ++t) {
    for (Index r = 0; r < R; ++r) {
      for (Index s = 0; s < S; ++s) {
        const Index z = output_of(d, PAD_FRONT, t, DILATION_D, STRIDE_D, Z);
        const Index p = output_of(h, PAD_TOP, r, DILATION_H, STRIDE_H, P);
        const Index q = output_of(w, PAD_LEFT, s, DILATION_W, STRIDE_W, Q);
        if (z < 0 || p < 0 || q < 0) continue;
        const Index front = z * STRIDE_D - PAD_FRONT, top = p * STRIDE_H - PAD_TOP, left = q * STRIDE_W - PAD_LEFT;
        const float gradient = user_entered(dy[Incoming::at(image, c, z, p, q)], static_cast<int>(c), user);
        if constexpr (HAS_INDICES) {
          if (indices[Named::at(image, c, z, p, q)] == (d * H + h) * W + w) sum += gradient;
        } else if constexpr (MODE == POOL_MAX) {
          if (is_maximum(x, image, c, front, top, left, d, h, w)) sum += gradient;
        } else {
          const float count = pool_count(counted_taps<MODE, Index>(front, T, DILATION_D, D, PAD_BACK),
                                         counted_taps<MODE, Index>(top, R, DILATION_H, H, PAD_BOTTOM),
                                         counted_taps<MODE, Index>(left, S, DILATION_W, W, PAD_RIGHT));
          sum += gradient / count;
        }
      }
    }
  }

  store_element(dx + Gradient::at(image, c, d, h, w), number, sum, static_cast<int>(c), {alpha, beta, user});
}
