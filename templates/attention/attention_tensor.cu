// Attention in one pass over the keys, on tensor cores: keys and values come to shared memory asynchronously, those of
// the next products meanwhile; queries are in registers (KEEP) or in shared memory. Weights are rounded to the type of
// v. q and k are of one type, f16 or bf16, and v is. Parameters: attention_tensor.cpp.
#include "lib/attention_parts.cuh"
#include "lib/attention_tensor.cuh"
#include "lib/block_memory.cuh"
#include "lib/store.cuh"

struct Memory {
  HalfTile<TK, BLOCK_N, DEPTH_STEPS> k;
  HalfTile<TV, BLOCK_N, WIDTH_STEPS> v;
  HalfTile<TQ, KEEP ? 1 : BLOCK_M, DEPTH_STEPS> q;
};
static_assert(sizeof(Memory) == MEMORY_BYTES, "the launch gives what the kernel uses");

// The scores of a warp's rows as powers of 2, -inf of keys that are hidden.
__device__ __forceinline__ void finish_scores(const AttentionRows& rows, const WarpPosition& at, int key, int keys,
                                              bool all_see, const TBIAS* bias, const TMASK* mask, float factor,
                                              Scores& scores) {
  if (all_see && !WITH_BIAS) {
#pragma unroll
    for (int m = 0; m < FRAGMENTS; ++m) {
#pragma unroll
      for (int n = 0; n < COLUMNS; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[m][n][i] *= factor;
      }
    }
    return;
  }
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const AttentionLine query = rows.line(at.row(i));
    const Sight sight(query.number, keys);
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float& score = scores[i / 2][n][i % 2 * 2 + j];
        score = score_in_base_2(score, factor, query, rows.has(at.row(i)), sight, key + at.column(n) + j, bias, mask);
      }
    }
  }
}

// State of a row so far: the highest score, and the sum of its powers of 2.
struct RunningRow {
  float maximum = -infinity(), total = 0.0f;
};

// Makes powers of the scores of row number `i`, for a maximum that may have grown, and scales what was added before.
__device__ __forceinline__ void take_powers(int i, Scores& scores, RunningRow& row, FragmentSums<WIDTH_STEPS>& result) {
  float highest = row.maximum;
#pragma unroll
  for (int n = 0; n < COLUMNS; ++n) {
    const float(&pairs)[4] = scores[i / 2][n];
    highest = fmaxf(highest, fmaxf(pairs[i % 2 * 2], pairs[i % 2 * 2 + 1]));
  }
  highest = over_four(highest, [](float a, float b) { return fmaxf(a, b); });
  const float base = finite_maximum(highest), rescale = power_of_2(row.maximum - base);
  row.maximum = highest;
  row.total *= rescale;
  result.scale(i, rescale);
#pragma unroll
  for (int n = 0; n < COLUMNS; ++n) {
#pragma unroll
    for (int j = i % 2 * 2; j < i % 2 * 2 + 2; ++j) {
      scores[i / 2][n][j] = power_of_2(scores[i / 2][n][j] - base);
      row.total += scores[i / 2][n][j];
    }
  }
}

__device__ __forceinline__ void drop_weights(const AttentionRows& rows, const WarpPosition& at, int key,
                                             const WeightDropout& drops, Scores& scores) {
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const AttentionLine query = rows.line(at.row(i));
#pragma unroll
    for (int n = 0; n < COLUMNS; ++n) {
#pragma unroll
      for (int j = 0; j < 2; ++j) scores[i / 2][n][i % 2 * 2 + j] *= drops.factor(query, key + at.column(n) + j);
    }
  }
}

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
    memory.k.start_copies<DEPTH, K_RUN>(k, keys - key,
                                        [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    end_group();
  };
  const auto copy_values = [&](int key) {
    memory.v.start_copies<WIDTH, V_RUN>(v, keys - key,
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
    memory.q.start_copies<DEPTH, Q_RUN>(q, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });
  }
  copy_keys(part.first);

  FragmentSums<WIDTH_STEPS> result;
  RunningRow running[LANE_ROWS];
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
    for (int i = 0; i < LANE_ROWS; ++i) take_powers(i, scores, running[i], result);
    if constexpr (WITH_DROPOUT) drop_weights(rows, at, key, drops, scores);
    result.add<TV>(scores, memory.v, at);
  }
  wait_for_groups<0>();

  const OutputArguments output = {alpha, beta, user};
#pragma unroll
  for (int i = 0; i < LANE_ROWS; ++i) {
    const float total = over_four(running[i].total, [](float a, float b) { return a + b; });
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
