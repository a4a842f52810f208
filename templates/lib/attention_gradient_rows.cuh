// Gradients of attention by rows for blocks: what the kernels on lanes and on tensor cores share.
#include "lib/attention_gradient.cuh"
#include "lib/attention_rows.cuh"

// The weight of a key and the gradient of its score, of a product of its query with it.
__device__ __forceinline__ AttentionPair pair_at(const AttentionLine& query, int key, bool sees, float product,
                                                 float factor, const TBIAS* bias, float lse, const WeightDropout& drops,
                                                 float dp, float row) {
  const float score = biased_product(product, factor, bias, query, key, sees);
  const bool is_seen = sees && lse != -infinity();
  const float p = is_seen ? power_of_2(at_most_0(score - lse * LOG2_E)) : 0.0f, counts = drops.factor(query, key);
  return {p * counts, is_seen ? p * (dp * counts - row) : 0.0f};
}

// The queries that see some of the keys of a block by their places: from `first` on, before `end`.
template <int BLOCK_ROWS>
struct Onlookers {
  int first, end;

  __device__ __forceinline__ Onlookers(int key, int keys) {
    const int queries = QUERIES, ahead = AT_END ? keys - queries : 0;  // a query's place is its number and that
    const int last = min(key + BLOCK_ROWS, keys) - 1;
    first = RIGHT < 0 ? 0 : min(max(key - RIGHT - ahead, 0), queries);
    end = last < key ? first : LEFT < 0 ? queries : min(last + LEFT - ahead + 1, queries);
  }
};
