// Attention in one pass over the keys, on the lanes of a block: tiles of keys and values in shared memory, a running
// maximum and sum of each query in registers. Any dtypes and strides. Parameters: attention_block.cpp.
#include "lib/attention_block.cuh"
#include "lib/attention_parts.cuh"
#include "lib/attention_weights.cuh"
#include "lib/store.cuh"

struct Memory {
  FloatTile<BLOCK_M, DEPTH> q;
  FloatTile<BLOCK_N, DEPTH> k;
  FloatTile<BLOCK_N, WIDTH> v;
  WeightTile weights;
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch gives what the kernel uses");

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_block(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask, const int* lengths,
                    TY* y, float* lse, float* sums, float2* ends, float scale, float dropout, unsigned long long seed,
                    unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image);
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const KeyPart part = KeyPart::of<BLOCK_N>(sight);
  const BlockPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};
  memory.q.load<Q_RUN>(q, Q_STRIDE_E, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });

  RowSums<WIDTH> result;
  RunningRow running[THREAD_ROWS];
  for (int key = part.first; key < part.end; key += BLOCK_N) {
    __syncthreads();
    memory.k.load<K_RUN>(k, K_STRIDE_E, keys - key,
                         [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    memory.v.load<V_RUN>(v, V_STRIDE_E, keys - key,
                         [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
    __syncthreads();
    Scores scores;
    multiply_rows(memory.q, memory.k, at, scores);
    finish_scores(rows, at, key, keys, sight.all_see(key, BLOCK_N), bias, mask, factor, scores);
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) take_powers(i, scores, running[i], result);
    if constexpr (WITH_DROPOUT) drop_weights(rows, at, key, drops, scores);
    keep_weights(memory.weights, at, scores);
    __syncthreads();
    result.add(memory.weights, memory.v, at);
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float total = over_row(running[i].total, [](float a, float b) { return a + b; });
    if constexpr (PARTS > 1) {
      const AttentionLine query = rows.line(at.row + i);
      if (at.lane == 0 && rows.has(at.row + i)) PartialRows{sums, ends}.leave(query, running[i].maximum, total);
      continue;
    }
    const QueryEnd end(running[i].maximum, total);
    result.scale(i, end.share, !end.sees);
    if (WITH_LSE && at.lane == 0 && rows.has(at.row + i)) lse[offset_in_lse(rows.line(at.row + i))] = end.lse;
  }
  const OutputArguments output = {alpha, beta, user};
  result.for_each(at, [&](int i, int column, const float(&values)[4]) {
    if (!rows.has(at.row + i)) return;
    if constexpr (PARTS > 1) {
      float* const sum = PartialRows{sums, ends}.sums_of(rows.line(at.row + i)) + column;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        if (column + j < WIDTH) sum[j] = values[j];
      }
      return;
    }
    const Index offset = offset_in_y(rows.line(at.row + i)) + column * Index(Y_STRIDE_E);
    store_some_along<Y_RUN, Y_STRIDE_E>(y, offset, WIDTH - column, values, output);
  });
}

extern "C" __global__ void __launch_bounds__(JOIN_THREADS)
    attention_block_join(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask,
                         const int* lengths, TY* y, float* lse, float* sums, float2* ends, float scale, float dropout,
                         unsigned long long seed, unsigned long long offset, float alpha, float beta,
                         UserArguments user, long long n) {
  join_parts({sums, ends}, y, lse, {alpha, beta, user}, n);
}
