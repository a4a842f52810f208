#include "conv/depthwise/depthwise_nchw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "contraction/block_estimate.h"
#include "conv/depthwise/depthwise.h"
#include "descriptor/numbers.h"
#include "descriptor/streaming_estimate.h"

namespace kiln::descriptor {
namespace depthwise_nchw_convolution_descriptor {
namespace {

struct Tile {
  int p, q, threads;
};

int64_t tiles_per_image(const Tile& tile, const ConvolutionAddresses& conv) {
  return conv.k() * tiles_per_channel(conv, tile.p, tile.q);
}

int x_run(const Tile& tile, const ConvolutionAddresses& conv) {
  return depthwise_x_run(conv.x, conv.columns, tile.q);
}

int y_run(const Tile& tile, const ConvolutionAddresses& conv) {
  return conv.y_along_k ? 1 : output_vector_width(conv, std::gcd(conv.columns.outputs, int64_t{tile.q}));
}

// Accesses of one row of x.
int64_t runs(const Tile& tile, const ConvolutionAddresses& conv) {
  return depthwise_runs(conv.columns, tile.q, x_run(tile, conv));
}

int registers(const Tile& tile, const ConvolutionAddresses& conv) {
  return static_cast<int>(tile.p * tile.q + conv.rows.window * conv.columns.window +
                          runs(tile, conv) * x_run(tile, conv) * 2 + 28);
}

// Rules: what their names below say.
bool loops_are_short(const Tile& tile, const Contraction& part, const Target&) {
  constexpr int64_t longest_body = 1200;
  const ConvolutionAddresses& conv = part.addresses;
  const bool least = tile.p == 1 && tile.q == 1;
  return least || (conv.rows.window * conv.columns.window * tile.p * tile.q <= longest_body &&
                   input_positions(conv.rows, tile.p) * runs(tile, conv) <= 128);
}
bool registers_suffice(const Tile& tile, const Contraction& part, const Target& target) {
  const int limit = std::min(target.arch.registers_per_thread, target.arch.registers_per_sm / tile.threads);
  return (tile.p == 1 && tile.q == 1) || registers(tile, part.addresses) <= limit - 100;
}

// The least tile, and the largest of these that all parts allow.
bool has_open_kernel(const Tile& tile, const Contractions& parts, const Target& target) {
  if (tile.threads != 128) return false;
  for (const int edge : {4, 2}) {
    const Tile open{edge, edge, tile.threads};
    if (!for_all(loops_are_short)(open, parts, target) || !for_all(registers_suffice)(open, parts, target)) continue;
    if (tile.p == edge && tile.q == edge) return true;
    break;
  }
  return tile.p == 1 && tile.q == 1;
}

std::array<Count, 3> grid(const Tile& tile, const Contraction& contraction) {
  return {blocks_for(contraction, tiles_per_image(tile, contraction.addresses), tile.threads), Count{1}, Count{1}};
}

void add_constants(Prelude& prelude, const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q).constant("THREADS", tile.threads);
  prelude.constant("X_RUN", x_run(tile, conv)).constant("Y_RUN", y_run(tile, conv));
  prelude.constant("SHIFT", depthwise_shift(conv.columns, x_run(tile, conv)));
  prelude.constant("MULTIPLIER", conv.k() / conv.c());
}

// Bytes that stores move for each byte of y: whole sectors, where neighbouring pixels stand apart.
double stored_spread(const ConvolutionAddresses& conv) {
  if (conv.columns.outputs <= 1) return 1;
  const double size = size_of(conv.y.dtype);
  return lane_bytes(size, static_cast<double>(conv.y.strides[dimension::column]) * size) / size;
}

GridWork work_of(const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const double taps = static_cast<double>(conv.taps());
  const double warps = tile.threads / 32.0;
  const double planes = static_cast<double>(conv.planes.window);
  const double rows_of_plane = static_cast<double>(input_positions(conv.rows, tile.p)), rows = planes * rows_of_plane;
  const double accesses = rows * static_cast<double>(runs(tile, conv));
  const double lane_bytes = static_cast<double>(tile.q * conv.columns.stride) * size_of(conv.x.dtype);
  const double access_bytes = x_run(tile, conv) * size_of(conv.x.dtype);

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(ceil_div(tiles_per_image(tile, conv) * conv.n(), tile.threads));
  block.threads = tile.threads;
  block.registers = registers(tile, conv);
  block.fma = warps * taps * tile.p * tile.q;
  block.instructions = block.fma + warps * (accesses * 3 + rows * 3 + taps * 2 + 90 + tile.p * tile.q * 6.0);
  const double sectors = std::clamp(lane_bytes, access_bytes, 32.0);  // of a lane's access, x32 lanes / 32 bytes
  const double spread = stored_spread(conv);
  block.global_sectors = warps * (accesses * std::max(1.0, sectors) + taps + tile.p * tile.q * 2.0 * spread);
  block.l2_bytes = tile.threads * (static_cast<double>(tile.p * tile.q * conv.rows.stride * conv.columns.stride) *
                                       size_of(conv.x.dtype) * 1.3 +
                                   tile.p * tile.q * size_of(conv.y.dtype) * spread);
  block.code_instructions = 1.3 * block.instructions / warps / planes;
  // The rows of a plane may load while others multiply; those of the next plane do not before its end.
  block.latency_clocks = 1850 + 1.3 * (block.instructions / warps) + 500 * (planes - 1) * rows_of_plane;
  work.dram_bytes = compulsory_bytes(contraction);
  return work;
}

}  // namespace
}  // namespace depthwise_nchw_convolution_descriptor

Algorithm depthwise_nchw_convolution(const std::string& template_path, const std::string& operation,
                                     ContractionMaker make) {
  using namespace depthwise_nchw_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  auto description =
      describe<Tile>(name, operation, template_path, make)
          .takes_prologue()
          .adds([](const Tile&, const Contractions& parts, const Target&) {
            return order_on_lanes(DepthOrder{1, parts.main().addresses.taps()});
          })
          .applies([](const Contractions& parts, const Target&) {
            return refusal_of(parts,
                              [](const Contraction& part) { return depthwise_refusal(part.addresses, Inner::pixels); });
          })
          .param("TILE_P", &Tile::p, {4, 2, 1, 7, 8})
          .param("TILE_Q", &Tile::q, {4, 2, 1, 7, 8})
          .param("THREADS", &Tile::threads, {128, 64, 256})
          .pruning("the tile suits the image", for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     return tile_suits_the_image(part.addresses, tile.p, tile.q);
                   }))
          .rule("the unrolled loops are not too long", for_all(loops_are_short))
          .rule("registers suffice", for_all(registers_suffice))
          .opens(has_open_kernel);
  return of_one_launch(std::move(description), name, grid, add_constants, work_of, FixedAxes::windows);
}

}  // namespace kiln::descriptor
