// c = epilogue(alpha * a b + beta * c) on tensor cores, operands copied to shared memory asynchronously: f16, bf16,
// tf32 and 8 bits, the elements of a row of a side by side. a is the x, b the w and c the y of lib/conv_tile.cuh.
// Parameters: gemm_tensor.cpp.
#include "lib/copied_operands.cuh"
#include "lib/copy_pipeline.cuh"
#include "lib/gemm_batch.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_tensor(const TX* __restrict__ a, const TW* __restrict__ b, TY* c, const TBias* bias, const TResidual* residual,
                float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  convolve<TensorCopies, CopiedPixels, BlockTile, CopiedFilters>(
      GridBlock(), x_of_product(a, product), w_of_product(b, product), c + y_offset_of(product),
      arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product), n);
}
