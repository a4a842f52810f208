// Gradient of a local convolution by its input as an implicit matrix product for each segment of dx (lib/segments.cuh):
// x here is dy, and y those elements of dx that each class of taps reaches (conv/conv_contractions.h). dx is written
// once; what segments share of dy and of the filters they find in L2. Parameters:
// local_conv_backward_data_implicit_gemm.cpp.
#include "lib/class_blocks.cuh"
#include "lib/gemm_tile.cuh"
#include "per_class/lib/segments.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    local_conv_backward_data_implicit_gemm(const TX* __restrict__ x, const TW* __restrict__ w, TY* y, const TBias* bias,
                                           const TResidual* residual, float alpha, float beta, float clip_lo,
                                           float clip_hi, UserArguments user, long long n) {
  const ClassBlock block;
  const EpilogueArguments arguments = {bias, residual, alpha, beta, clip_lo, clip_hi, user};
#define CONVOLVE(NAME)                                                                                     \
  if (block.is_of(NAME::CLASS)) {                                                                          \
    NAME::convolve<F32Lanes, NAME::Im2colPixels, NAME::SegmentTile>(block.place(), x, w, y, arguments, n); \
  }
  FOR_EACH_CLASS(CONVOLVE)
}
