// Kernels of lib/row_blocks.cuh: their parameters, the rules of these, constants and grids.
#pragma once

#include <cstdint>
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

/// Rules.
bool direction_suits(const RowBlocks& blocks, const Rows& rows, const Target&);
bool vectors_suit(const RowBlocks& blocks, const Rows& rows, const Target&);
bool lanes_fill_warps(const RowBlocks& blocks, const Rows& rows, const Target&);
bool threads_have_work(const RowBlocks& blocks, const Rows& rows, const Target&);
bool splitting_pays(const RowBlocks& blocks, const Rows& rows, const Target&);
/// Whether what `words` floats a row make of shared memory is there.
bool sums_fit(const RowBlocks& blocks, const Target& target, int words);

/// rows_prelude() and all else that lib/row_blocks.cuh asks for.
Prelude row_blocks_prelude(const RowBlocks& blocks, const Rows& rows);

/// One launch of `entry` by the blocks of `rows`, or for `lanes` threads a row. The arguments are the caller's to set.
Launch row_blocks_launch(const RowBlocks& blocks, const Rows& rows, std::string entry);
Launch merge_launch(const RowBlocks& blocks, const Rows& rows, std::string entry);

/// Bytes of workspace for the parts of sums of `words` floats; none without splits.
int64_t part_bytes(const RowBlocks& blocks, const Rows& rows, int words);

/// What row_blocks_estimate() asks for, of all launches together.
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
