// lib/conv_split.cuh for the gradient of a convolution by its input: x here is dy, and y those elements of dx that
// each class of taps reaches (conv/conv_contractions.h). Parameters: conv_backward_data_implicit_gemm_splitk.cpp.
#include "lib/class_blocks.cuh"
#include "lib/gemm_tile.cuh"
#include "per_class/lib/fitting_split.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    conv_backward_data_implicit_gemm_splitk(const TX* __restrict__ x, const TW* __restrict__ w,
                                            float* __restrict__ parts, UserArguments user, long long n) {
  const ClassBlock block;
  const int part = static_cast<int>(blockIdx.z);
#define CONVOLVE(NAME)                                                                             \
  if (block.is_of(NAME::CLASS)) {                                                                  \
    NAME::convolve_part<F32Lanes, NAME::FittingPixels>(block.place(), x, w, parts, user, n, part); \
  }
  FOR_EACH_CLASS(CONVOLVE)
}

// y from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    conv_backward_data_implicit_gemm_splitk_reduce(const float* __restrict__ parts, TY* y, const TBias* bias,
                                                   const TResidual* residual, float alpha, float beta, float clip_lo,
                                                   float clip_hi, UserArguments user, long long n) {
  const ClassBlock block;
  const EpilogueArguments arguments = {bias, residual, alpha, beta, clip_lo, clip_hi, user};
#define ADD(NAME)                                           \
  if (block.is_of(NAME::CLASS)) {                           \
    NAME::add_parts(block.place(), parts, y, arguments, n); \
  }
  FOR_EACH_CLASS(ADD)
}
