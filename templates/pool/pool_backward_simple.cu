// dx[n,c,d,h,w] = sum over the windows that hold (d,h,w) of dy times the derivative of their result, the plain way: one
// thread an element of dx, any strides. The trusted kernel of pooling's gradient: others are checked against it, so it
// is written to be obviously right.
#include "lib/index.cuh"
#include "lib/pooling.cuh"
#include "lib/store.cuh"

// Whether the maximum of the window that starts at (front, top, left) is the element at (d, h, w): the first of the
// largest, or the last NaN.
__device__ __forceinline__ bool is_maximum(const TX* channel, Index front, Index top, Index left, Index d, Index h,
                                           Index w) {
  float largest = 0.0f;
  bool found = false, here = false;
  for (Index t = 0; t < T; ++t) {
    for (Index r = 0; r < R; ++r) {
      for (Index s = 0; s < S; ++s) {
        const Index plane = front + t * DILATION_D, row = top + r * DILATION_H, column = left + s * DILATION_W;
        if (plane < 0 || plane >= D || row < 0 || row >= H || column < 0 || column >= W) continue;
        const float value =
            to_float(channel[plane * Index(X_STRIDE_D) + row * Index(X_STRIDE_H) + column * Index(X_STRIDE_W)]);
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
  const Index w = take_coordinate<W>(index);
  const Index h = take_coordinate<H>(index);
  const Index d = take_coordinate<D>(index);
  const Index c = take_coordinate<C>(index);
  const Index image = index;

  const TDY* const incoming = dy + image * Index(DY_STRIDE_N) + c * Index(DY_STRIDE_C);
  const TX* const channel = x + image * Index(X_STRIDE_N) + c * Index(X_STRIDE_C);
  float sum = 0.0f;
  for (Index t = 0; t < T; ++t) {
    for (Index r = 0; r < R; ++r) {
      for (Index s = 0; s < S; ++s) {
        const Index z = output_of(d, PAD_FRONT, t, DILATION_D, STRIDE_D, Z);
        const Index p = output_of(h, PAD_TOP, r, DILATION_H, STRIDE_H, P);
        const Index q = output_of(w, PAD_LEFT, s, DILATION_W, STRIDE_W, Q);
        if (z < 0 || p < 0 || q < 0) continue;
        const Index front = z * STRIDE_D - PAD_FRONT, top = p * STRIDE_H - PAD_TOP, left = q * STRIDE_W - PAD_LEFT;
        const float gradient =
            user_entered(incoming[z * Index(DY_STRIDE_Z) + p * Index(DY_STRIDE_P) + q * Index(DY_STRIDE_Q)],
                         static_cast<int>(c), user);
        if constexpr (HAS_INDICES) {
          const int position =
              indices[image * Index(INDICES_STRIDE_N) + c * Index(INDICES_STRIDE_C) + z * Index(INDICES_STRIDE_Z) +
                      p * Index(INDICES_STRIDE_P) + q * Index(INDICES_STRIDE_Q)];
          if (position == (d * H + h) * W + w) sum += gradient;
        } else if constexpr (MODE == POOL_MAX) {
          if (is_maximum(channel, front, top, left, d, h, w)) sum += gradient;
        } else {
          const Index count = counted_taps<MODE, Index>(front, T, DILATION_D, D, PAD_BACK) *
                              counted_taps<MODE, Index>(top, R, DILATION_H, H, PAD_BOTTOM) *
                              counted_taps<MODE, Index>(left, S, DILATION_W, W, PAD_RIGHT);
          sum += gradient / static_cast<float>(count);
        }
      }
    }
  }

  TDX* const target = dx + image * Index(DX_STRIDE_N) + c * Index(DX_STRIDE_C) + d * Index(DX_STRIDE_D) +
                      h * Index(DX_STRIDE_H) + w * Index(DX_STRIDE_W);
  store_element(target, number, sum, static_cast<int>(c), {alpha, beta, user});
}
