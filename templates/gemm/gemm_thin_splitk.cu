// gemm_thin where lines are few and long: SPLIT_K blocks share them, each leaves its sums in `parts`, and a second
// kernel adds these in a fixed order, a warp for each element of c. Parameters: thin_product.cpp.
//
// parts: for each product of the batch [M or N, whichever is thin][the other][SPLIT_K] f32.
#include "lib/gemm_thin.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_thin_splitk(const TX* __restrict__ a, const TW* __restrict__ b, float* __restrict__ parts, UserArguments user,
                     long long) {
  const int product = static_cast<int>(blockIdx.z);
  multiply_product(a, b, product, user, [&](int r, int line, float sum) {
    parts[((product * Index(ROWS) + r) * LINES + line) * SPLIT_K + blockIdx.y] = sum;
  });
}

// c from the parts: lanes of a warp add every 32nd, then those of all lanes are added.
extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_thin_splitk_reduce(const float* __restrict__ parts, TY* c, const TBias* bias, const TResidual* residual,
                            float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long) {
  const int product = static_cast<int>(blockIdx.z), lane = static_cast<int>(threadIdx.x) % 32;
  const int element = static_cast<int>(blockIdx.x) * WARPS + static_cast<int>(threadIdx.x) / 32;
  if (element >= ROWS * LINES) return;
  const float* const own = parts + (product * Index(ROWS * LINES) + element) * SPLIT_K;
  float sum = 0.0f;
  for (int i = lane; i < SPLIT_K; i += 32) sum += own[i];
  sum = lanes_reduce<32>(sum, Sum());
  if (lane != 0) return;
  finish_sum(c + y_offset_of(product), element / LINES, element % LINES, sum,
             arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product));
}
