// c = epilogue(alpha * a b + beta * c) where M or N is a few. lib/gemm_thin.cuh says how. Parameters: thin_product.cpp.
#include "lib/gemm_thin.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_thin(const TX* __restrict__ a, const TW* __restrict__ b, TY* c, const TBias* bias, const TResidual* residual,
              float alpha, float beta, float clip_lo, float clip_hi, UserArguments user, long long) {
  const int product = static_cast<int>(blockIdx.z);
  const EpilogueArguments arguments = arguments_of({bias, residual, alpha, beta, clip_lo, clip_hi, user}, product);
  multiply_product(a, b, product, user,
                   [&](int r, int line, float sum) { finish_sum(c + y_offset_of(product), r, line, sum, arguments); });
}
