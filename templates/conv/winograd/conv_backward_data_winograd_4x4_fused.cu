// Winograd's minimal filtering F(4x4, 3x3) in one kernel, behind the transform of the filters, for the gradient of
// a convolution by its input: x here is dy, and y is dx (conv/conv_contractions.h). lib/winograd_fused.cuh says how.
// Parameters: conv_backward_data_winograd_4x4_fused.cpp.
#include "lib/winograd_fused.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_data_simple");

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
    conv_backward_data_winograd_4x4_fused_filters(const TW* __restrict__ w, float* __restrict__ filters) {
  transform_filters(w, filters);
}

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_winograd_4x4_fused(const TX* __restrict__ x, const float* __restrict__ filters, TY* y,
                                          const TBias* bias, const TResidual* residual, float alpha, float beta,
                                          float clip_lo, float clip_hi, UserArguments user, long long n) {
  convolve_fused(x, filters, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
