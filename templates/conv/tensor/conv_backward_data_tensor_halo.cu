// The gradient of a convolution with unit stride by its input on tensor cores, the windows' part of dy in shared memory
// once: f16, bf16 and tf32, channels of dy side by side. x here is dy, and y dx (conv/conv_contractions.h);
// lib/conv_halo.cuh says how. Parameters: halo.cpp.
#include "lib/conv_halo.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_tensor_halo(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                   const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                   UserArguments user, long long n) {
  convolve_halos(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
