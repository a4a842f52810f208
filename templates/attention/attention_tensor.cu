// Attention in one pass over the keys, on tensor cores: keys and values come to shared memory asynchronously, those of
// the next products meanwhile; queries are in registers (KEEP) or in shared memory. Weights are rounded to the type of
// v. q and k are of one type, f16 or bf16, and v is. Parameters: attention_tensor.cpp.
#include "lib/attention_parts.cuh"
#include "lib/attention_tensor.cuh"
#include "lib/attention_weights.cuh"
#include "lib/block_memory.cuh"
#include "lib/store.cuh"

struct Memory {
  HalfTile<BLOCK_N, DEPTH_STEPS> k;
  HalfTile<BLOCK_N, WIDTH_STEPS> v;
  HalfTile<KEEP ? 1 : BLOCK_M, DEPTH_STEPS> q;
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch gives what the kernel uses");

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_tensor(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask, const int* lengths,
                     TY* y, float* lse, float* sums, float2* ends, float scale, float dropout, unsigned long long seed,
                     unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image);
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const KeyPart part = KeyPart::of<BLOCK_N>(sight);
  const WarpPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};

  const auto copy_keys = [&](int key) {
    memory.k.start_copies<K_RUN>(k, DEPTH, keys - key,
                                 [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    end_group();
  };
  const auto copy_values = [&](int key) {
    memory.v.start_copies<V_RUN>(v, WIDTH, keys - key,
                                 [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
    end_group();
  };
  const auto wait = [] {
    wait_for_groups<0>();
    __syncthreads();
  };
  KeptRows<TQ, KEEP ? DEPTH_STEPS : 1, DEPTH> queries;
  if constexpr (KEEP) {
    queries.load<smaller<int>(Q_RUN, 2)>(
        at, Q_STRIDE_E, [&](int row) { return rows.has(row) ? q + offset_in_q(rows.line(row)) : nullptr; });
  } else {
    memory.q.start_copies<Q_RUN>(q, DEPTH, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });
  }
  copy_keys(part.first);

  FragmentSums<WIDTH_STEPS> result;
  RunningRow running[THREAD_ROWS];
#pragma unroll 1
  for (int key = part.first; key < part.end; key += BLOCK_N) {
    wait();
    copy_values(key);
    Scores scores;
    if constexpr (KEEP) {
      multiply_rows<TQ, DEPTH_STEPS>(queries, memory.k, at, scores);
    } else {
      multiply_rows<TQ, DEPTH_STEPS>(SharedRows(memory.q, at), memory.k, at, scores);
    }
    wait();
    if (key + BLOCK_N < part.end) copy_keys(key + BLOCK_N);
    finish_scores(rows, at, key, keys, sight.all_see(key, BLOCK_N), bias, mask, factor, scores);
#pragma unroll
    for (int i = 0; i < THREAD_ROWS; ++i) take_powers(i, scores, running[i], result);
    if constexpr (WITH_DROPOUT) drop_weights(rows, at, key, drops, scores);
    result.add<TV>(scores, memory.v, at);
  }
  wait_for_groups<0>();

  const OutputArguments output = {alpha, beta, user};
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const float total = over_row(running[i].total, [](float a, float b) { return a + b; });
    if (!rows.has(at.row(i))) continue;
    const AttentionLine query = rows.line(at.row(i));
    if constexpr (PARTS > 1) {
      const PartialRows parts = {sums, ends};
      if (at.lane % 4 == 0) parts.leave(query, running[i].maximum, total);
#pragma unroll
      for (int n = 0; n < 2 * WIDTH_STEPS; ++n) {
        const int element = at.column(n);  // and the next one: WIDTH is even
        if (element < WIDTH) {
          *reinterpret_cast<float2*>(parts.sums_of(query) + element) =
              make_float2(result.at(i, n, 0), result.at(i, n, 1));
        }
      }
      continue;
    }
    const QueryEnd end(running[i].maximum, total);
    if (WITH_LSE && at.lane % 4 == 0) lse[offset_in_lse(query)] = end.lse;
#pragma unroll
    for (int n = 0; n < 2 * WIDTH_STEPS; ++n) {
      const int element = at.column(n);
      const float pair[2] = {end.result_of(result.at(i, n, 0)), end.result_of(result.at(i, n, 1))};
      if (element < WIDTH) {
        store_along<Y_RUN, Y_STRIDE_E>(y, offset_in_y(query) + element * Index(Y_STRIDE_E), pair, output);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(JOIN_THREADS)
    attention_tensor_join(const TQ* q, const TK* k, const TV* v, const TBIAS* bias, const TMASK* mask,
                          const int* lengths, TY* y, float* lse, float* sums, float2* ends, float scale, float dropout,
                          unsigned long long seed, unsigned long long offset, float alpha, float beta,
                          UserArguments user, long long n) {
  join_parts({sums, ends}, y, lse, {alpha, beta, user}, n);
}
