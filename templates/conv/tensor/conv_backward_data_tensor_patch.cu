// The gradient of a convolution with unit stride by its input on tensor cores, few channels of dy in each group: f16,
// bf16 and tf32, any strides. x here is dy, and y dx (conv/conv_contractions.h); lib/conv_patch.cuh says how.
// Parameters: patch_convolution.cpp.
#include "lib/conv_patch.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_data_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_tensor_patch(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                    const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                    UserArguments user, long long n) {
  convolve_patches(x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
