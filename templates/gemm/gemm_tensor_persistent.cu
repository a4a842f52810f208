// c = epilogue(alpha * a b + beta * c) on tensor cores by blocks of several tiles (lib/persistent_tiles.cuh), operands
// copied to shared memory asynchronously: f16, bf16, tf32 and 8 bits, the elements of a row of a side by side. a is the
// x, b the w and c the y of lib/conv_tile.cuh. Parameters: gemm_tensor_persistent.cpp.
#include "lib/gemm_batch.cuh"
#include "lib/persistent_tiles.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_tensor_persistent(const TX* __restrict__ a, const TW* __restrict__ b, TY* c, const TBias* bias,
                           const TResidual* residual, float alpha, float beta, float clip_lo, float clip_hi,
                           UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  convolve_tiles(GridBlock(), x_of_product(a, product), w_of_product(b, product), c + y_offset_of(product),
                 arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product), n);
}
