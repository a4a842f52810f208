// Gradients of attention: what its kernels share. generator/operations/attention.h has the formulas.
#include "lib/attention.cuh"

__device__ __forceinline__ Index offset_in_dy(const AttentionLine& query) {
  return query.image * Index(DY_STRIDE_N) + query.head * Index(DY_STRIDE_H) + query.number * Index(DY_STRIDE_M);
}
__device__ __forceinline__ Index offset_in_dq(const AttentionLine& query) {
  return query.image * Index(DQ_STRIDE_N) + query.head * Index(DQ_STRIDE_H) + query.number * Index(DQ_STRIDE_M);
}
__device__ __forceinline__ Index offset_in_dk(const AttentionLine& key) {
  return key.image * Index(DK_STRIDE_N) + key.head * Index(DK_STRIDE_H) + key.number * Index(DK_STRIDE_L);
}
__device__ __forceinline__ Index offset_in_dv(const AttentionLine& key) {
  return key.image * Index(DV_STRIDE_N) + key.head * Index(DV_STRIDE_H) + key.number * Index(DV_STRIDE_L);
}
__device__ __forceinline__ Index offset_in_dbias(const AttentionLine& query, int key) {
  return query.image * Index(DBIAS_STRIDE_N) + query.head * Index(DBIAS_STRIDE_H) +
         query.number * Index(DBIAS_STRIDE_M) + key * Index(DBIAS_STRIDE_L);
}

// The sum of dy y over the elements of a query's result, or over every `step`-th from `first` on.
__device__ __forceinline__ float row_product(const TDY* dy, const TY* y, const AttentionLine& query, int first = 0,
                                             int step = 1) {
  const TDY* const gradients = dy + offset_in_dy(query);
  const TY* const results = y + offset_in_y(query);
  float sum = 0.0f;
  for (int i = first; i < WIDTH; i += step)
    sum += to_float(gradients[i * Index(DY_STRIDE_E)]) * to_float(results[i * Index(Y_STRIDE_E)]);
  return sum;
}

// The logarithm of a weight, which is at most 1: rounding of large scores, as a mask's, may leave them far above lse.
__device__ __forceinline__ float at_most_0(float value) {
  return value > 0.0f ? 0.0f : value;  // NaN stays
}

// The weight of a key that a query sees, and the gradient of its score.
struct AttentionPair {
  float p, ds;
};

// `counts`: the factor of the weight (WeightDropout); `dp`: the gradient of their product; `row`: row_product(). Both
// are 0 of a query whose scores are all -inf.
__device__ __forceinline__ AttentionPair pair_of(float score, float lse, float counts, float dp, float row) {
  const bool sees = lse != -infinity();
  const float p = sees ? expf(at_most_0(score - lse)) : 0.0f;
  return {p * counts, sees ? p * (dp * counts - row) : 0.0f};
}
