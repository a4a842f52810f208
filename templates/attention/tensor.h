// Parts that descriptors of attention on tensor cores share: lib/attention_tensor.cuh.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "attention/layer.h"
#include "contraction/tensor_estimate.h"

namespace kiln::descriptor {

struct AttentionTensorShape {
  int warps;    // of a block
  int rows;     // of scores, of a warp
  int block_n;  // columns
  int keep;     // whether a warp's own rows stay in registers

  int64_t block_m() const { return int64_t{warps} * rows; }
  int threads() const { return warps * 32; }
};

/// Fragments of 16 elements.
int64_t fragments_of(int64_t elements);
/// Bytes of a tile of so many rows in shared memory.
int64_t half_tile_bytes(int64_t rows, int64_t elements);

/// Why tensor cores do not take the layer: each of `factors` has to have elements of f16 or bf16 side by side, those of
/// each two that follow each other the same type.
std::optional<std::string> refuse_on_tensor_cores(const AttentionLayer& layer, const Target& target,
                                                  std::initializer_list<std::string_view> factors);

/// Constants of the template: blocks, `memory_bytes` of shared memory, and what one access moves of each operand: of
/// `factors` up to 8 elements, of others up to 2.
void add_attention_tensor(Prelude& prelude, const AttentionTensorShape& shape, const AttentionLayer& layer,
                          std::initializer_list<std::string_view> factors, int64_t memory_bytes);

/// Whether half as many rows or columns would be too few for the layer.
bool attention_tensor_has_work(const AttentionTensorShape& shape, int64_t rows, int64_t columns);

/// Cost of a pair of a query and a key.
struct AttentionTensorWork {
  double of_scores;     ///< Multiply-adds between rows.
  double weighted;      ///< Between weights and rows.
  double loaded;        ///< Elements of a column that a block loads.
  double instructions;  ///< Instructions on lanes.
  int64_t registers;    ///< Registers of a thread.
  int64_t memory_bytes;
  double repeats = 1;  ///< Blocks that compute each score.
  double waits = 1;    ///< Times that a block waits for what a tile of scores is computed from.
};
/// Predicted time of a launch of so many blocks.
Estimate attention_tensor_estimate(const AttentionTensorShape& shape, const AttentionLayer& layer, double blocks,
                                   const AttentionTensorWork& cost, const Target& target, const DeviceFigures& device);

}  // namespace kiln::descriptor
