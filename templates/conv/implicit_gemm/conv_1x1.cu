// Convolution with a 1x1 filter, unit stride and no padding: a plain matrix product per group, y = w x. Any strides.
// lib/conv_tile.cuh and lib/pointwise_pixels.cuh say how. Parameters: conv_1x1.cpp.
#include "lib/gemm_tile.cuh"
#include "lib/pointwise_pixels.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");
static_assert(POINTWISE, "one tap, at every pixel");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_1x1(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias, const TResidual* residual,
             float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  convolve<F32Lanes, PointwisePixels>(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
