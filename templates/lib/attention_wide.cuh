// Attention in one pass over the keys for heads of many elements: lib/attention_chunks.cuh. A block has a slice of the
// values' elements.
#include "lib/attention_chunks.cuh"
#include "lib/attention_parts.cuh"
#include "lib/attention_weights.cuh"
#include "lib/store.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_wide(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask, const int* lengths,
                   TY* y, float* lse, float* sums, float2* ends, float scale, float dropout, unsigned long long seed,
                   unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image), slice = static_cast<int>(blockIdx.z) * SLICE;
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const KeyPart part = KeyPart::of<BLOCK_N>(sight);
  const Position at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};
  const auto queries =
      lines_of<Q_RUN>(q, Q_STRIDE_E, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });

  Sums<SLICE> result;
  RunningRow running[THREAD_ROWS];
#pragma unroll 1
  for (int key = part.first; key < part.end; key += BLOCK_N) {
    const auto others = lines_of<K_RUN>(k, K_STRIDE_E, keys - key,
                                        [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    const auto values = lines_of<V_RUN>(v, V_STRIDE_E, keys - key,
                                        [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
    __syncthreads();
    bring(memory.lines, values, slice, WIDTH);
    Scores scores;
    clear(scores);
    add_products_of<DEPTH>(memory.chunks, queries, others, at, scores);
    finish_scores(rows, at, key, keys, sight.all_see(key, BLOCK_N), bias, mask, factor, scores);
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) take_powers(i, scores, running[i], result);
    if constexpr (WITH_DROPOUT) drop_weights(rows, at, key, drops, scores);
    add_weighted<TV>(memory.chunks, scores, memory.lines, at, result);
  }

  QueryEnd query_ends[THREAD_ROWS];
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const float total = over_row(running[i].total, [](float a, float b) { return a + b; });
    query_ends[i] = QueryEnd(running[i].maximum, total);
    const int row = row_of(at, i);
    if (!rows.has(row) || slice != 0 || number_in_row(at) != 0) continue;
    if constexpr (PARTS > 1) {
      PartialRows{sums, ends}.leave(rows.line(row), running[i].maximum, total);
    } else if constexpr (WITH_LSE) {
      lse[offset_in_lse(rows.line(row))] = query_ends[i].lse;
    }
  }
  const OutputArguments output = {alpha, beta, user};
  result.for_each(at, [&](int i, int column, float(&values)[NEIGHBOURS]) {
    const int row = row_of(at, i), element = slice + column;
    if (!rows.has(row)) return;
    const AttentionLine query = rows.line(row);
    if constexpr (PARTS > 1) {
      float* const sum = PartialRows{sums, ends}.sums_of(query) + element;
#pragma unroll
      for (int j = 0; j < NEIGHBOURS; ++j) {
        if (element + j < WIDTH) sum[j] = values[j];
      }
      return;
    }
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) values[j] = query_ends[i].result_of(values[j]);
    const Index place = offset_in_y(query) + element * Index(Y_STRIDE_E);
    store_some_along<smaller<int>(Y_RUN, NEIGHBOURS), Y_STRIDE_E>(y, place, WIDTH - element, values, output);
  });
}

extern "C" __global__ void __launch_bounds__(JOIN_THREADS)
    attention_wide_join(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask, const int* lengths,
                        TY* y, float* lse, float* sums, float2* ends, float scale, float dropout,
                        unsigned long long seed, unsigned long long offset, float alpha, float beta, UserArguments user,
                        long long n) {
  join_parts({sums, ends}, y, lse, {alpha, beta, user}, n);
}
