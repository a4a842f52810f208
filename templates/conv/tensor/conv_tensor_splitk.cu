// conv_tensor for few pixels and channels but long filters. lib/conv_stream.cuh says how the depth is divided.
// Parameters: conv_tensor_splitk.cpp.
#include "lib/copied_split.cuh"
#include "lib/copy_pipeline.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for conv_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_tensor_splitk(const TX* __restrict__ x, const TW* __restrict__ w, float* __restrict__ parts,
                       UserArguments user, long long n) {
  sum_parts<TensorCopies, SplitPixels, SplitFilters>(x, w, parts, user, n);
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_tensor_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias, const TResidual* residual,
                              float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  add_sums(parts, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
