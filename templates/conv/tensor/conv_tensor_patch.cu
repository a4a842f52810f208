// Convolution of few channels on tensor cores (first layers): f16, bf16 and tf32, any strides. lib/conv_patch.cuh says
// how. Parameters: patch_convolution.cpp.
#include "lib/conv_patch.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_tensor_patch(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                      const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                      UserArguments user, long long n) {
  convolve_patches(x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
