// Depthwise convolution of f16 and bf16 on tensor cores, for windows of many taps. lib/conv_depthwise_tensor.cuh says
// how. Parameters: conv_depthwise_tensor.cpp.
#include "lib/conv_depthwise_tensor.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_depthwise_tensor(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                          const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                          UserArguments user, long long n) {
  convolve_bands(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
