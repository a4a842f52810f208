// c = epilogue(alpha * a b + beta * c) on tensor cores, operands brought through registers: f16, bf16, tf32 and 8 bits,
// any strides. a is the x, b the w and c the y of lib/conv_tile.cuh. Parameters: gemm_tensor_staged.cpp.
#include "lib/gemm_batch.cuh"
#include "lib/pointwise_pixels.cuh"
#include "lib/tensor_lanes.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_tensor_staged(const TX* __restrict__ a, const TW* __restrict__ b, TY* c, const TBias* bias,
                       const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                       UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  convolve<TensorLanes, PointwisePixels>(
      GridBlock(), x_of_product(a, product), w_of_product(b, product), c + y_offset_of(product),
      arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product), n);
}
