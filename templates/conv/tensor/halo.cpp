#include "conv/tensor/halo.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "contraction/tensor_estimate.h"
#include "contraction/tensor_tiling.h"
#include "conv/depthwise/depthwise.h"
#include "conv/tensor/patch.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace halo {
namespace {

constexpr int64_t piece_bytes = 16;  // of shared memory, that an access of x moves

struct HaloTile {
  int p, q, n;  // outputs of a tile along two axes, and filters
  int k;        // channels of a chunk
  int warp_m, warp_n, stages;

  TensorTiling product() const { return {p * q, n, k, warp_m, warp_n, stages}; }
};

// Positions of x that `outputs` neighbours meet.
int64_t met(const WindowAxis& axis, int64_t outputs) {
  return (outputs - 1) * axis.stride + axis.reach();
}

int64_t halo_pixels(const HaloTile& tile, const ConvolutionAddresses& conv) {
  return conv.planes.reach() * met(conv.rows, tile.p) * met(conv.columns, tile.q);
}

int64_t shared_bytes(const HaloTile& tile, const Contraction& contraction) {
  const int64_t line = int64_t{tile.k} * tensor_element_bytes(contraction);
  const int64_t halos = 2 * halo_pixels(tile, contraction.addresses) * line;
  return std::max<int64_t>(halos + tile.stages * tile.n * line, tile.product().exchange_bytes());
}

// Without those for the addresses of copies of x, which are worked out for each copy.
int registers(const HaloTile& tile, const Contraction& contraction) {
  const int sums = tile.warp_m * tile.warp_n / 32, fragments = (tile.warp_m + tile.warp_n) / 4;
  const int64_t run = tensor_access(contraction, Bring::copied).b_run;
  const int64_t copies = ceil_div(int64_t{tile.n} * tile.k / run, tile.product().threads());
  const int64_t offsets = copies * (contraction.wide_index() ? 2 : 1);
  const int entered = contraction.prologue_instructions > 0 ? 24 : 0;
  return static_cast<int>(sums + 2 * fragments + offsets + entered + 46);
}

int blocks_of_sm(const HaloTile& tile, const Contraction& contraction, const Arch& arch) {
  return patch_min_blocks(tile.product().threads(), registers(tile, contraction), shared_bytes(tile, contraction),
                          arch);
}

// Runs of outputs stay in a row of the tile, and of y.
int y_run(const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  constexpr int64_t longest = 8;
  if (conv.y_along_k) return tensor_access(contraction, Bring::copied).c_run;
  return output_vector_width(conv, std::gcd(conv.columns.outputs, longest));
}

std::array<Count, 3> grid(const HaloTile& tile, const Contraction& contraction) {
  return {blocks_for(contraction, patch_tiles(contraction.addresses, tile.p, tile.q), 1),
          Count{contraction.column_tiles(tile.n)}, Count{1}};
}

std::optional<std::string> refusal(const Contractions& parts, const Target& target) {
  if (auto why = refusal_of(parts, refusal_of_depthwise)) return why;
  const Contraction& contraction = parts.main();
  if (auto why = tensor_refusal(contraction, parts.operands, Bring::copied, target)) return why;
  const ConvolutionAddresses& conv = contraction.addresses;
  if (size_of(conv.x.dtype) == 1) return "halos are of elements of 16 and 32 bits";
  if (parts.list.size() > 1) return "elements of dx fall into classes, with taps of their own";
  if (conv.taps() == 1) return "windows have one tap";
  if (conv.rows.reach() <= conv.rows.stride && conv.columns.reach() <= conv.columns.stride &&
      conv.planes.reach() <= conv.planes.stride) {
    return "windows do not overlap";
  }
  constexpr int64_t farthest = 256, most_taps = 256;
  if (conv.taps() > most_taps) return "windows have more than 256 taps";
  for (const WindowAxis* axis : {&conv.planes, &conv.rows, &conv.columns}) {
    if (axis->reach() > farthest || axis->stride > farthest) {
      return "windows span, or are apart, more than 256 positions of " + parts.operands.a;
    }
  }
  if (tensor_access(contraction, Bring::copied).a_run * tensor_element_bytes(contraction) < piece_bytes) {
    return fmt::format("channels of {} do not stand in 16 bytes together", parts.operands.a);
  }
  return std::nullopt;
}

// TAP_LINE and TAP_COLUMN of lib/conv_halo.cuh.
void add_tap_places(Prelude& prelude, const HaloTile& tile, const ConvolutionAddresses& conv) {
  std::vector<int64_t> lines, columns;
  const auto from_first = [&](const WindowAxis& axis, int64_t tap) {
    return (conv.mirrored ? axis.window - 1 - tap : tap) * axis.dilation;
  };
  for (int64_t t = 0; t < conv.planes.window; ++t) {
    for (int64_t r = 0; r < conv.rows.window; ++r) {
      for (int64_t s = 0; s < conv.columns.window; ++s) {
        const int64_t row = from_first(conv.planes, t) * met(conv.rows, tile.p) + from_first(conv.rows, r);
        columns.push_back(from_first(conv.columns, s));
        lines.push_back(row * met(conv.columns, tile.q) + columns.back());
      }
    }
  }
  prelude.extent_table("TAP_LINE", lines, most_open_taps);
  prelude.extent_table("TAP_COLUMN", columns, most_open_taps);
}

Program program(const std::string& kernel, const HaloTile& tile, const Contractions& parts, const Target& target,
                const Emitter& emit) {
  Launch launch = contraction_launch(kernel, tile.product().threads());
  launch.grid = grid(tile, parts.main());
  launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(tile, parts.main()));
  return program_of(parts, emit, {launch}, [&](const Contraction& contraction) {
    Prelude prelude = contraction_prelude(contraction);
    prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q);
    add_tensor_tiling(prelude, tile.product(), contraction, Bring::copied, blocks_of_sm(tile, contraction, target.arch),
                      OwnTiles{shared_bytes(tile, contraction), y_run(contraction)});
    add_tap_places(prelude, tile, contraction.addresses);
    return prelude;
  });
}

Estimate predict(const HaloTile& tile, const Contractions& parts, const Target& target, const DeviceFigures& device) {
  const Contraction& contraction = parts.main();
  const ConvolutionAddresses& conv = contraction.addresses;
  const auto tiles = static_cast<double>(patch_tiles(conv, tile.p, tile.q) * contraction.n());
  const auto halo = static_cast<double>(halo_pixels(tile, conv)) * tile.k;
  GridWork work;
  work.blocks = tiles * static_cast<double>(contraction.column_tiles(tile.n));
  work.block = tensor_block_work(tile.product(), contraction, Bring::copied, target.arch, device,
                                 static_cast<double>(contraction.chunks(tile.k)), work.blocks,
                                 {Results::finished, halo / static_cast<double>(conv.taps())});
  // All warps put what has come through the prologue between the products of a chunk and the meeting behind it.
  work.block.latency_clocks += static_cast<double>(contraction.chunks(tile.k)) * halo /
                               static_cast<double>(conv.taps()) * contraction.prologue_instructions / 32 /
                               tile.product().warps();
  work.block.registers = std::min(target.arch.registers_per_thread, registers(tile, contraction));
  work.block.shared_bytes = static_cast<double>(shared_bytes(tile, contraction));
  work.dram_bytes = compulsory_bytes(contraction);
  return tensor_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace halo

Algorithm halo_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make) {
  using namespace halo;
  const std::string kernel = kernel_of(template_path);
  return describe<HaloTile>(kernel, operation, template_path, make)
      .applies(refusal)
      .takes_prologue(Prologues::rounded, true)
      .adds([](const HaloTile& tile, const Contractions& parts, const Target&) {
        return order_on_tensor_cores(tile.product(), parts.main(), Bring::copied);
      })
      .param("TILE_P", &HaloTile::p, {8, 4, 16, 2, 1})
      .param("TILE_Q", &HaloTile::q, {16, 8, 32, 64, 128})
      .param("BLOCK_N", &HaloTile::n, {128, 64, 32, 256})
      .param("BLOCK_K", &HaloTile::k, {32, 64, 16})
      .param("WARP_M", &HaloTile::warp_m, {64, 32})
      .param("WARP_N", &HaloTile::warp_n, {64, 32})
      .param("STAGES", &HaloTile::stages, {3, 4, 2})
      .rule("warps tile the block", [](const HaloTile& tile, const Contractions&,
                                       const Target&) { return tensor_warps_tile_the_block(tile.product()); })
      .rule("a chunk is two or four steps long",
            for_main([](const HaloTile& tile, const Contraction& contraction, const Target&) {
              return tensor_chunk_has_steps(tile.product(), contraction);
            }))
      .pruning("BLOCK_K suits the depth",
               for_main([](const HaloTile& tile, const Contraction& contraction, const Target&) {
                 return tensor_chunk_suits_the_depth(tile.product(), contraction);
               }))
      .pruning("the tile suits the problem",
               for_main([](const HaloTile& tile, const Contraction& contraction, const Target&) {
                 const ConvolutionAddresses& conv = contraction.addresses;
                 return tile.p < 2 * conv.rows.outputs && (tile.q == 8 || tile.q < 2 * conv.columns.outputs) &&
                        (tile.n == 32 || tile.n < 2 * conv.k_per_group()) && (tile.q <= 32 || tile.p == 1);
               }))
      .rule("there is a tap for each stage",
            for_main([](const HaloTile& tile, const Contraction& contraction, const Target&) {
              return contraction.addresses.taps() >= tile.stages;
            }))
      .rule("threads tile the loads", for_main([](const HaloTile& tile, const Contraction& contraction, const Target&) {
              return tensor_threads_tile_the_loads(tile.product(), contraction, Bring::copied);
            }))
      .rule("halos and filters fit into shared memory",
            for_main([](const HaloTile& tile, const Contraction& contraction, const Target& target) {
              return shared_bytes(tile, contraction) <= target.arch.shared_per_block;
            }))
      .rule("registers suffice",
            for_main([](const HaloTile& tile, const Contraction& contraction, const Target& target) {
              return registers(tile, contraction) <=
                     std::min(target.arch.registers_per_thread, registers_with(tile.product().warps(), target.arch));
            }))
      .rule("the grid fits", [](const HaloTile& tile, const Contractions& parts,
                                const Target&) { return !parts.refusal && grid_fits(grid(tile, parts.main()), parts); })
      .program([kernel](const HaloTile& tile, const Contractions& parts, const Target& target, const Emitter& emit) {
        return program(kernel, tile, parts, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
