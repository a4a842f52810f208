// Attention: what its kernels and those of its gradients share. generator/operations/attention.h has the formulas.
//
// From the prelude: HEADS, KEY_HEADS, QUERIES, KEYS, DEPTH (elements of a query or key), WIDTH (of a value), LEFT and
// RIGHT (keys on either side of a query's place that it sees, -1 for all), AT_END (the last query stands at the last
// key), WITH_DROPOUT, and for each operand its type, its strides, and where there may be none WITH_...
#include "lib/dropout.cuh"
#include "lib/index.cuh"
#include "lib/math.cuh"

constexpr int SHARED_BY = HEADS / KEY_HEADS;  // heads that share one of keys

// A line of a tensor: a query of an image and head, or a key.
struct AttentionLine {
  Index image;
  int head, number;

  __device__ __forceinline__ AttentionLine(Index image, int head, int number)
      : image(image), head(head), number(number) {}
};

// Line number `line` of `count` in each of `heads`.
template <class Extent>
__device__ __forceinline__ AttentionLine line_of(Index line, int heads, Extent count) {
  const int number = static_cast<int>(take_coordinate(line, count));
  const int head = static_cast<int>(take_coordinate(line, heads));
  return AttentionLine(line, head, number);
}

// Number of a query, through all images and heads.
__device__ __forceinline__ long long number_of(const AttentionLine& query) {
  return (static_cast<long long>(query.image) * HEADS + query.head) * static_cast<int>(QUERIES) + query.number;
}

// Factor of the products of queries and keys.
__device__ __forceinline__ float scale_of(float scale) {
  return scale == 0.0f ? 1.0f / sqrtf(static_cast<float>(DEPTH)) : scale;
}

// Keys of an image that count.
__device__ __forceinline__ int keys_of(const int* lengths, Index image) {
  const int keys = KEYS;
  if constexpr (!WITH_LENGTHS) return keys;
  return min(max(lengths[image * Index(LENGTHS_STRIDE_N)], 0), keys);
}

// The keys that a query sees by its place, of `keys` that count: from `first` on, before `end`.
struct Sight {
  int first, end;

  __device__ __forceinline__ Sight(int query, int keys) {
    const int place = query + (AT_END ? keys - static_cast<int>(QUERIES) : 0);
    first = LEFT < 0 ? 0 : max(place - LEFT, 0);
    end = RIGHT < 0 ? keys : min(place + RIGHT + 1, keys);
  }
  __device__ __forceinline__ bool holds(int key) const { return key >= first && key < end; }
};

// Whether the mask lets a query see a key.
__device__ __forceinline__ bool unmasked(const TMASK* mask, const AttentionLine& query, int key) {
  if constexpr (!WITH_MASK) return true;
  const Index at = query.image * Index(MASK_STRIDE_N) + query.head * Index(MASK_STRIDE_H) +
                   query.number * Index(MASK_STRIDE_M) + key * Index(MASK_STRIDE_L);
  return mask[at] != 0;
}

__device__ __forceinline__ float bias_at(const TBIAS* bias, const AttentionLine& query, int key) {
  if constexpr (!WITH_BIAS) return 0.0f;
  return to_float(bias[query.image * Index(BIAS_STRIDE_N) + query.head * Index(BIAS_STRIDE_H) +
                       query.number * Index(BIAS_STRIDE_M) + key * Index(BIAS_STRIDE_L)]);
}

// Offset of the first element of a query, key or value, and of an element of lse.
__device__ __forceinline__ Index offset_in_q(const AttentionLine& query) {
  return query.image * Index(Q_STRIDE_N) + query.head * Index(Q_STRIDE_H) + query.number * Index(Q_STRIDE_M);
}
__device__ __forceinline__ Index offset_in_k(Index image, int key_head, int key) {
  return image * Index(K_STRIDE_N) + key_head * Index(K_STRIDE_H) + key * Index(K_STRIDE_L);
}
__device__ __forceinline__ Index offset_in_v(Index image, int key_head, int key) {
  return image * Index(V_STRIDE_N) + key_head * Index(V_STRIDE_H) + key * Index(V_STRIDE_L);
}
__device__ __forceinline__ Index offset_in_y(const AttentionLine& query) {
  return query.image * Index(Y_STRIDE_N) + query.head * Index(Y_STRIDE_H) + query.number * Index(Y_STRIDE_M);
}
__device__ __forceinline__ Index offset_in_lse(const AttentionLine& query) {
  return query.image * Index(LSE_STRIDE_N) + query.head * Index(LSE_STRIDE_H) + query.number * Index(LSE_STRIDE_M);
}

// A maximum to subtract from scores: 0 where all are -inf, whose difference would be NaN.
__device__ __forceinline__ float finite_maximum(float maximum) {
  return maximum == -infinity() ? 0.0f : maximum;
}

// Dropout of weights.
struct WeightDropout {
  float p;
  unsigned long long seed, offset;

  // Factor of the weight of a key: 0, or 1 / (1 - p).
  __device__ __forceinline__ float factor(const AttentionLine& query, int key) const {
    if constexpr (!WITH_DROPOUT) return 1.0f;
    using Number = unsigned long long;
    const Number element = static_cast<Number>(number_of(query)) * static_cast<Number>(static_cast<int>(KEYS)) + key;
    return dropped_out(1.0f, dropout_words(element, seed, offset).at(static_cast<int>(element % 4)), p);
  }
};
