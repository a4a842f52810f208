// Rows of queries for blocks, and the keys that they see.
//
// A row is a query of one of the heads that share a head of keys: a block that takes rows of several of them reads keys
// and values once for all, also where there are few queries.
#include "lib/attention.cuh"

// Consecutive rows of an image and key head, from number `first` on.
struct AttentionRows {
  Index image;
  int key_head, first;

  // Rows of block number `block`, of BLOCK_ROWS each. Where a query sees no key behind it, the last rows have most to
  // do: they begin first.
  template <int BLOCK_ROWS>
  __device__ __forceinline__ static AttentionRows of_block(Index block) {
    const int blocks = (count() + BLOCK_ROWS - 1) / BLOCK_ROWS;
    const int number = static_cast<int>(take_coordinate(block, blocks));
    const int key_head = static_cast<int>(take_coordinate(block, KEY_HEADS));
    return {block, key_head, (RIGHT >= 0 ? blocks - 1 - number : number) * BLOCK_ROWS};
  }

  __device__ __forceinline__ static int count() { return SHARED_BY * static_cast<int>(QUERIES); }
  __device__ __forceinline__ int left() const { return count() - first; }
  __device__ __forceinline__ bool has(int row) const { return row < left(); }
  __device__ __forceinline__ AttentionLine line(int row) const {
    const int queries = QUERIES;
    if constexpr (SHARED_BY == 1) return AttentionLine(image, key_head, first + row);
    return AttentionLine(image, key_head * SHARED_BY + (first + row) / queries, (first + row) % queries);
  }
};

// The keys that rows of a block see by their places: `some` of the rows, or all of them.
struct BlockSight {
  int some_first, some_end, all_first, all_end;

  template <int BLOCK_ROWS>
  __device__ __forceinline__ static BlockSight of(const AttentionRows& rows, int keys) {
    const int queries = QUERIES, last = min(rows.first + BLOCK_ROWS, AttentionRows::count()) - 1;
    const bool is_of_one_head = SHARED_BY == 1 || rows.first / queries == last / queries;
    const Sight low(is_of_one_head ? rows.first % queries : 0, keys);
    const Sight high(is_of_one_head ? last % queries : queries - 1, keys);
    return {low.first, high.end, high.first, low.end};
  }
  // Whether all rows see the `count` keys from `key` on.
  __device__ __forceinline__ bool all_see(int key, int count) const {
    return !WITH_MASK && key >= all_first && key + count <= all_end;
  }
};

// Score in base 2 of a product of a query and a key that it sees; of others the bias is not read. `factor`: of all
// products. A finite bias stays finite: the lowest number hides keys in many models.
__device__ __forceinline__ float biased_product(float product, float factor, const TBIAS* bias,
                                                const AttentionLine& query, int key, bool sees) {
  float score = product * factor;
  if (WITH_BIAS && sees) score += in_base_2(bias_at(bias, query, key));
  return score;
}

// The same, -inf where the query does not see the key. The query may be none (rows beyond the last), of which nothing
// is read.
__device__ __forceinline__ float score_in_base_2(float product, float factor, const AttentionLine& query, bool is_there,
                                                 const Sight& sight, int key, const TBIAS* bias, const TMASK* mask) {
  const bool reads = WITH_BIAS || WITH_MASK;
  const bool sees = sight.holds(key) && (!reads || (is_there && unmasked(mask, query, key)));
  return sees ? biased_product(product, factor, bias, query, key, sees) : -infinity();
}

// How a query ends, of the maximum and the sum of its scores' powers, which is 0 where it sees no key, else at least 1:
// its result of a weighted sum, and the logarithm of the sum of exponentials. Single instructions err by a unit or two,
// and have no branches.
struct QueryEnd {
  float share, lse;
  bool sees;

  QueryEnd() = default;
  __device__ __forceinline__ QueryEnd(float maximum, float total) : sees(total != 0.0f) {
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(share) : "f"(total));
    lse = sees ? (maximum + log_2(total)) * LN_2 : -infinity();
  }
  // 0 times a value that is not finite may stand in `sum` of a query without keys.
  __device__ __forceinline__ float result_of(float sum) const { return sees ? sum * share : 0.0f; }
};
