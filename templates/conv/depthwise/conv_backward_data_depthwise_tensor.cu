// lib/conv_depthwise_tensor.cuh for the gradient of a convolution by its input: x here is dy, and y those elements of
// dx that each class of taps reaches (conv/conv_contractions.h). Parameters: conv_backward_data_depthwise_tensor.cpp.
#include "lib/class_blocks.cuh"
#include "per_class/lib/conv_depthwise_tensor.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    conv_backward_data_depthwise_tensor(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                        const TResidual* residual, float alpha, float beta, float clip_lo,
                                        float clip_hi, UserArguments user, long long n) {
  const ClassBlock block;
  const EpilogueArguments arguments = {bias, residual, alpha, beta, clip_lo, clip_hi, user};
#define CONVOLVE(NAME) \
  if (block.is_of(NAME::CLASS)) NAME::convolve_bands(block.place(), x, w, y, arguments, n);
  FOR_EACH_CLASS(CONVOLVE)
}
