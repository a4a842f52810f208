// Weights of keys and gradients of scores of a block's rows, on lanes (lib/attention_block.cuh) or tensor cores
// (lib/attention_tensor.cuh).
#include "lib/attention_gradient_rows.cuh"

// Sums of dy y of a thread's rows, and their lse: 0 and -inf of rows beyond the last.
struct GradientRows {
  float products[THREAD_ROWS], logs[THREAD_ROWS];

  __device__ __forceinline__ GradientRows(const AttentionRows& rows, const Position& at, const TDY* dy, const TY* y,
                                          const float* lse) {
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
      const AttentionLine query = rows.line(row_of(at, i));
      products[i] = 0.0f;
      logs[i] = -infinity();
      if (rows.has(row_of(at, i))) {
        products[i] = row_product(dy, y, query, number_in_row(at), ROW_THREADS);
        logs[i] = lse[offset_in_lse(query)];
      }
      products[i] = over_row(products[i], [](float a, float b) { return a + b; });
    }
  }
  // Leaves the sums to the kernel of keys.
  __device__ __forceinline__ void leave(const AttentionRows& rows, const Position& at, float* row_products) const {
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
      const int row = row_of(at, i);
      if (number_in_row(at) == 0 && rows.has(row)) row_products[number_of(rows.line(row))] = products[i];
    }
  }
};

// Makes gradients of scores, which go to dbias if it `leaves` them, of products of queries and keys. `of_weights`: of
// gradients of results and values. The block's columns are keys from `key` on, of `keys`.
__device__ __forceinline__ void make_score_gradients(const AttentionRows& rows, const Position& at, int key, int keys,
                                                     const TBIAS* bias, const TMASK* mask, float factor,
                                                     const WeightDropout& drops, const GradientRows& own,
                                                     Scores& of_weights, TDBIAS* dbias, bool leaves, Scores& scores) {
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const bool is_there = rows.has(row_of(at, i));
    const AttentionLine query = rows.line(row_of(at, i));
    const Sight sight(query.number, keys);
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; ++j) {
      const int place = key + column_of(at, j);
      const bool sees = is_there && sight.holds(place) && unmasked(mask, query, place);
      float& score = score_at(scores, i, j);
      score = pair_at(query, place, sees, score, factor, bias, own.logs[i], drops, score_at(of_weights, i, j),
                      own.products[i])
                  .ds;
      if (WITH_DBIAS && leaves && is_there && place < KEYS) {
        dbias[offset_in_dbias(query, place)] = from_float<TDBIAS>(score);
      }
    }
  }
}

// Makes weights of products of keys and queries, and gradients of scores of `of_weights`, as above. The block's rows
// are keys from `key` on, of `keys`, its columns the queries from `first` on; their lse and sums of dy y are
// log_of(column, query, is_there) and product_of of the same, anything of queries that are not there.
template <class LogOf, class ProductOf>
__device__ __forceinline__ void make_key_weights(const AttentionLine& first, const Position& at, int key, int keys,
                                                 const TBIAS* bias, const TMASK* mask, float factor,
                                                 const WeightDropout& drops, const LogOf& log_of,
                                                 const ProductOf& product_of, Scores& scores, Scores& of_weights) {
#pragma unroll
  for (int j = 0; j < THREAD_COLUMNS; ++j) {
    const int column = column_of(at, j);
    const AttentionLine query(first.image, first.head, first.number + column);
    const bool is_there = query.number < QUERIES;
    const Sight sight(query.number, keys);
    const float log = log_of(column, query, is_there), product = product_of(column, query, is_there);
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) {
      const int place = key + row_of(at, i);
      const bool sees = is_there && sight.holds(place) && unmasked(mask, query, place);
      float &score = score_at(scores, i, j), &of_weight = score_at(of_weights, i, j);
      const AttentionPair pair = pair_at(query, place, sees, score, factor, bias, log, drops, of_weight, product);
      score = pair.p;
      of_weight = pair.ds;
    }
  }
}
