// The tiling of contractions on tensor cores: the parameters of lib/tensor_tile.cuh, their rules, and what they cost.
// Operands reach shared memory in one of two ways: copied as they are, asynchronously (lib/copy_pipeline.cuh), or
// through registers, from any layout (lib/register_pipeline.cuh).
#pragma once

#include <array>
#include <optional>
#include <string>

#include "contraction/block_estimate.h"
#include "contraction/contractions.h"
#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// How operands reach shared memory.
enum class Bring { copied, staged };

/// One point of the space: BLOCK_M rows x BLOCK_N columns x a chunk of BLOCK_K of the depth for a block, WARP_M x
/// WARP_N sums for a warp, STAGES chunks in shared memory; TILES such tiles of rows for a block, one after the other. A
/// chunk is 64 or 128 bytes long.
struct TensorTiling {
  int block_m, block_n, block_k;
  int warp_m, warp_n;
  int stages;
  int tiles = 1;

  int warps() const { return block_m / warp_m * (block_n / warp_n); }
  int threads() const { return 32 * warps(); }
  /// Rows of a block.
  int rows() const { return block_m * tiles; }
  /// Shared memory of the sums alone.
  int exchange_bytes() const;
};

/// The type of the tiles in shared memory, or one as long: that of the operands, or of the wider one. fp8 is f16 there
/// if an operand does not run along the depth, because ldmatrix turns no elements of 8 bits; so is fp8 beside integers.
DType tensor_factor(const Contraction& contraction);
/// Bytes of its elements.
int tensor_element_bytes(const Contraction& contraction);

/// Whether mma.sync multiplies fp8 by fp8 there. Elsewhere fragments of fp8 become those of f16.
bool tensor_cores_take_fp8(const Arch& arch);

/// The constants that lib/tensor_tile.cuh needs to know what is multiplied, and how it is added.
void add_tensor_factor(Prelude& prelude, DType factor, const Arithmetic& arithmetic, bool f16_sums = false);

/// Shared memory of a block. Sums on their way to memory take the place of the stages. With several tiles, which are on
/// their way meanwhile, sums have their own, stages hold a alone, and all of b is there. The most that a part takes.
int64_t shared_bytes(const TensorTiling& tiling, const Contraction& contraction);
unsigned shared_bytes(const TensorTiling& tiling, const Contractions& parts);

/// Elements that one access moves: of a, of b, and of c.
struct TensorAccess {
  int a_run, b_run, c_run;
};
TensorAccess tensor_access(const Contraction& contraction, Bring bring);

/// Words for the order in which tensor cores add the depth.
std::string order_on_tensor_cores(const TensorTiling& tiling, const Contraction& contraction, Bring bring);

/// Why tensor cores cannot multiply factors of these types, of 16 or 32 bits; nothing if they can.
std::optional<std::string> tensor_type_refusal(DType a, DType b, const Arithmetic& arithmetic, const Target& target);
/// Why tensor cores cannot multiply the operands of a contraction that are brought so; nothing if they can.
std::optional<std::string> tensor_refusal(const Contraction& contraction, const OperandNames& names, Bring bring,
                                          const Target& target);
/// Why copies of a cannot tell which taps are inside; nothing if they can, or do not ask.
std::optional<std::string> tap_refusal(const Contraction& contraction, Bring bring);
std::optional<std::string> tensor_refusal(const Contractions& parts, Bring bring, const Target& target,
                                          ContractionRefusal refusal);

/// 32-bit registers that a thread will need, roughly.
int tensor_registers(const TensorTiling& tiling, const Contraction& contraction, Bring bring, const Arch& arch);

/// Blocks that an SM should hold: a bound on registers for the compiler.
int tensor_min_blocks(const TensorTiling& tiling, const Contractions& parts, Bring bring, const Arch& arch);

/// Figures of a kernel that copies b alone as lib/copied_filters.cuh does: shared memory of a block, and elements that
/// one access of c moves.
struct OwnTiles {
  int64_t shared_bytes;
  int c_run;
};

/// The constants that lib/tensor_tile.cuh and lib/conv_tile.cuh need besides those of the problem, for a kernel with
/// `blocks` an SM.
void add_tensor_tiling(Prelude& prelude, const TensorTiling& tiling, const Contraction& contraction, Bring bring,
                       int blocks, std::optional<OwnTiles> own = std::nullopt);

// Rules: what their names in add_tensor_space() say.
bool tensor_warps_tile_the_block(const TensorTiling& tiling);
bool tensor_chunk_has_steps(const TensorTiling& tiling, const Contraction& contraction);
bool tensor_threads_tile_the_loads(const TensorTiling& tiling, const Contraction& contraction, Bring bring);
bool tensor_chunk_suits_the_depth(const TensorTiling& tiling, const Contraction& contraction);
bool tensor_tile_suits_the_problem(const TensorTiling& tiling, const Contraction& contraction);
bool tensor_tiles_follow(const TensorTiling& tiling, const Contraction& contraction);
bool tensor_tiles_fit(const TensorTiling& tiling, const Contraction& contraction, const Target& target);
bool tensor_registers_suffice(const TensorTiling& tiling, const Contraction& contraction, Bring bring,
                              const Target& target);

/// For opens(): few tiles from small to large, of chunks of 64 bytes.
bool is_open_tiling(const TensorTiling& tiling, const Contraction& contraction, Bring bring);

/// Declares the parameters and rules of TensorTiling, which `Parameters` derives from, for a Problem of which
/// contractions_of() gives the contractions.
template <class Parameters, class Problem>
Describe<Parameters, Problem>&& add_tensor_space(Describe<Parameters, Problem>&& description, Bring bring) {
  const std::vector<int64_t> stages =
      bring == Bring::copied ? std::vector<int64_t>{4, 3, 2, 6} : std::vector<int64_t>{2, 1};
  return std::move(description)
      .param("BLOCK_M", &Parameters::block_m, {128, 64, 32, 256})
      .param("BLOCK_N", &Parameters::block_n, {128, 64, 32, 256})
      .param("BLOCK_K", &Parameters::block_k, {16, 32, 64, 128})
      .param("WARP_M", &Parameters::warp_m, {64, 32, 16})
      .param("WARP_N", &Parameters::warp_n, {64, 32, 16})
      .param("STAGES", &Parameters::stages, stages)
      .rule("warps tile the block",
            [](const Parameters& tiling, const Problem&, const Target&) { return tensor_warps_tile_the_block(tiling); })
      .rule("a chunk is two or four steps long",
            for_main([](const TensorTiling& tiling, const Contraction& contraction, const Target&) {
              return tensor_chunk_has_steps(tiling, contraction);
            }))
      .pruning("BLOCK_K suits the depth",
               for_main([](const TensorTiling& tiling, const Contraction& contraction, const Target&) {
                 return tensor_chunk_suits_the_depth(tiling, contraction);
               }))
      .pruning("the tile suits the problem",
               for_main([](const TensorTiling& tiling, const Contraction& contraction, const Target&) {
                 return tensor_tile_suits_the_problem(tiling, contraction);
               }))
      .rule("threads tile the loads",
            for_all([bring](const TensorTiling& tiling, const Contraction& contraction, const Target&) {
              return tensor_threads_tile_the_loads(tiling, contraction, bring);
            }))
      .rule("tiles fit into shared memory", for_all(tensor_tiles_fit))
      .rule("registers suffice",
            for_all([bring](const TensorTiling& tiling, const Contraction& contraction, const Target& target) {
              return tensor_registers_suffice(tiling, contraction, bring, target);
            }))
      .rule("the grid fits", [](const Parameters& tiling, const Problem& problem, const Target&) {
        const Contractions& parts = contractions_of(problem);
        return !parts.refusal && grid_fits(tile_grid(tiling.rows(), tiling.block_n, parts), parts);
      });
}

}  // namespace kiln::descriptor
