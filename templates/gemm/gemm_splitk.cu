// gemm_tiled for small products of long rows and columns: SPLIT_K blocks share a tile of c, each multiplies its part of
// K, and a second kernel adds the parts in a fixed order. lib/conv_split.cuh says how. Parameters: gemm_splitk.cpp.
//
// parts: for each product of the batch [SPLIT_K][M * N] f32.
#include "lib/fitting_split.cuh"
#include "lib/gemm_batch.cuh"
#include "lib/gemm_tile.cuh"

static_assert(ALPHA != SCALE_ZERO, "alpha of class zero is for gemm_simple");

extern "C" __global__ void __launch_bounds__(THREADS, MIN_BLOCKS)
    gemm_splitk(const TX* __restrict__ a, const TW* __restrict__ b, float* __restrict__ parts, UserArguments user,
                long long n) {
  const int product = static_cast<int>(blockIdx.z) / SPLIT_K;
  convolve_part<F32Lanes, FittingPixels>(GridBlock(), x_of_product(a, product), w_of_product(b, product),
                                         parts + product * (SPLIT_K * part_elements()), user, n,
                                         static_cast<int>(blockIdx.z) % SPLIT_K);
}

// c from the parts.
extern "C" __global__ void __launch_bounds__(REDUCE_THREADS)
    gemm_splitk_reduce(const float* __restrict__ parts, TY* c, const TBias* bias, const TResidual* residual,
                       float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long n) {
  const int product = static_cast<int>(blockIdx.z);
  add_parts(GridBlock(), parts + product * (SPLIT_K * part_elements()), c + y_offset_of(product),
            arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product), n);
}
