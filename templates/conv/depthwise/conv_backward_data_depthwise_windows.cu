// Gradient by the input of a convolution of few channels by large windows. lib/conv_windows.cuh says how.
// Parameters: depthwise_windows.cpp.
#include "lib/conv_windows.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_data_depthwise_windows(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                         const TResidual* residual, float alpha, float beta, float clip_lo,
                                         float clip_hi, UserArguments user, long long) {
  convolve_windows(x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user});
}
