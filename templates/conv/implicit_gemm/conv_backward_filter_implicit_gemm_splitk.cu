// lib/conv_split.cuh for the gradient of a convolution by its filter: dy is the filter of a convolution of x whose y is
// dw (conv/conv_contractions.h). Parameters: conv_backward_filter_implicit_gemm_splitk.cpp.
#include "lib/fitting_split.cuh"
#include "lib/gemm_tile.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_filter_implicit_gemm_splitk(const TX* __restrict__ x, const TW* __restrict__ w,
                                              float* __restrict__ parts, UserArguments user, long long n) {
  convolve_part<F32Lanes, FittingPixels>(GridBlock(), x, w, parts, user, n, static_cast<int>(blockIdx.z));
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_implicit_gemm_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                                     const TResidual* residual, float alpha, float beta, float clip_lo,
                                                     float clip_hi, UserArguments user, long long n) {
  add_parts(GridBlock(), parts, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
