#include "conv/winograd/winograd_fused.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "contraction/block_estimate.h"
#include "conv/winograd/winograd.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace fused_winograd_convolution_descriptor {
namespace {

// One point of the space: BLOCK_TILES tiles x BLOCK_N channels of y a block, BLOCK_C channels of x a chunk,
// WARP_POSITIONS positions a warp.
struct FusedTiling {
  int block_tiles, block_n, block_c, warp_positions;

  int threads(const Winograd& winograd) const { return static_cast<int>(winograd.positions()) / warp_positions * 32; }
  int lanes_m() const { return block_tiles >= 32 ? 8 : 4; }
  int thread_m() const { return block_tiles / lanes_m(); }
  int thread_n() const { return block_n * lanes_m() / 32; }
  int sums() const { return warp_positions * thread_m() * thread_n(); }
};

FilterBlock filter_block(const FusedTiling& tiling, const Winograd& winograd) {
  return {ceil_div(winograd.conv().c_per_group(), tiling.block_c) * tiling.block_c,
          ceil_div(winograd.conv().k_per_group(), tiling.block_n) * tiling.block_n, false};
}

// Shared memory of a block: a chunk, with its padding at the most; sums on their way take its place.
int64_t shared_bytes(const FusedTiling& tiling, const Winograd& winograd) {
  const int64_t chunk = int64_t{tiling.block_c} * (tiling.block_tiles + 4 + tiling.block_n);
  const int64_t pass =
      std::max(int64_t{tiling.lanes_m()} * (tiling.block_n + 4), int64_t{32 / tiling.lanes_m()} * tiling.block_tiles);
  return winograd.positions() * std::max(chunk, pass) * 4;
}

// Patches of a chunk that a thread transforms, one after the other.
int patches(const FusedTiling& tiling, const Winograd& winograd) {
  return static_cast<int>(ceil_div(int64_t{tiling.block_tiles} * tiling.block_c, tiling.threads(winograd)));
}

// 32-bit registers that a thread needs: sums, a patch, operands, where patches are, addresses. Told from what ptxas
// makes of every point of the space for sm_90; with so many it spills nothing.
int registers(const FusedTiling& tiling, const Winograd& winograd) {
  const int addresses = 18 + tiling.block_c * 3 / 2 + 12 * (patches(tiling, winograd) - 1);
  return tiling.sums() + static_cast<int>(winograd.positions()) + tiling.thread_m() + tiling.thread_n() + addresses;
}

int min_blocks(const FusedTiling& tiling, const Winograd& winograd, const Arch& arch) {
  const int threads = tiling.threads(winograd);
  int blocks = std::clamp(arch.threads_per_sm / threads, 1, arch.blocks_per_sm);
  while (blocks > 1 && registers_with(blocks * threads / 32, arch) < registers(tiling, winograd)) --blocks;
  return blocks;
}

int64_t channel_blocks(const FusedTiling& tiling, const Winograd& winograd) {
  return winograd.conv().groups * ceil_div(winograd.conv().k_per_group(), tiling.block_n);
}

int64_t tile_blocks(const FusedTiling& tiling, const Winograd& winograd) {
  return ceil_div(winograd.conv().n() * winograd.tiles_per_image(), tiling.block_tiles);
}

Program program(const std::string& name, const FusedTiling& tiling, const Winograd& winograd, const Target& target,
                const Emitter& emit) {
  const FilterBlock filters = filter_block(tiling, winograd);
  Prelude prelude = winograd_prelude(winograd, filters, false);
  prelude.constant("BLOCK_TILES", tiling.block_tiles).constant("BLOCK_N", tiling.block_n);
  prelude.constant("BLOCK_C", tiling.block_c).constant("WARP_POSITIONS", tiling.warp_positions);
  prelude.constant("LANES_M", tiling.lanes_m()).constant("MIN_BLOCKS", min_blocks(tiling, winograd, target.arch));

  Launch launch =
      contraction_launch(name, tiling.threads(winograd),
                         {OperandArgument{"a"}, WorkspaceArgument{0, filters.bytes(winograd)}, OperandArgument{"c"}});
  launch.grid[0] = blocks_for(winograd.contraction, winograd.tiles_per_image(), tiling.block_tiles);
  launch.grid[1] = Count{channel_blocks(tiling, winograd)};

  Program own;
  own.sources = {emit.source(std::move(prelude))};
  own.steps = {filters_launch(name + "_filters", winograd, filters), launch};
  own.preparation = {.steps = 1, .bytes = filters.bytes(winograd)};
  return with_names(winograd.operands, std::move(own));
}

Estimate predict(const FusedTiling& tiling, const Winograd& winograd, const Target& target,
                 const DeviceFigures& device) {
  const ConvolutionAddresses& conv = winograd.conv();
  const double positions = static_cast<double>(winograd.positions()), warps = tiling.threads(winograd) / 32.0;
  const double chunks = static_cast<double>(ceil_div(conv.c_per_group(), tiling.block_c));
  const double loads = tiling.block_c * tiling.block_tiles / 32.0;  // of patches, a chunk, in warps
  const double filters = tiling.block_c * tiling.block_n * positions / 4 / 32;
  const double sums = tiling.sums(), quads = tiling.warp_positions * (tiling.thread_m() + tiling.thread_n()) / 4.0;
  // Results: each position of each tile is stored and loaded once; a transform takes some six instructions a position.
  const double results = tiling.block_tiles * tiling.block_n / 32.0 * positions;

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(channel_blocks(tiling, winograd) * tile_blocks(tiling, winograd));
  block.threads = tiling.threads(winograd);
  block.registers = registers(tiling, winograd);
  block.shared_bytes = static_cast<double>(shared_bytes(tiling, winograd));
  block.fma = chunks * warps * tiling.block_c * sums;
  block.instructions = block.fma +
                       chunks * (warps * (tiling.block_c * quads + 40) + loads * positions * 9 + filters * 5) +
                       results * 8 + warps * 100;
  block.shared_wavefronts =
      chunks * (warps * tiling.block_c * quads * 4 + loads * positions + filters * 4) + results * 2;
  const double x_bytes = loads * 32 * positions * size_of(conv.x.dtype), w_bytes = filters * 32 * 16;
  block.global_sectors = chunks * (x_bytes * (conv.channels_inner ? 1 : 2) + w_bytes) / 32;
  // Neighbouring patches share their borders, which L1 still holds.
  block.l2_bytes = chunks * (x_bytes / 2 + w_bytes);
  block.code_instructions = 600 + tiling.block_c * (sums + quads) + 30 * positions;
  // Nothing is on its way while a chunk is multiplied.
  block.stall_clocks = chunks * (900 + positions * 12);
  block.latency_clocks = 2000 + block.stall_clocks + chunks * tiling.block_c * (sums * 1.25 + quads * 6) + 1500;
  work.dram_bytes = compulsory_bytes(winograd.contraction);
  if (!winograd.prepared) work.extra_dram_bytes = static_cast<double>(filter_block(tiling, winograd).bytes(winograd));
  work.launches = winograd.prepared ? 1 : 2;
  return grid_estimate(work, target.arch, device);
}

bool registers_suffice(const FusedTiling& tiling, const Winograd& winograd, const Target& target) {
  return registers(tiling, winograd) <= registers_with(tiling.threads(winograd) / 32, target.arch);
}

// Blocks that are mostly empty, and threads with many patches; the smallest that lanes tile are never refused.
bool block_suits_the_problem(const FusedTiling& tiling, const Winograd& winograd, const Target&) {
  const ConvolutionAddresses& conv = winograd.conv();
  return (tiling.block_tiles <= 32 || tiling.block_tiles < 2 * conv.n() * winograd.tiles_per_image()) &&
         (tiling.block_n == 16 || tiling.block_n < 2 * conv.k_per_group()) &&
         (tiling.block_c <= 4 || tiling.block_c < 2 * conv.c_per_group()) && patches(tiling, winograd) <= 2;
}

// A rule on what no refusal stands against.
template <class Holds>
auto if_served(Holds holds) {
  return [holds](const FusedTiling& tiling, const Winograd& winograd, const Target& target) {
    return !winograd.refusal && holds(tiling, winograd, target);
  };
}

}  // namespace
}  // namespace fused_winograd_convolution_descriptor

Algorithm fused_winograd_convolution(const std::string& template_path, const std::string& operation, int tile,
                                     ContractionMaker make) {
  using namespace fused_winograd_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  const auto problem = [make, tile](const Request& request) { return Winograd::of(request, make, tile); };
  // 36 positions leave a block registers and shared memory for fewer channels.
  const bool large = tile == 4;
  return describe<FusedTiling>(name, operation, template_path, problem)
      .takes_prologue()
      .applies([](const Winograd& winograd, const Target&) { return winograd.refusal; })
      .param("BLOCK_TILES", &FusedTiling::block_tiles,
             large ? std::vector<int64_t>{32, 16} : std::vector<int64_t>{32, 16, 64})
      .param("BLOCK_N", &FusedTiling::block_n,
             large ? std::vector<int64_t>{16, 32, 64} : std::vector<int64_t>{32, 16, 64})
      .param("BLOCK_C", &FusedTiling::block_c, large ? std::vector<int64_t>{4} : std::vector<int64_t>{8, 4})
      .param("WARP_POSITIONS", &FusedTiling::warp_positions, {2, 3, 1, 4, 6})
      .rule("warps share the positions",
            if_served([](const FusedTiling& tiling, const Winograd& winograd, const Target& target) {
              return winograd.positions() % tiling.warp_positions == 0 &&
                     tiling.threads(winograd) <= target.arch.threads_per_block;
            }))
      .rule("lanes tile the block",
            [](const FusedTiling& tiling, const Winograd&, const Target&) {
              return tiling.thread_m() % 4 == 0 && tiling.thread_n() % 4 == 0 && tiling.thread_n() > 0;
            })
      .pruning("the block suits the problem", if_served(block_suits_the_problem))
      .rule("a chunk fits into shared memory",
            if_served([](const FusedTiling& tiling, const Winograd& winograd, const Target& target) {
              return shared_bytes(tiling, winograd) <= target.arch.shared_per_block_default;
            }))
      .rule("registers suffice", if_served(registers_suffice))
      .rule("the grid fits", if_served([](const FusedTiling& tiling, const Winograd& winograd, const Target&) {
              const int64_t channels = channel_blocks(tiling, winograd);
              return channels <= most_blocks_in_y && tile_blocks(tiling, winograd) <= most_blocks_in_x / channels;
            }))
      .program([name](const FusedTiling& tiling, const Winograd& winograd, const Target& target, const Emitter& emit) {
        return program(name, tiling, winograd, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
