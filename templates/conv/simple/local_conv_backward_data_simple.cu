// Gradient of a local convolution by its input, a thread an element of dx. lib/conv_backward_data_simple.cuh says how.
// Parameters: simple.cpp.
#include "lib/conv_backward_data_simple.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_conv_backward_data_simple(const TDY* dy, const TW* w, TY* dx, const TBias* bias, const TResidual* residual,
                                    float alpha, float beta, float clip_lo, float clip_hi, UserArguments user,
                                    long long n) {
  backward_data_of_one(dy, w, dx, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
