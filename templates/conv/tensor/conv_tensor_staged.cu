// Convolution on tensor cores, operands brought through registers: f16, bf16, tf32 and 8 bits, any strides.
// lib/tensor_lanes.cuh and lib/conv_tile.cuh say how. Parameters: conv_tensor_staged.cpp.
#include "lib/fitting_pixels.cuh"
#include "lib/tensor_lanes.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_tensor_staged(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                       const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                       UserArguments user, long long n) {
  convolve<TensorLanes, FittingPixels>(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
