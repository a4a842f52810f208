// Scores of a block's rows, on lanes (lib/attention_block.cuh) or tensor cores (lib/attention_tensor.cuh), and the
// powers that become of them in one pass over the keys.

// Makes scores of products, as powers of 2: -inf of keys that are hidden. The block's columns are keys from `key` on,
// of `keys`.
__device__ __forceinline__ void finish_scores(const AttentionRows& rows, const Position& at, int key, int keys,
                                              bool all_see, const TBIAS* bias, const TMASK* mask, float factor,
                                              Scores& scores) {
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const AttentionLine query = rows.line(row_of(at, i));
    const Sight sight(query.number, keys);
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; ++j) {
      float& score = score_at(scores, i, j);
      score = all_see && !WITH_BIAS ? score * factor
                                    : score_in_base_2(score, factor, query, rows.has(row_of(at, i)), sight,
                                                      key + column_of(at, j), bias, mask);
    }
  }
}

// State of a row so far: the highest score, and the sum of its powers of 2, this thread's part of it.
struct RunningRow {
  float maximum = -infinity(), total = 0.0f;
};

// Makes powers of the scores of row number `i`, for a maximum that may have grown, and scales what was added before.
template <class Sums>
__device__ __forceinline__ void take_powers(int i, Scores& scores, RunningRow& row, Sums& result) {
  float highest = row.maximum;
#pragma unroll
  for (int j = 0; j < THREAD_COLUMNS; ++j) highest = fmaxf(highest, score_at(scores, i, j));
  highest = over_row(highest, [](float a, float b) { return fmaxf(a, b); });
  const float base = finite_maximum(highest), rescale = power_of_2(row.maximum - base);
  row.maximum = highest;
  row.total *= rescale;
  result.scale(i, rescale);
#pragma unroll
  for (int j = 0; j < THREAD_COLUMNS; ++j) {
    float& score = score_at(scores, i, j);
    score = power_of_2(score - base);
    row.total += score;
  }
}

__device__ __forceinline__ void drop_weights(const AttentionRows& rows, const Position& at, int key,
                                             const WeightDropout& drops, Scores& scores) {
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const AttentionLine query = rows.line(row_of(at, i));
#pragma unroll
    for (int j = 0; j < THREAD_COLUMNS; ++j) score_at(scores, i, j) *= drops.factor(query, key + column_of(at, j));
  }
}
