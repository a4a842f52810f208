// Winograd's minimal filtering F(4x4, 3x3) in four steps for the gradient of a convolution by its input: x here
// is dy, and y is dx (conv/conv_contractions.h). lib/winograd_steps.cuh says how; the products are a kernel of
// conv_1x1. Parameters: conv_backward_data_winograd_4x4.cpp.
#include "lib/winograd_steps.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_backward_data_simple");

extern "C" __global__ void __launch_bounds__(FILTER_THREADS)
    conv_backward_data_winograd_4x4_filters(const TW* __restrict__ w, float* __restrict__ filters) {
  transform_filters(w, filters);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_data_winograd_4x4_inputs(const TX* __restrict__ x, float* __restrict__ inputs, UserArguments user,
                                           long long n) {
  transform_inputs(x, inputs, user, n);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_data_winograd_4x4_outputs(const float* __restrict__ products, TY* y, const TBias* bias,
                                            const TResidual* residual, float alpha, float beta, float clip_lo,
                                            float clip_hi, UserArguments user, long long n) {
  transform_products(products, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
