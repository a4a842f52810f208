// Gradients of attention, the plain way: one thread a query for dq and dbias, one thread a key for dk and dv, any
// strides. The trusted kernels of attention_backward: others are checked against them, so they are written to be
// obviously right. Parameters: attention_backward_simple.cpp.
#include "lib/attention_gradient.cuh"
#include "lib/attention_simple.cuh"
#include "lib/store.cuh"

// Pair of a query and a key that it sees; `row` is that of row_product().
__device__ AttentionPair seen_pair(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TBIAS* bias,
                                   const float* lse, const AttentionLine& query, int key, float scale, float row,
                                   const WeightDropout& drops) {
  const TDY* const gradients = dy + offset_in_dy(query);
  const TV* const values = v + offset_in_v(query.image, query.head / SHARED_BY, key);
  float dp = 0.0f;
  for (int i = 0; i < WIDTH; ++i)
    dp += to_float(gradients[i * Index(DY_STRIDE_E)]) * to_float(values[i * Index(V_STRIDE_E)]);
  return pair_of(score_of(q, k, bias, query, key, scale), lse[offset_in_lse(query)], drops.factor(query, key), dp, row);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_simple(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                              const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                              TDBIAS* dbias, float scale, float dropout, unsigned long long seed,
                              unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  const Index line = global_thread<THREADS, Index>();
  const Index lines = static_cast<Index>(DYNAMIC_N ? n : N) * HEADS * static_cast<Index>(QUERIES);
  if (line >= lines) return;
  const AttentionLine query = line_of(line, HEADS, QUERIES);
  const int keys = keys_of(lengths, query.image);
  const Sight sight(query.number, keys);
  const WeightDropout drops = {dropout, seed, offset};
  const float factor = scale_of(scale), row = row_product(dy, y, query);

  float sums[DEPTH] = {};
  for (int key = 0; key < KEYS; ++key) {
    float ds = 0.0f;
    if (sight.holds(key) && unmasked(mask, query, key)) {
      ds = seen_pair(dy, q, k, v, bias, lse, query, key, factor, row, drops).ds;
      const TK* const factors = k + offset_in_k(query.image, query.head / SHARED_BY, key);
      for (int i = 0; i < DEPTH; ++i) sums[i] += ds * to_float(factors[i * Index(K_STRIDE_E)]);
    }
    if constexpr (WITH_DBIAS) dbias[offset_in_dbias(query, key)] = from_float<TDBIAS>(ds);
  }
  for (int i = 0; i < DEPTH; ++i) {
    store_element(dq + offset_in_dq(query) + i * Index(DQ_STRIDE_E), static_cast<long long>(line) * DEPTH + i,
                  factor * sums[i], 0, {alpha, beta, user});
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_simple_keys(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                                   const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                                   TDBIAS* dbias, float scale, float dropout, unsigned long long seed,
                                   unsigned long long offset, float alpha, float beta, UserArguments user,
                                   long long n) {
  const Index line = global_thread<THREADS, Index>();
  const Index lines = static_cast<Index>(DYNAMIC_N ? n : N) * KEY_HEADS * static_cast<Index>(KEYS);
  if (line >= lines) return;
  const AttentionLine key = line_of(line, KEY_HEADS, KEYS);
  const int keys = keys_of(lengths, key.image);
  const WeightDropout drops = {dropout, seed, offset};
  const float factor = scale_of(scale);

  float of_key[DEPTH] = {}, of_value[WIDTH] = {};
  for (int shared = 0; shared < SHARED_BY; ++shared) {
    for (int number = 0; number < QUERIES; ++number) {
      const AttentionLine query(key.image, key.head * SHARED_BY + shared, number);
      if (!Sight(number, keys).holds(key.number) || !unmasked(mask, query, key.number)) continue;
      const AttentionPair pair =
          seen_pair(dy, q, k, v, bias, lse, query, key.number, factor, row_product(dy, y, query), drops);
      const TQ* const factors = q + offset_in_q(query);
      const TDY* const gradients = dy + offset_in_dy(query);
      for (int i = 0; i < DEPTH; ++i) of_key[i] += pair.ds * to_float(factors[i * Index(Q_STRIDE_E)]);
      for (int i = 0; i < WIDTH; ++i) of_value[i] += pair.p * to_float(gradients[i * Index(DY_STRIDE_E)]);
    }
  }
  if constexpr (WITH_DK) {
    TDK* const result = dk + offset_in_dk(key);
    for (int i = 0; i < DEPTH; ++i) result[i * Index(DK_STRIDE_E)] = from_float<TDK>(factor * of_key[i]);
  }
  if constexpr (WITH_DV) {
    TDV* const result = dv + offset_in_dv(key);
    for (int i = 0; i < WIDTH; ++i) result[i * Index(DV_STRIDE_E)] = from_float<TDV>(of_value[i]);
  }
}
