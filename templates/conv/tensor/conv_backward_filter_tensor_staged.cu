// The gradient of a convolution by its filter on tensor cores, operands brought through registers: f16, bf16, tf32 and
// fp8, any strides. dy is the filter of a convolution of x whose y is dw (conv/conv_contractions.h). Parameters:
// conv_backward_filter_tensor_staged.cpp.
#include "lib/fitting_pixels.cuh"
#include "lib/tensor_lanes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_filter_tensor_staged(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                       const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                       UserArguments user, long long n) {
  convolve<TensorLanes, FittingPixels>(GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
