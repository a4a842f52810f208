// The tile parameters of the matrix-product convolutions: lib/gemm_tile.cuh and lib/conv_tile.cuh seen from their
// descriptors.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "conv/conv_estimate.h"
#include "conv/conv_parts.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// One point of the space: BLOCK_M pixels x BLOCK_N channels x BLOCK_K filter elements a block, THREAD_M x THREAD_N
/// sums a thread, STAGES tiles in shared memory, SLICES sets of threads that share BLOCK_K.
struct GemmTiling {
  int block_m, block_n, block_k;
  int thread_m, thread_n;
  int stages;
  int slices;

  int threads() const { return block_m / thread_m * (block_n / thread_n) * slices; }
  int warps() const { return threads() / 32; }
  /// Tiles, with the padding of both operands at its most; sums on their way between slices take their place.
  int shared_bytes() const {
    const int tiles = stages * block_k * (block_m + block_n + 8) * 4;
    return slices == 1 ? tiles : std::max(tiles, block_m * block_n * 4);
  }
};

/// Elements that one access moves: of x (1 where it is gathered), of w, and of y.
struct GemmAccess {
  int x_run, w_run, y_run;
};
GemmAccess gemm_access(const GemmTiling& tiling, const ConvProblem& conv);

/// Lanes of a warp side by side along m: 8 where stores run along the pixels, 4 where they run along the channels;
/// something else where that does not tile the block; 0 if nothing does.
int lanes_m(const GemmTiling& tiling, bool y_along_k);

/// 32-bit registers that a thread will need, roughly.
int gemm_registers(const GemmTiling& tiling, const ConvProblem& conv);

/// Blocks that an SM should hold: a bound on registers for the compiler, which would take more than helps.
int min_blocks(const GemmTiling& tiling, const ConvProblem& conv, const Arch& arch);
int min_blocks(const GemmTiling& tiling, const ConvParts& parts, const Arch& arch);

/// Chunks of BLOCK_K that the filter is cut into.
int64_t gemm_chunks(const GemmTiling& tiling, const ConvProblem& conv);

/// Tiles of BLOCK_N channels, over all groups; tiles of BLOCK_M pixels at the request's batch, over all regions, or
/// segments, that have blocks of their own; blocks that make a tile of each for every product of a batch.
int64_t channel_tiles(const GemmTiling& tiling, const ConvProblem& conv);
int64_t pixel_tiles(const GemmTiling& tiling, const ConvProblem& conv);
int64_t gemm_blocks(const GemmTiling& tiling, const ConvProblem& conv);
/// The grid of those blocks, of all parts.
std::array<Count, 3> gemm_grid(const GemmTiling& tiling, const ConvParts& parts);

/// The constants that lib/conv_tile.cuh needs besides those of the problem, for a kernel with `blocks` an SM.
void add_gemm_tiling(Prelude& prelude, const GemmTiling& tiling, const ConvProblem& conv, int blocks);

/// The work of one block that multiplies `chunks` chunks.
BlockWork gemm_block_work(const GemmTiling& tiling, const ConvProblem& conv, const Arch& arch, double chunks);

// Rules: what their names in add_gemm_space() say.
bool warps_tile_the_block(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool threads_tile_the_loads(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool block_k_suits_the_filter(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool tile_suits_the_problem(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool tiles_fit_shared_memory(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool registers_suffice(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);
bool slices_are_worthwhile(const GemmTiling& tiling, const ConvProblem& conv, const Target& target);

/// Declares the parameters and rules of GemmTiling, which `Parameters` derives from, for the problem `Parts`, which
/// derives from ConvParts.
template <class Parameters, class Parts>
Describe<Parameters, Parts>&& add_gemm_space(Describe<Parameters, Parts>&& description) {
  return std::move(description)
      .param("BLOCK_M", &Parameters::block_m, {64, 32, 128, 256})
      .param("BLOCK_N", &Parameters::block_n, {64, 32, 128})
      .param("BLOCK_K", &Parameters::block_k, {16, 18, 8, 32, 9, 27, 36, 25, 49})
      .param("THREAD_M", &Parameters::thread_m, {8, 4})
      .param("THREAD_N", &Parameters::thread_n, {4, 8})
      .param("STAGES", &Parameters::stages, {2, 1})
      .param("SLICES", &Parameters::slices, {1, 2, 4, 8})
      .rule("warps tile the block", for_main(warps_tile_the_block))
      .rule("BLOCK_K suits the filter", for_main(block_k_suits_the_filter))
      .rule("the tile suits the problem", for_main(tile_suits_the_problem))
      .rule("threads tile the loads", for_all(threads_tile_the_loads))
      .rule("tiles fit into shared memory", for_main(tiles_fit_shared_memory))
      .rule("registers suffice", for_all(registers_suffice))
      .rule("slices have rows, and a small grid", for_main(slices_are_worthwhile))
      .rule("the grid fits", [](const Parameters& tiling, const Parts& parts, const Target&) {
        return !parts.refusal && grid_fits(gemm_grid(tiling, parts), parts);
      });
}

/// Where the template of algorithm `name` is: in the folder gemm or conv.
std::string gemm_template(const std::string& name);

/// The convolution, gradient or matrix product `name` of gemm_template(): one launch of a kernel of that name, whose
/// blocks each multiply all chunks.
Algorithm gemm_convolution(const std::string& name, const std::string& operation,
                           std::optional<std::string> (*refusal)(const ConvProblem&));

/// For gemm_convolution(): every convolution is served.
std::optional<std::string> no_refusal(const ConvProblem& conv);

}  // namespace kiln::descriptor
