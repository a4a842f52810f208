// The gradient of pooling by gathering: a thread takes one pixel of dx, for VECTOR channels, and visits the few windows
// that hold it. Any strides.
//
// For maxima, a first kernel looks once at every window and notes which tap its maximum is; averages need no such look,
// nor do maxima whose indices are given.
// Neighbouring threads take neighbouring channels of dx if CHANNELS_INNER, else neighbouring pixels, so that a warp
// moves whole lines. Parameters: pool_backward_gather.cpp.
#include "lib/pool_gradient.cuh"
#include "lib/store.cuh"
#include "lib/window_maxima.cuh"
#include "lib/window_outputs.cuh"

using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;

struct TapOf {
  __device__ __forceinline__ TapNumber operator()(int t, int r, int s, Index, Index, Index) const {
    return static_cast<TapNumber>((t * R + r) * S + s);
  }
};

// Notes which tap the maximum of each window is, in the order in which threads take windows: the first of the largest,
// or the last NaN.
extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_locate(const TX* __restrict__ x, TapNumber* __restrict__ located, long long n) {
  const Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * Q * (C / VECTOR)) return;
  const Place window = place_of(index, Z, P, Q);
  float largest[VECTOR];
  Vector<TapNumber, VECTOR> taps;
  window_maxima<NO_TAP>(x, window, AsStored(), TapOf(), largest, taps);
  store(located + index * VECTOR, taps);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_backward_gather(const TDY* __restrict__ dy, const TapNumber* __restrict__ located,
                         const int* __restrict__ indices, TDX* __restrict__ dx, float alpha, float beta,
                         UserArguments user, long long n) {
  const Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(D) * H * W * (C / VECTOR)) return;
  const Place pixel = place_of(index, D, H, W);
  const Holders planes(pixel.plane, PAD_FRONT, T, DILATION_D, STRIDE_D, Z);
  const Holders rows(pixel.row, PAD_TOP, R, DILATION_H, STRIDE_H, P);
  const Holders columns(pixel.column, PAD_LEFT, S, DILATION_W, STRIDE_W, Q);

  float sums[VECTOR] = {};
  for (Index z = planes.first; z <= planes.last; ++z) {
    const Index front = z * STRIDE_D - PAD_FRONT;
    if ((pixel.plane - front) % DILATION_D != 0) continue;
    for (Index p = rows.first; p <= rows.last; ++p) {
      const Index top = p * STRIDE_H - PAD_TOP;
      if ((pixel.row - top) % DILATION_H != 0) continue;
      for (Index q = columns.first; q <= columns.last; ++q) {
        const Index left = q * STRIDE_W - PAD_LEFT;
        if ((pixel.column - left) % DILATION_W != 0) continue;
        const auto incoming = user_kept<true>(load_readonly<VECTOR>(dy + Incoming::at(pixel.image, pixel.c, z, p, q)),
                                              static_cast<int>(pixel.c), user);
        if constexpr (HAS_INDICES) {
          const int here = static_cast<int>((pixel.plane * H + pixel.row) * W + pixel.column);
          const Vector<int, VECTOR> named = load_readonly<VECTOR>(indices + Named::at(pixel.image, pixel.c, z, p, q));
#pragma unroll
          for (int j = 0; j < VECTOR; ++j) {
            if (named[j] == here) sums[j] += to_float(incoming[j]);
          }
        } else if constexpr (MODE == POOL_MAX) {
          const Index t = (pixel.plane - front) / DILATION_D, r = (pixel.row - top) / DILATION_H,
                      s = (pixel.column - left) / DILATION_W;
          const Vector<TapNumber, VECTOR> taps =
              load_readonly<VECTOR>(located + packed_at({pixel.image, pixel.c, z, p, q}, Z, P, Q));
#pragma unroll
          for (int j = 0; j < VECTOR; ++j) {
            if (taps[j] == (t * R + r) * S + s) sums[j] += to_float(incoming[j]);
          }
        } else {
          const float scale = average_scale(front, top, left);
#pragma unroll
          for (int j = 0; j < VECTOR; ++j) sums[j] += to_float(incoming[j]) * scale;
        }
      }
    }
  }

  store_run<true>(dx, Gradient::at(pixel.image, pixel.c, pixel.plane, pixel.row, pixel.column), sums,
                  static_cast<int>(pixel.c), {alpha, beta, user});
}
