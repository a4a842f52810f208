// c[..., m, n] = epilogue(alpha * sum over k of a[..., m, k] * b[..., k, n] + beta * c[..., m, n]), one thread an
// element of c: the definition written as a loop. Any strides; those of a batch dimension along which a or b is used
// again are 0. With alpha of class zero nothing is summed: the product counts as 0, NaN inputs or not.
// Parameters: gemm_simple.cpp.
#include "lib/epilogue.cuh"
#include "lib/index.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    gemm_simple(const TA* a, const TB* b, TY* c, const TBias* bias, const TResidual* residual, float alpha, float beta,
                float clip_lo, float clip_hi, UserArguments user, long long batch) {
  const Index number = global_thread<THREADS, Index>();  // in logical order
  Index element = number;
  if (element >= (DYNAMIC_M ? static_cast<Index>(batch) : M) * Index(BATCH_0) * BATCH_1 * BATCH_2 * N) return;
  const Index n = take_coordinate(element, N);
  const Index m = take_coordinate(element, M);
  const Index batch_2 = take_coordinate(element, BATCH_2);
  const Index batch_1 = take_coordinate(element, BATCH_1);
  const Index batch_0 = element;

  float sum = 0.0f;
  if constexpr (ALPHA != SCALE_ZERO) {
    const TA* const row = a + (batch_0 * Index(A_BATCH_STRIDE_0) + batch_1 * Index(A_BATCH_STRIDE_1) +
                               batch_2 * Index(A_BATCH_STRIDE_2) + m * Index(A_STRIDE_M));
    const TB* const column = b + (batch_0 * Index(B_BATCH_STRIDE_0) + batch_1 * Index(B_BATCH_STRIDE_1) +
                                  batch_2 * Index(B_BATCH_STRIDE_2) + n * Index(B_STRIDE_N));
    for (Index k = 0; k < K; ++k) {
      const float entered = user_entered(row[k * Index(A_STRIDE_K)], static_cast<int>(k), user);
      sum += entered * to_float(column[k * Index(B_STRIDE_K)]);
    }
  }

  const EpilogueArguments arguments{bias, residual, alpha, beta, clip_lo, clip_hi, user};
  const Index at = batch_0 * Index(C_BATCH_STRIDE_0) + batch_1 * Index(C_BATCH_STRIDE_1) +
                   batch_2 * Index(C_BATCH_STRIDE_2) + m * Index(C_STRIDE_M) + n * Index(C_STRIDE_N);
  float old = 0.0f, residual_value = 0.0f;
  if constexpr (READS_Y) old = to_float(c[at]);
  if constexpr (READS_RESIDUAL) {
    residual_value =
        to_float(residual[batch_0 * Index(RESIDUAL_BATCH_STRIDE_0) + batch_1 * Index(RESIDUAL_BATCH_STRIDE_1) +
                          batch_2 * Index(RESIDUAL_BATCH_STRIDE_2) + m * Index(RESIDUAL_STRIDE_M) +
                          n * Index(RESIDUAL_STRIDE_N)]);
  }
  UserValues user_values;
  load_user_element(user, number, user_values);
  const int channel = static_cast<int>(n);
  c[at] =
      from_float<TY>(finished(sum, old, channel, bias_of(arguments, channel), residual_value, user_values, arguments));
}
