// The tiling of contractions on f32 lanes: the parameters of lib/gemm_tile.cuh and lib/conv_tile.cuh, their rules, and
// what they cost.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "contraction/block_estimate.h"
#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// One point of the space: BLOCK_M rows x BLOCK_N columns x a chunk of BLOCK_K of the depth for a block, THREAD_M x
/// THREAD_N sums for a thread, STAGES tiles in shared memory, SLICES sets of threads that share BLOCK_K.
struct SimtTiling {
  int block_m, block_n, block_k;
  int thread_m, thread_n;
  int stages;
  int slices;

  int threads() const { return block_m / thread_m * (block_n / thread_n) * slices; }
  int warps() const { return threads() / 32; }
  /// The most shared memory that a block takes: that of tiles with the padding of both operands.
  int most_shared_bytes() const { return shared_bytes(8); }
  /// Shared memory of a block whose rows of both tiles have `padding` elements together: sums on their way between
  /// slices take the place of the tiles.
  int shared_bytes(int padding) const {
    const int tiles = stages * block_k * (block_m + block_n + padding) * 4;
    return slices == 1 ? tiles : std::max(tiles, block_m * block_n * 4);
  }
};

/// Elements that one access moves: of a (1 where it is gathered), of b, and of c.
struct SimtAccess {
  int a_run, b_run, c_run;
};
SimtAccess simt_access(const SimtTiling& tiling, const Contraction& contraction);

/// Bytes of shared memory of a block; the most that a part takes.
int shared_bytes(const SimtTiling& tiling, const Contraction& contraction);
unsigned shared_bytes(const SimtTiling& tiling, const Contractions& parts);

/// Lanes of a warp side by side along m: 8 where c runs along the rows, 4 where it runs along the columns; something
/// else where that does not tile the block; 0 if nothing does.
int lanes_m(const SimtTiling& tiling, Along c);

/// Registers for sums, rows of operands on their way, addresses and counters.
int sum_registers(const SimtTiling& tiling);

/// 32-bit registers that a thread will need, roughly.
int simt_registers(const SimtTiling& tiling, const Contraction& contraction);

/// Blocks that an SM should hold: a bound on registers for the compiler, which would take more than helps.
int min_blocks(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch);
int min_blocks(const SimtTiling& tiling, const Contractions& parts, const Arch& arch);

/// The constants that lib/conv_tile.cuh needs besides those of the problem, for a kernel with `blocks` an SM.
void add_simt_tiling(Prelude& prelude, const SimtTiling& tiling, const Contraction& contraction, int blocks);

/// The work of one block that multiplies `chunks` chunks.
BlockWork simt_block_work(const SimtTiling& tiling, const Contraction& contraction, const Arch& arch, double chunks);

/// Bytes of b that L2 does not keep for the blocks that need what others left of a sector.
double reread_bytes(const Contraction& contraction, const DeviceFigures& device);

// Rules: what their names in add_simt_space() say.
bool warps_tile_the_block(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool threads_tile_the_loads(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool block_k_suits_the_depth(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool tile_suits_the_problem(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool tiles_fit_shared_memory(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool registers_suffice(const SimtTiling& tiling, const Contraction& contraction, const Target& target);
bool slices_are_worthwhile(const SimtTiling& tiling, const Contraction& contraction, const Target& target);

/// For opens(): few tiles from small to large.
bool is_open_tiling(const SimtTiling& tiling, const Contraction& contraction);

/// Declares the parameters and rules of SimtTiling, which `Parameters` derives from, for a Problem of which
/// contractions_of() gives the contractions.
template <class Parameters, class Problem>
Describe<Parameters, Problem>&& add_simt_space(Describe<Parameters, Problem>&& description) {
  return std::move(description)
      .param("BLOCK_M", &Parameters::block_m, {64, 32, 128, 256})
      .param("BLOCK_N", &Parameters::block_n, {64, 32, 128})
      .param("BLOCK_K", &Parameters::block_k, {16, 18, 8, 32, 9, 27, 36, 25, 49})
      .param("THREAD_M", &Parameters::thread_m, {8, 4})
      .param("THREAD_N", &Parameters::thread_n, {4, 8})
      .param("STAGES", &Parameters::stages, {2, 1})
      .param("SLICES", &Parameters::slices, {1, 2, 4, 8})
      .rule("warps tile the block", for_main(warps_tile_the_block))
      .pruning("BLOCK_K suits the filter", for_main(block_k_suits_the_depth))
      .pruning("the tile suits the problem", for_main(tile_suits_the_problem))
      .rule("threads tile the loads", for_all(threads_tile_the_loads))
      .rule("tiles fit into shared memory", for_main(tiles_fit_shared_memory))
      .rule("registers suffice", for_all(registers_suffice))
      .rule("slices have rows, and a small grid", for_main(slices_are_worthwhile))
      .rule("the grid fits", [](const Parameters& tiling, const Problem& problem, const Target&) {
        const Contractions& parts = contractions_of(problem);
        return !parts.refusal && grid_fits(tile_grid(tiling.block_m, tiling.block_n, parts), parts);
      });
}

}  // namespace kiln::descriptor
