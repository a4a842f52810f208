// Local convolution, a thread an element of y: the definition written as loops. lib/conv_simple.cuh says how.
// Parameters: simple.cpp.
#include "lib/conv_simple.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_conv_forward_simple(const TX* x, const TW* w, TY* y, const TBias* bias, const TResidual* residual,
                              float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  convolve_one(x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
