// Convolution on tensor cores whose windows overlap, what these meet in shared memory once: f16, bf16 and tf32,
// channels of x side by side. lib/conv_halo.cuh says how. Parameters: halo.cpp.
#include "lib/conv_halo.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_tensor_halo(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                     const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                     UserArguments user, long long n) {
  convolve_halos(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
