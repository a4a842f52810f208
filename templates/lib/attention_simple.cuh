// Scores of attention, one after the other, for trusted kernels.
#include "lib/attention.cuh"

// The score of a key that the query sees; its head of keys is the query's.
__device__ float score_of(const TQ* q, const TK* k, const TBIAS* bias, const AttentionLine& query, int key,
                          float scale) {
  const TQ* const factors = q + offset_in_q(query);
  const TK* const others = k + offset_in_k(query.image, query.head / SHARED_BY, key);
  float sum = 0.0f;
  for (int i = 0; i < DEPTH; ++i)
    sum += to_float(factors[i * Index(Q_STRIDE_E)]) * to_float(others[i * Index(K_STRIDE_E)]);
  return scale * sum + bias_at(bias, query, key);
}
