// Gradients of attention for heads of many elements: lib/attention_chunks.cuh. One kernel takes rows of queries through
// the keys, for dq and dbias; the other one rows of keys through the queries, for dk and dv: nothing is added
// atomically. A block has a slice of the elements of one of these.
#include "lib/attention_chunks.cuh"
#include "lib/attention_weight_gradients.cuh"
#include "lib/store.cuh"
#include "lib/store_neighbours.cuh"

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_wide(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                            const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                            TDBIAS* dbias, float* row_products, float scale, float dropout, unsigned long long seed,
                            unsigned long long offset, float alpha, float beta, UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const AttentionRows rows = AttentionRows::of_block<BLOCK_M>(static_cast<Index>(blockIdx.x));
  const int keys = keys_of(lengths, rows.image), slice = static_cast<int>(blockIdx.z) * SLICE;
  const BlockSight sight = BlockSight::of<BLOCK_M>(rows, keys);
  const Position at;
  const float factor = scale_of(scale) * LOG2_E;
  const WeightDropout drops = {dropout, seed, offset};
  const auto queries =
      lines_of<Q_RUN>(q, Q_STRIDE_E, rows.left(), [&](int row) { return offset_in_q(rows.line(row)); });
  const auto gradients =
      lines_of<DY_RUN>(dy, DY_STRIDE_E, rows.left(), [&](int row) { return offset_in_dy(rows.line(row)); });

  const GradientRows own(rows, at, dy, y, lse);
  if (WITH_KEYS && slice == 0) own.leave(rows, at, row_products);

  Sums<SLICE> result;
  // dbias has elements for hidden keys too.
  const int first = WITH_DBIAS ? 0 : sight.some_first, end = WITH_DBIAS ? static_cast<int>(KEYS) : sight.some_end;
#pragma unroll 1
  for (int key = first; key < end; key += BLOCK_N) {
    const auto others = lines_of<K_RUN>(k, K_STRIDE_E, keys - key,
                                        [&](int row) { return offset_in_k(rows.image, rows.key_head, key + row); });
    const auto values = lines_of<V_RUN>(v, V_STRIDE_E, keys - key,
                                        [&](int row) { return offset_in_v(rows.image, rows.key_head, key + row); });
    __syncthreads();
    bring(memory.lines, others, slice, DEPTH);
    Scores scores, of_weights;
    clear(scores);
    clear(of_weights);
    add_products_of<DEPTH>(memory.chunks, queries, others, at, scores);
    add_products_of<WIDTH>(memory.chunks, gradients, values, at, of_weights);
    make_score_gradients(rows, at, key, keys, bias, mask, factor, drops, own, of_weights, dbias, slice == 0, scores);
    add_weighted<TK>(memory.chunks, scores, memory.lines, at, result);
  }

  const OutputArguments output = {alpha, beta, user};
  result.for_each(at, [&](int i, int column, float(&sums)[NEIGHBOURS]) {
    const int row = row_of(at, i), element = slice + column;
    if (!rows.has(row)) return;
    const Index place = offset_in_dq(rows.line(row)) + element * Index(DQ_STRIDE_E);
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) sums[j] *= scale_of(scale);
    store_some_along<smaller<int>(DQ_RUN, NEIGHBOURS), DQ_STRIDE_E>(dq, place, DEPTH - element, sums, output);
  });
}

// Slices of the gradients of values; those of keys follow.
constexpr int VALUE_SLICES = WITH_DV ? (WIDTH + SLICE - 1) / SLICE : 0;

// The gradients of the values or keys of a block: elements of `target` from number `slice` on, of ELEMENTS.
template <bool OF_VALUES, const auto& STEP, int RUN, int ELEMENTS, class T, class OffsetOf>
__device__ __forceinline__ void add_queries(Memory& memory, const TDY* dy, const TQ* q, const TK* k, const TV* v,
                                            const float* lse, const TBIAS* bias, const TMASK* mask, const int* lengths,
                                            const float* row_products, float scale, const WeightDropout& drops,
                                            int slice, T* target, const OffsetOf& offset_of) {
  const int all_keys = KEYS, blocks = (all_keys + BLOCK_M - 1) / BLOCK_M;
  const AttentionLine first = line_of(static_cast<Index>(blockIdx.x), KEY_HEADS, blocks);
  const Index image = first.image;
  const int key_head = first.head, key = first.number * BLOCK_M, keys = keys_of(lengths, image);
  const Onlookers<BLOCK_M> onlookers(key, keys);
  const Position at;
  const float factor = scale_of(scale) * LOG2_E;
  const auto own_keys =
      lines_of<K_RUN>(k, K_STRIDE_E, keys - key, [&](int row) { return offset_in_k(image, key_head, key + row); });
  const auto own_values =
      lines_of<V_RUN>(v, V_STRIDE_E, keys - key, [&](int row) { return offset_in_v(image, key_head, key + row); });

  Sums<SLICE> result;
  for (int head = key_head * SHARED_BY; head < (key_head + 1) * SHARED_BY; ++head) {
#pragma unroll 1
    for (int number = onlookers.first; number < onlookers.end; number += BLOCK_N) {
      const int count = static_cast<int>(QUERIES) - number;
      const auto line = [&](int row) { return AttentionLine(image, head, number + row); };
      const auto queries = lines_of<Q_RUN>(q, Q_STRIDE_E, count, [&](int row) { return offset_in_q(line(row)); });
      const auto gradients = lines_of<DY_RUN>(dy, DY_STRIDE_E, count, [&](int row) { return offset_in_dy(line(row)); });
      __syncthreads();
      if constexpr (OF_VALUES) {
        bring(memory.lines, gradients, slice, ELEMENTS);
      } else {
        bring(memory.lines, queries, slice, ELEMENTS);
      }
      Scores scores, of_weights;
      clear(scores);
      clear(of_weights);
      add_products_of<DEPTH>(memory.chunks, own_keys, queries, at, scores);
      if constexpr (!OF_VALUES) add_products_of<WIDTH>(memory.chunks, own_values, gradients, at, of_weights);
      make_key_weights(
          line(0), at, key, keys, bias, mask, factor, drops,
          [&](int, const AttentionLine& query, bool is_there) { return is_there ? lse[offset_in_lse(query)] : 0.0f; },
          [&](int, const AttentionLine& query, bool is_there) {
            return !OF_VALUES && is_there ? row_products[number_of(query)] : 0.0f;
          },
          scores, of_weights);
      if constexpr (OF_VALUES) {
        add_weighted<TDY>(memory.chunks, scores, memory.lines, at, result);
      } else {
        add_weighted<TQ>(memory.chunks, of_weights, memory.lines, at, result);
      }
    }
  }

  result.for_each(at, [&](int i, int column, float(&sums)[NEIGHBOURS]) {
    const AttentionLine line(image, key_head, key + row_of(at, i));
    if (line.number >= all_keys) return;
      // No query sees keys behind the image's length; 0 times what is not finite would be NaN.
#pragma unroll
    for (int j = 0; j < NEIGHBOURS; ++j) {
      sums[j] = line.number < keys ? sums[j] * (OF_VALUES ? 1.0f : scale_of(scale)) : 0.0f;
    }
    const int element = slice + column;
    store_some_neighbours<smaller<int>(RUN, NEIGHBOURS), STEP>(target + offset_of(line) + element * Index(STEP),
                                                               ELEMENTS - element, sums);
  });
}

extern "C" __global__ void __launch_bounds__(THREADS)
    attention_backward_wide_keys(const TDY* dy, const TQ* q, const TK* k, const TV* v, const TY* y, const float* lse,
                                 const TBIAS* bias, const TMASK* mask, const int* lengths, TDQ* dq, TDK* dk, TDV* dv,
                                 TDBIAS* dbias, float* row_products, float scale, float dropout,
                                 unsigned long long seed, unsigned long long offset, float alpha, float beta,
                                 UserArguments user, long long n) {
  Memory& memory = block_memory<Memory>();
  const WeightDropout drops = {dropout, seed, offset};
  const int number = static_cast<int>(blockIdx.z);
  if (number < VALUE_SLICES) {
    if constexpr (WITH_DV) {
      add_queries<true, DV_STRIDE_E, DV_RUN, WIDTH>(memory, dy, q, k, v, lse, bias, mask, lengths, row_products, scale,
                                                    drops, number * SLICE, dv, offset_in_dv);
    }
  } else if constexpr (WITH_DK) {
    add_queries<false, DK_STRIDE_E, DK_RUN, DEPTH>(memory, dy, q, k, v, lse, bias, mask, lengths, row_products, scale,
                                                   drops, (number - VALUE_SLICES) * SLICE, dk, offset_in_dk);
  }
}
