// Gradient of a local convolution by its filters, a thread an element of dw. lib/conv_backward_filter_simple.cuh says
// how. Parameters: simple.cpp.
#include "lib/conv_backward_filter_simple.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    local_conv_backward_filter_simple(const TX* x, const TDY* dy, TDW* dw, float alpha, float beta, UserArguments user,
                                      long long n) {
  backward_filter_of_one(x, dy, dw, {alpha, beta, user}, n);
}
