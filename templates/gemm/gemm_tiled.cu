// c = epilogue(alpha * a b + beta * c): a thread block makes a tile of c, chunk by chunk of K, from tiles of a and b in
// shared memory. Any strides, any batch. a is the x, b the w and c the y of lib/conv_tile.cuh, which says how.
// Parameters: gemm_tiled.cpp.
#include "lib/gemm_batch.cuh"
#include "lib/gemm_tile.cuh"
#include "lib/pointwise_pixels.cuh"

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_tiled(const TX* __restrict__ a, const TW* __restrict__ b, TY* c, const TBias* bias, const TResidual* residual,
               float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  convolve<F32Lanes, PointwisePixels>(GridBlock(), x_of_product(a, product), w_of_product(b, product),
                                      c + y_offset_of(product),
                                      arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product), n);
}
