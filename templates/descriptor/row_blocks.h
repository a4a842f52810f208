// Kernels of lib/row_blocks.cuh: their parameters, the rules of these, constants and grids.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "descriptor/rows.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Parameters that all of these kernels have.
struct RowBlocks {
  int across;  ///< whether threads take rows side by side, not neighbours of one
  int lanes;   ///< threads that share a row
  int vector;  ///< neighbours that a thread takes together
  int threads;
  int splits;  ///< blocks that share a row
};

RowLayout layout_of(const RowBlocks& blocks, const Rows& rows);
/// Rows of a block.
int64_t columns(const RowBlocks& blocks);
/// Times that a thread takes elements.
int64_t steps(const RowBlocks& blocks, const Rows& rows);
/// Blocks for all rows, for each of the splits.
int64_t row_block_count(const RowBlocks& blocks, const Rows& rows);

/// Why these kernels are not for rows at all.
std::optional<std::string> refuse_row_blocks(const Rows& rows, const Target&);

/// Rules, which with_row_blocks() declares.
bool direction_suits(const RowBlocks& blocks, const Rows& rows, const Target&);
bool vectors_divide(const RowBlocks& blocks, const Rows& rows, const Target&);
bool vectors_suit(const RowBlocks& blocks, const Rows& rows, const Target&);
bool lanes_fill_warps(const RowBlocks& blocks, const Rows& rows, const Target&);
bool threads_have_work(const RowBlocks& blocks, const Rows& rows, const Target&);
bool splitting_pays(const RowBlocks& blocks, const Rows& rows, const Target&);

/// The order of sums: nothing where blocks share a row, for few rows alone.
std::optional<std::string> order_of_sums(std::string_view algorithm, const RowBlocks& blocks);

/// The parameters and rules of RowBlocks but the first parameter.
template <class Shape, class View>
Describe<Shape, View>&& with_other_row_blocks(Describe<Shape, View>&& algorithm) {
  return std::move(algorithm)
      .param("LANES", &Shape::lanes, {32, 256, 8, 1, 4, 16, 128, 2})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {256, 128})
      .param("SPLITS", &Shape::splits, {1, 4, 16, 64, 256})
      .rule("ACROSS suits how rows lie", direction_suits)
      .rule("VECTOR divides the row, or rows side by side", vectors_divide)
      .pruning_open_too("alignment makes VECTOR pay", vectors_suit)
      .rule("a row has lanes of a warp or all of a block, rows side by side fill sectors", lanes_fill_warps)
      .pruning("at least half of the threads have work", threads_have_work)
      .pruning("parts of rows are worth more blocks and kernels", splitting_pays);
}

/// Declares the parameters of RowBlocks, which Shape is or has as its base, and their rules.
template <class Shape, class View>
Describe<Shape, View>&& with_row_blocks(Describe<Shape, View>&& algorithm) {
  return with_other_row_blocks(std::move(algorithm).param("ACROSS", &Shape::across, {0, 1}));
}
/// The same of kernels that may keep a row in registers between two passes: `keep` says so.
template <class Shape, class View>
Describe<Shape, View>&& with_row_blocks(Describe<Shape, View>&& algorithm, int Shape::*keep) {
  return with_other_row_blocks(
      std::move(algorithm).param("ACROSS", &Shape::across, {0, 1}).param("KEEP", keep, {1, 0}));
}

/// Whether what `words` floats a row make of shared memory is there.
bool sums_fit(const RowBlocks& blocks, const Target& target, int words);

/// For opens(): the shapes that open kernels have, whatever else may keep them.
bool has_open_row_blocks(const RowBlocks& blocks);
/// The same of kernels that may keep a row in registers, for at most `most` times that a thread takes elements.
bool has_open_row_blocks(const RowBlocks& blocks, const Rows& rows, bool keep, int64_t most);

/// rows_prelude() and all else that lib/row_blocks.cuh asks for.
Prelude row_blocks_prelude(const RowBlocks& blocks, const Rows& rows, const Emitter& emit);

/// One launch of `entry` by the blocks of `rows`, or for `lanes` threads a row. The arguments are the caller's to set.
Launch row_blocks_launch(const RowBlocks& blocks, const Rows& rows, std::string entry);
Launch merge_launch(const RowBlocks& blocks, const Rows& rows, std::string entry);

/// Bytes of workspace for the parts of sums of `words` floats; none without splits.
int64_t part_bytes(const RowBlocks& blocks, const Rows& rows, int words);

/// Work that row_blocks_estimate() asks for, of all launches together.
struct RowWork {
  double dram_bytes = 0;     ///< All that has to move.
  double passes = 1;         ///< Times that elements are taken.
  double instructions = 10;  ///< For each element and pass.
  double registers = 32;
  double shared_words = 1;  ///< Floats that a sum has.
  int launches = 1;
};

Estimate row_blocks_estimate(const RowBlocks& blocks, const Rows& rows, const Target& target,
                             const DeviceFigures& device, const RowWork& work);

}  // namespace kiln::descriptor
