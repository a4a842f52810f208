// Parts that descriptors of attention on the lanes of a block share: lib/attention_block.cuh.
#pragma once

#include "attention/layer.h"
#include "contraction/block_estimate.h"

namespace kiln::descriptor {

struct AttentionBlockShape {
  int block_m;  // rows of scores
  int block_n;  // columns
};

constexpr int64_t threads_of(const AttentionBlockShape& shape) {
  return int64_t{shape.block_m} / 4 * (shape.block_n / 4);
}

/// Bytes of a tile of so many rows and columns in shared memory.
int64_t float_tile_bytes(int64_t rows, int64_t columns);
/// Registers of a thread for sums of its rows, of `columns` elements each.
int64_t row_sums(const AttentionBlockShape& shape, int64_t columns);

/// Constants of the template: blocks, threads, and `memory_bytes` of shared memory.
void add_attention_block(Prelude& prelude, const AttentionBlockShape& shape, const AttentionLayer& layer,
                         int64_t memory_bytes);
/// Whether a block of half as many rows or columns would have idle threads too.
bool attention_block_has_work(const AttentionBlockShape& shape, int64_t rows, int64_t columns);
/// Multiply-adds of a pair of a query and a key.
struct AttentionProducts {
  double of_scores;    ///< Between rows.
  double weighted;     ///< Between weights and rows.
  double loaded;       ///< Elements of a column that a block loads.
  int64_t registers;   ///< For sums.
  double repeats = 1;  ///< Blocks that compute each score.
  double waits = 1;    ///< Times that a block waits for what a tile of scores is computed from.
};
/// The work of `blocks` blocks.
GridWork attention_block_work(const AttentionBlockShape& shape, const AttentionLayer& layer, double blocks,
                              const AttentionProducts& products, int64_t memory_bytes);

}  // namespace kiln::descriptor
