// Gradients of attention on the lanes of a block: tiles in shared memory, sums in registers. One kernel takes rows of
// queries through the keys, for dq and dbias; the other one rows of keys through the queries, for dk and dv: nothing is
// added atomically. Any dtypes and strides. Parameters: attention_backward_block.cpp.
#include "lib/attention_block.cuh"
#include "lib/attention_weight_gradients.cuh"
#include "lib/store.cuh"
#include "lib/store_neighbours.cuh"

struct QueryMemory {
  FloatTile<BLOCK_M, DEPTH> q;
  FloatTile<BLOCK_M, WIDTH> dy;
  FloatTile<BLOCK_N, DEPTH> k;
  FloatTile<BLOCK_N, WIDTH> v;
  WeightTile weights;
};
struct KeyMemory {
  FloatTile<BLOCK_M, DEPTH> k;
  FloatTile<BLOCK_M, WIDTH> v;
  FloatTile<BLOCK_N, DEPTH> q;
  FloatTile<BLOCK_N, WIDTH> dy;
  WeightTile weights;
};
static_assert(sizeof(QueryMemory) == MEMORY_BYTES && sizeof(KeyMemory) == MEMORY_BYTES, "the launch gives it");

// Stores a thread's vectors of results, as they are.
template <const auto& STEP, int RUN, int COLUMNS, class T, class OffsetOf>
__device__ __forceinline__ void store_sums(RowSums<COLUMNS>& sums, const BlockPosition& at, T* target, int count,
                                           const OffsetOf& offset_of) {
  sums.for_each(at, [&](int i, int column, const float(&values)[4]) {
    if (at.row + i >= count) return;
    T* const first = target + offset_of(at.row + i) + column * Index(STEP);
    store_some_neighbours<RUN, STEP>(first, COLUMNS - column, values);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_block(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                             const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                             TDBIAS* dbias, float* row_products, float scale, float dropout, unsigned long long seed,
                             unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  QueryMemory& memory = block_memory<QueryMemory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image);
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const BlockPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};
  memory.q.load<Q_RUN>(q, Q_STRIDE_E, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });
  memory.dy.load<DY_RUN>(dy, DY_STRIDE_E, rows.left(), [&](int row) { return offset_in_dy(rows.line(row)); });

  const GradientRows own(rows, at, dy, y, lse);
  if constexpr (WITH_KEYS) own.leave(rows, at, row_products);

  RowSums<DEPTH> result;
  // dbias has elements for hidden keys too.
  const int first = WITH_DBIAS ? 0 : sight.some_first, end = WITH_DBIAS ? static_cast<int>(KEYS) : sight.some_end;
  for (int key = first; key < end; key += BLOCK_N) {
    __syncthreads();
    memory.k.load<K_RUN>(k, K_STRIDE_E, keys - key,
                         [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    memory.v.load<V_RUN>(v, V_STRIDE_E, keys - key,
                         [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
    __syncthreads();
    Scores scores, of_weights;
    multiply_rows(memory.q, memory.k, at, scores);
    multiply_rows(memory.dy, memory.v, at, of_weights);
    make_score_gradients(rows, at, key, keys, bias, mask, factor, drops, own, of_weights, dbias, true, scores);
    keep_weights(memory.weights, at, scores);
    __syncthreads();
    result.add(memory.weights, memory.k, at);
  }

  const OutputArguments output = {alpha, beta, user};
  result.for_each(at, [&](int i, int column, float(&values)[4]) {
    if (!rows.has(at.row + i)) return;
    const Index offset = offset_in_dq(rows.line(at.row + i)) + column * Index(DQ_STRIDE_E);
#pragma unroll
    for (int j = 0; j < 4; ++j) values[j] *= scale_of(scale);
    store_some_along<DQ_RUN, DQ_STRIDE_E>(dq, offset, DEPTH - column, values, output);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_block_keys(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
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
  const BlockPosition at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};
  memory.k.load<K_RUN>(k, K_STRIDE_E, keys - key, [&](int row) { return offset_in_k(image, key_head, key + row); });
  memory.v.load<V_RUN>(v, V_STRIDE_E, keys - key, [&](int row) { return offset_in_v(image, key_head, key + row); });

  RowSums<DEPTH> of_keys;
  RowSums<WIDTH> of_values;
  for (int head = key_head * SHARED_BY; head < (key_head + 1) * SHARED_BY; ++head) {
    for (int number = onlookers.first; number < onlookers.end; number += BLOCK_N) {
      const int count = static_cast<int>(QUERIES) - number;
      const auto line = [&](int row) { return AttentionLine(image, head, number + row); };
      __syncthreads();
      memory.q.load<Q_RUN>(q, Q_STRIDE_E, count, [&](int row) { return offset_in_q(line(row)); });
      memory.dy.load<DY_RUN>(dy, DY_STRIDE_E, count, [&](int row) { return offset_in_dy(line(row)); });
      __syncthreads();
      Scores scores, of_weights;
      multiply_rows(memory.k, memory.q, at, scores);
      multiply_rows(memory.v, memory.dy, at, of_weights);
      make_key_weights(
          line(0), at, key, keys, bias, mask, factor, drops,
          [&](int, const AttentionLine& query, bool is_there) { return is_there ? lse[offset_in_lse(query)] : 0.0f; },
          [&](int, const AttentionLine& query, bool is_there) {
            return is_there ? row_products[number_of(query)] : 0.0f;
          },
          scores, of_weights);
      keep_weights(memory.weights, at, scores);
      __syncthreads();
      if constexpr (WITH_DV) of_values.add(memory.weights, memory.dy, at);
      __syncthreads();
      keep_weights(memory.weights, at, of_weights);
      __syncthreads();
      if constexpr (WITH_DK) of_keys.add(memory.weights, memory.q, at);
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    // No query sees keys behind the image's length; 0 times what is not finite would be NaN.
    const bool is_behind = key + at.row + i >= keys;
    of_keys.scale(i, is_behind ? 0.0f : scale_of(scale), is_behind);
    of_values.scale(i, is_behind ? 0.0f : 1.0f, is_behind);
  }
  const int count = all_keys - key;
  const auto line = [&](int row) { return AttentionLine(image, key_head, key + row); };
  if constexpr (WITH_DK) {
    store_sums<DK_STRIDE_E, DK_RUN>(of_keys, at, dk, count, [&](int row) { return offset_in_dk(line(row)); });
  }
  if constexpr (WITH_DV) {
    store_sums<DV_STRIDE_E, DV_RUN>(of_values, at, dv, count, [&](int row) { return offset_in_dv(line(row)); });
  }
}
