// Convolution on tensor cores by blocks of several tiles (lib/persistent_tiles.cuh), operands copied to shared memory
// asynchronously: f16, bf16, tf32 and 8 bits, channels of x side by side. Parameters: conv_tensor_persistent.cpp.
#include "lib/persistent_tiles.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_tensor_persistent(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                           const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                           UserArguments user, long long n) {
  convolve_tiles(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
