// y[n,c,z,p,q] = max of x over a window, and where it stands in its channel: a thread takes one output, for VECTOR
// channels. Any strides. Parameters: pool_indexed.cpp.
#include "lib/blend.cuh"
#include "lib/places.cuh"
#include "lib/pooling.cuh"
#include "lib/strided.cuh"
#include "lib/vector.cuh"

using Input = SpatialTensor<X_STRIDE_N, X_STRIDE_C, X_STRIDE_D, X_STRIDE_H, X_STRIDE_W, N, D, H, W>;
using Output = SpatialTensor<Y_STRIDE_N, Y_STRIDE_C, Y_STRIDE_Z, Y_STRIDE_P, Y_STRIDE_Q, N, Z, P, Q>;
using Named =
    SpatialTensor<INDICES_STRIDE_N, INDICES_STRIDE_C, INDICES_STRIDE_Z, INDICES_STRIDE_P, INDICES_STRIDE_Q, N, Z, P, Q>;

static_assert(MODE == POOL_MAX && HAS_INDICES, "other kernels serve other requests");

extern "C" __global__ void __launch_bounds__(THREADS)
    pool_indexed(const TX* __restrict__ x, TY* __restrict__ y, int* __restrict__ indices, float alpha, float beta,
                 long long n) {
  const Index index = global_thread<THREADS, Index>();
  if (index >= images_of(n) * Index(Z) * P * Q * (C / VECTOR)) return;
  const Place window = place_of<Z, P, Q>(index);
  const Index front = window.plane * STRIDE_D - PAD_FRONT;
  const Index top = window.row * STRIDE_H - PAD_TOP;
  const Index left = window.column * STRIDE_W - PAD_LEFT;

  Vector<int, VECTOR> positions;
  float largest[VECTOR];
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    positions[j] = -1;
    largest[j] = -infinity();
  }
#pragma unroll 1
  for (int t = 0; t < T; ++t) {
    const Index d = front + Index(t) * DILATION_D;
    if (d < 0 || d >= D) continue;
#pragma unroll 1
    for (int r = 0; r < R; ++r) {
      const Index h = top + Index(r) * DILATION_H;
      if (h < 0 || h >= H) continue;
#pragma unroll 4
      for (int s = 0; s < S; ++s) {
        const Index w = left + Index(s) * DILATION_W;
        if (w < 0 || w >= W) continue;
        const Vector<TX, VECTOR> loaded = load_readonly<VECTOR>(x + Input::at(window.image, window.c, d, h, w));
        const int position = static_cast<int>((d * H + h) * W + w);
#pragma unroll
        for (int j = 0; j < VECTOR; ++j) {
          const float value = to_float(loaded[j]);
          if (positions[j] >= 0 && !is_nan(value) && !(value > largest[j])) continue;
          positions[j] = position;
          largest[j] = value;
        }
      }
    }
  }

  TY* const target = y + Output::at(window.image, window.c, window.plane, window.row, window.column);
  Vector<TY, VECTOR> result = zeros<TY, VECTOR>();
  if constexpr (BETA != SCALE_ZERO) result = load<VECTOR>(target);
#pragma unroll
  for (int j = 0; j < VECTOR; ++j) {
    result[j] = from_float<TY>(blended<ALPHA, BETA>(largest[j], alpha, to_float(result[j]), beta));
  }
  store(target, result);
  store(indices + Named::at(window.image, window.c, window.plane, window.row, window.column), positions);
}
