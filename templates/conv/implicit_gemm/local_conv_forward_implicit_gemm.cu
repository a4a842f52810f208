// Local convolution as an implicit matrix product for each region of the outputs: any strides, windows and groups.
// lib/conv_tile.cuh and lib/im2col_pixels.cuh say how. Parameters: contraction/simt_tiling.h.
#include "lib/gemm_tile.cuh"
#include "lib/im2col_pixels.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for local_conv_forward_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    local_conv_forward_implicit_gemm(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                     const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                     UserArguments user, long long n) {
  convolve<F32Lanes, Im2colPixels>(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
