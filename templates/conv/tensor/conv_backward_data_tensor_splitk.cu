// conv_backward_data_tensor for few pixels and channels but long filters. lib/conv_stream.cuh says how the depth is
// divided. Parameters: conv_backward_data_tensor_splitk.cpp.
#include "lib/class_blocks.cuh"
#include "lib/copy_pipeline.cuh"
#include "lib/stream.cuh"
#include "per_class/lib/copied_split.cuh"

// All classes: behind what there is of each.
#include "lib/class_sums.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_tensor_splitk(const TX* __restrict__ x, const TW* __restrict__ w, float* __restrict__ parts,
                                     UserArguments user, long long n) {
  sum_classes<TensorCopies>(x, w, parts, user, n);
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_data_tensor_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                            const TResidual* residual, float alpha, float beta, float clip_lo,
                                            float clip_hi, UserArguments user, long long n) {
  add_classes(parts, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
