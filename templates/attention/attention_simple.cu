// Attention, the plain way: one thread a query, any strides. The trusted kernel of attention_forward: others are
// checked against it, so it is written to be obviously right. Parameters: attention_simple.cpp.
#include "lib/attention_simple.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_simple(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask, const int* lengths,
                     TY* y, float* lse, float scale, float dropout, unsigned long long seed, unsigned long long offset,
                     float alpha, float beta, UserArguments user, long long n) {
  const Index line = global_thread<THREADS, Index>();
  const Index lines = static_cast<Index>(DYNAMIC_N ? n : N) * HEADS * static_cast<Index>(QUERIES);
  if (line >= lines) return;
  const AttentionLine query = line_of(line, HEADS, QUERIES);
  const Sight sight(query.number, keys_of(lengths, query.image));
  const float factor = scale_of(scale);
  const WeightDropout drops = {dropout, seed, offset};

  float maximum = -infinity();
  for (int key = sight.first; key < sight.end; ++key) {
    if (unmasked(mask, query, key)) maximum = fmaxf(maximum, score_of(q, k, bias, query, key, factor));
  }
  float total = 0.0f, sums[WIDTH] = {};
  for (int key = sight.first; key < sight.end; ++key) {
    if (!unmasked(mask, query, key)) continue;
    const float power = expf(score_of(q, k, bias, query, key, factor) - finite_maximum(maximum));
    const TV* const values = v + offset_in_v(query.image, query.head / SHARED_BY, key);
    const float weight = power * drops.factor(query, key);
    total += power;
    for (int i = 0; i < WIDTH; ++i) sums[i] += weight * to_float(values[i * Index(V_STRIDE_E)]);
  }

  for (int i = 0; i < WIDTH; ++i) {
    const float result = total == 0.0f ? 0.0f : sums[i] / total;
    store_element(y + offset_in_y(query) + i * Index(Y_STRIDE_E), static_cast<long long>(line) * WIDTH + i, result, 0,
                  {alpha, beta, user});
  }
  if constexpr (WITH_LSE) lse[offset_in_lse(query)] = total == 0.0f ? -infinity() : maximum + logf(total);
}
