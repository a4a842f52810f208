// Gradients of attention on tensor cores. One kernel takes rows of queries through the keys, for dq and dbias; the
// other one rows of keys through the queries, for dk and dv: nothing is added atomically. The other rows come to shared
// memory asynchronously, a stage ahead. Weights and gradients of scores are rounded to the type of what they multiply.
// q and k are of one type, f16 or bf16, and so are v and dy. Parameters: attention_backward_tensor.cpp.
#include "lib/attention_tensor.cuh"
#include "lib/attention_weight_gradients.cuh"
#include "lib/block_memory.cuh"
#include "lib/store.cuh"
#include "lib/store_neighbours.cuh"

constexpr int KEPT_ROWS = KEEP ? 1 : BLOCK_M;  // of the block's own rows in shared memory

struct KeyStage {
  HalfTile<BLOCK_N, DEPTH_STEPS> k;
  HalfTile<BLOCK_N, WIDTH_STEPS> v;
};
struct QueryMemory {
  KeyStage stages[2];
  HalfTile<KEPT_ROWS, DEPTH_STEPS> q;
  HalfTile<KEPT_ROWS, WIDTH_STEPS> dy;
};
struct QueryStage {
  HalfTile<BLOCK_N, DEPTH_STEPS> q;
  HalfTile<BLOCK_N, WIDTH_STEPS> dy;
  float lse[BLOCK_N], row_products[BLOCK_N];
};
struct KeyMemory {
  QueryStage stages[2];
  HalfTile<KEPT_ROWS, DEPTH_STEPS> k;
  HalfTile<KEPT_ROWS, WIDTH_STEPS> v;
};
static_assert(sizeof(KeyMemory) == MEMORY_BYTES && sizeof(QueryMemory) <= MEMORY_BYTES, "the launch gives it");

// Calls compute(stage, first) for each BLOCK_N lines from `first` on, before `end`, while copy(stage, line) brings the
// next ones.
template <class Copy, class Compute>
__device__ __forceinline__ void go_through(int first, int end, const Copy& copy, const Compute& compute) {
  copy(0, first);
  end_group();
  int stage = 0;
#pragma unroll 1
  for (int line = first; line < end; line += BLOCK_N) {
    if (line + BLOCK_N < end) copy(1 - stage, line + BLOCK_N);
    end_group();
    wait_for_groups<1>();
    __syncthreads();
    compute(stage, line);
    __syncthreads();
    stage = 1 - stage;
  }
  wait_for_groups<0>();
}

// Stores a lane's pairs of a row.
template <const auto& STEP, int RUN, int ELEMENTS, class T, class Sums>
__device__ __forceinline__ void store_pairs(T* row, Sums& sums, int i, const WarpPosition& at, float factor) {
#pragma unroll
  for (int n = 0; n < (ELEMENTS + 7) / 8; ++n) {
    const float pair[2] = {sums.at(i, n, 0) * factor, sums.at(i, n, 1) * factor};
    if (at.column(n) < ELEMENTS) store_neighbours<RUN, STEP>(row + at.column(n) * Index(STEP), pair);
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_tensor(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                              const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                              TDBIAS* dbias, float* row_products, float scale, float dropout, unsigned long long seed,
                              unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  QueryMemory& memory = block_memory<QueryMemory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image);
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const WarpPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};

  KeptRows<TQ, KEEP ? DEPTH_STEPS : 1, DEPTH> queries;
  KeptRows<TDY, KEEP ? WIDTH_STEPS : 1, WIDTH> gradients;
  if constexpr (KEEP) {
    queries.load<smaller<int>(Q_RUN, 2)>(
        at, Q_STRIDE_E, [&](int row) { return rows.has(row) ? q + offset_in_q(rows.line(row)) : nullptr; });
    gradients.load<smaller<int>(DY_RUN, 2)>(
        at, DY_STRIDE_E, [&](int row) { return rows.has(row) ? dy + offset_in_dy(rows.line(row)) : nullptr; });
  } else {
    memory.q.start_copies<Q_RUN>(q, DEPTH, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });
    memory.dy.start_copies<DY_RUN>(dy, WIDTH, rows.left(), [&](int row) { return offset_in_dy(rows.line(row)); });
  }

  const GradientRows own(rows, at, dy, y, lse);
  if constexpr (WITH_KEYS) own.leave(rows, at, row_products);

  FragmentSums<DEPTH_STEPS> result;
  const auto copy = [&](int stage, int key) {
    memory.stages[stage].k.start_copies<K_RUN>(
        k, DEPTH, keys - key, [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    memory.stages[stage].v.start_copies<V_RUN>(
        v, WIDTH, keys - key, [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
  };
  const auto add = [&](int stage, int key) {
    const KeyStage& others = memory.stages[stage];
    Scores scores, of_weights;
    if constexpr (KEEP) {
      multiply_rows<TQ, DEPTH_STEPS>(queries, others.k, at, scores);
      multiply_rows<TDY, WIDTH_STEPS>(gradients, others.v, at, of_weights);
    } else {
      multiply_rows<TQ, DEPTH_STEPS>(SharedRows(memory.q, at), others.k, at, scores);
      multiply_rows<TDY, WIDTH_STEPS>(SharedRows(memory.dy, at), others.v, at, of_weights);
    }
    make_score_gradients(rows, at, key, keys, bias, mask, factor, drops, own, of_weights, dbias, true, scores);
    result.add<TK>(scores, others.k, at);
  };
  // dbias has elements for hidden keys too.
  go_through(WITH_DBIAS ? 0 : sight.some_first, WITH_DBIAS ? static_cast<int>(KEYS) : sight.some_end, copy, add);

  const OutputArguments output = {alpha, beta, user};
#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    if (!rows.has(at.row(i))) continue;
    const Index first = offset_in_dq(rows.line(at.row(i)));
#pragma unroll
    for (int n = 0; n < 2 * DEPTH_STEPS; ++n) {
      const float pair[2] = {result.at(i, n, 0) * scale_of(scale), result.at(i, n, 1) * scale_of(scale)};
      if (at.column(n) < DEPTH) {
        store_along<DQ_RUN, DQ_STRIDE_E>(dq, first + at.column(n) * Index(DQ_STRIDE_E), pair, output);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_tensor_keys(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                                   const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                                   TDBIAS* dbias, float* row_products, float scale, float dropout,
                                   unsigned long long seed, unsigned long long offset, float alpha, float beta,
                                   UserArguments user, long long n) {
  KeyMemory& memory = block_memory<KeyMemory>();
  const int all_keys = KEYS, blocks = (all_keys + BLOCK_M - 1) / BLOCK_M;
  const AttentionLine first = line_of(static_cast<Index>(blockIdx.x), KEY_HEADS, blocks);
  const Index image = first.image;
  const int key_head = first.head, key = first.number * BLOCK_M, keys = keys_of(lengths, image);
  const Onlookers<BLOCK_M> onlookers(key, keys);
  const WarpPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};

  KeptRows<TK, KEEP ? DEPTH_STEPS : 1, DEPTH> own_keys;
  KeptRows<TV, KEEP ? WIDTH_STEPS : 1, WIDTH> own_values;
  if constexpr (KEEP) {
    own_keys.load<smaller<int>(K_RUN, 2)>(at, K_STRIDE_E, [&](int row) {
      return key + row < keys ? k + offset_in_k(image, key_head, key + row) : nullptr;
    });
    own_values.load<smaller<int>(V_RUN, 2)>(at, V_STRIDE_E, [&](int row) {
      return key + row < keys ? v + offset_in_v(image, key_head, key + row) : nullptr;
    });
  } else {
    memory.k.start_copies<K_RUN>(k, DEPTH, keys - key,
                                 [&](int row) { return offset_in_k(image, key_head, key + row); });
    memory.v.start_copies<V_RUN>(v, WIDTH, keys - key,
                                 [&](int row) { return offset_in_v(image, key_head, key + row); });
  }

  FragmentSums<DEPTH_STEPS> of_keys;
  FragmentSums<WIDTH_STEPS> of_values;
  for (int head = key_head * SHARED_BY; head < (key_head + 1) * SHARED_BY; ++head) {
    const auto copy = [&](int stage, int number) {
      QueryStage& others = memory.stages[stage];
      const int count = static_cast<int>(QUERIES) - number;
      const auto line = [&](int row) { return AttentionLine(image, head, number + row); };
      others.q.start_copies<Q_RUN>(q, DEPTH, count, [&](int row) { return offset_in_q(line(row)); });
      others.dy.start_copies<DY_RUN>(dy, WIDTH, count, [&](int row) { return offset_in_dy(line(row)); });
      for (int row = static_cast<int>(threadIdx.x); row < BLOCK_N; row += THREADS) {
        const bool is_there = row < count;
        start_copy<4, true>(shared_address(others.lse + row), is_there ? lse + offset_in_lse(line(row)) : lse,
                            is_there);
        start_copy<4, true>(shared_address(others.row_products + row),
                            is_there ? row_products + number_of(line(row)) : row_products, is_there);
      }
    };
    const auto add = [&](int stage, int number) {
      const QueryStage& others = memory.stages[stage];
      Scores scores, of_weights;
      if constexpr (KEEP) {
        multiply_rows<TK, DEPTH_STEPS>(own_keys, others.q, at, scores);
        multiply_rows<TV, WIDTH_STEPS>(own_values, others.dy, at, of_weights);
      } else {
        multiply_rows<TK, DEPTH_STEPS>(SharedRows(memory.k, at), others.q, at, scores);
        multiply_rows<TV, WIDTH_STEPS>(SharedRows(memory.v, at), others.dy, at, of_weights);
      }
      make_key_weights(
          AttentionLine(image, head, number), at, key, keys, bias, mask, factor, drops,
          [&](int column, const AttentionLine&, bool) { return others.lse[column]; },
          [&](int column, const AttentionLine&, bool) { return others.row_products[column]; }, scores, of_weights);
      if constexpr (WITH_DV) of_values.add<TDY>(scores, others.dy, at);
      if constexpr (WITH_DK) of_keys.add<TQ>(of_weights, others.q, at);
    };
    go_through(onlookers.first, onlookers.end, copy, add);
  }

#pragma unroll
  for (int i = 0; i < THREAD_ROWS; ++i) {
    const AttentionLine line(image, key_head, key + at.row(i));
    if (line.number >= all_keys) continue;
    // No query sees keys behind the image's length; 0 times what is not finite would be NaN.
    if (line.number >= keys) of_keys.clear(i), of_values.clear(i);
    if constexpr (WITH_DK)
      store_pairs<DK_STRIDE_E, DK_RUN, DEPTH>(dk + offset_in_dk(line), of_keys, i, at, scale_of(scale));
    if constexpr (WITH_DV) store_pairs<DV_STRIDE_E, DV_RUN, WIDTH>(dv + offset_in_dv(line), of_values, i, at, 1.0f);
  }
}
