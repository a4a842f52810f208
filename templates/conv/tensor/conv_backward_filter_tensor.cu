// The gradient of a convolution by its filter on tensor cores, operands copied to shared memory asynchronously: f16,
// bf16 and tf32, channels of x and of dy side by side. dy is the filter of a convolution of x whose y is dw
// (conv/conv_contractions.h). Parameters: conv_backward_filter_tensor.cpp.
#include "lib/copied_gradient.cuh"
#include "lib/copy_pipeline.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_filter_tensor(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                                UserArguments user, long long n) {
  convolve<TensorCopies, CopiedRows, BlockTile, CopiedColumns>(
      GridBlock(), x, w, y, {bias, residual, alpha, beta, clip_lo, clip_hi, user}, n);
}
