// conv_backward_filter_tensor_staged for small filters and many positions. lib/conv_stream.cuh says how the depth is
// divided. Parameters: conv_backward_filter_tensor_staged_splitk.cpp.
#include "lib/staged_split.cuh"
#include "lib/tensor_lanes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_filter_tensor_staged_splitk(const TX* __restrict__ x, const TW* __restrict__ w,
                                              float* __restrict__ parts, UserArguments user, long long n) {
  sum_parts<TensorLanes, SplitPixels, SplitFilters>(x, w, parts, user, n);
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_filter_tensor_staged_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                                     const TResidual* residual, float alpha, float beta, float clip_lo,
                                                     float clip_hi, UserArguments user, long long n) {
  add_sums(parts, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
