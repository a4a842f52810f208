#include "conv/depthwise/depthwise_nhwc.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "contraction/block_estimate.h"
#include "conv/depthwise/depthwise.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace depthwise_nhwc_convolution_descriptor {
namespace {

struct Tile {
  int p, q, vector, k, threads;
};

int64_t places_per_image(const Tile& tile, const ConvolutionAddresses& conv) {
  return tiles_per_channel(conv, tile.p, tile.q);
}

// Output tiles of one block: each is worked on by as many threads as it takes vectors to span BLOCK_K channels.
int64_t places_per_block(const Tile& tile) {
  return tile.threads / (tile.k / tile.vector);
}

int64_t channel_tiles(const Tile& tile, const ConvolutionAddresses& conv) {
  return ceil_div(conv.k(), tile.k);
}

int64_t shared_bytes(const Tile& tile, const ConvolutionAddresses& conv) {
  return conv.taps() * tile.k * 4;
}

// Widest access that x (if its channels are those of y) and y allow.
int widest_access(const ConvolutionAddresses& conv) {
  const int width = conv.y_along_k ? output_vector_width(conv, conv.k()) : 1;
  if (conv.k() != conv.c()) return width;
  return std::min(width, widest_vector(conv.x, {dimension::channel}, conv.c()));
}

// Rows of x that the compiler keeps in registers while they are on their way: read in machine code for sm_80.
constexpr double rows_ahead = 3.5;

// Sums, rows on their way, one pixel as f32 and its taps.
int registers(const Tile& tile, const ConvolutionAddresses& conv) {
  const int64_t pixel = ceil_div(tile.vector * size_of(conv.x.dtype), 4);
  const auto row = static_cast<double>(met_positions(conv.columns, tile.q) * pixel);
  const double rows = std::min(static_cast<double>(met_positions(conv.rows, tile.p)), rows_ahead);
  return tile.p * tile.q * tile.vector + 3 * tile.vector + 12 + static_cast<int>(rows * row);
}

// Rules: what their names below say.
bool vectors_are_aligned(const Tile& tile, const Contraction& part, const Target&) {
  return tile.vector <= widest_access(part.addresses);
}
bool loops_are_short(const Tile& tile, const Contraction& part, const Target&) {
  constexpr int64_t longest_body = 1600;
  const ConvolutionAddresses& conv = part.addresses;
  const bool least = tile.p == 1 && tile.q == 1;
  return least || conv.rows.window * conv.columns.window * tile.p * tile.q * tile.vector <= longest_body;
}
bool registers_suffice(const Tile& tile, const Contraction& part, const Target& target) {
  const int limit = std::min(target.arch.registers_per_thread, target.arch.registers_per_sm / tile.threads);
  return tile.p * tile.q * tile.vector <= 64 && registers(tile, part.addresses) <= limit - 40;
}

// The least tile, and the largest of these that all parts allow.
bool has_open_kernel(const Tile& tile, const Contractions& parts, const Target& target) {
  const bool is_open_width = tile.vector == 4 || tile.vector == 2 || tile.vector == 1;
  if (tile.threads != 128 || tile.k != 32 || !is_open_width) return false;
  for (const auto& [p, q] : {std::pair{2, 4}, std::pair{2, 2}}) {
    const Tile open{p, q, tile.vector, tile.k, tile.threads};
    if (!for_all(loops_are_short)(open, parts, target) || !for_all(registers_suffice)(open, parts, target)) continue;
    if (tile.p == p && tile.q == q) return true;
    break;
  }
  return tile.p == 1 && tile.q == 1;
}

std::array<Count, 3> grid(const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  return {blocks_for(contraction, places_per_image(tile, conv), places_per_block(tile)),
          Count{channel_tiles(tile, conv)}, Count{1}};
}

void add_constants(Prelude& prelude, const Tile& tile, const Contraction& contraction) {
  prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q).constant("VECTOR", tile.vector);
  prelude.constant("BLOCK_K", tile.k).constant("THREADS", tile.threads);
  prelude.constant("MULTIPLIER", contraction.addresses.k() / contraction.addresses.c());
}

// Lanes are neighbours in channels, then in columns of tiles, whose pixels are `stride` apart in `spec`.
Access access_of_lanes(const Tile& tile, const TensorSpec& spec, int64_t stride) {
  const int64_t element = size_of(spec.dtype), of_pixel = tile.k / tile.vector;
  const int64_t pitch = tile.q * stride * spec.strides[dimension::column] * element;
  const int64_t bytes = tile.vector * element;
  return access_along({{of_pixel, bytes}, {1, pitch}}, bytes);
}

// Share of a filter's rows or columns that the kernel multiplies: all, unless one tile spans the axis. The compiler
// then knows which of them are padding.
double multiplied_share(const WindowAxis& axis, int64_t tile) {
  if (tile < axis.outputs) return 1;
  SpatialAxes alone;
  alone.columns = axis;
  return inside_share(alone);
}

// Positions along an axis that a thread loads, likewise.
int64_t loaded_positions(const WindowAxis& axis, int64_t tile) {
  const int64_t met = met_positions(axis, tile);
  return tile < axis.outputs ? met : std::min(met, axis.extent);
}

GridWork work_of(const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const double taps =
      static_cast<double>(conv.taps()) * multiplied_share(conv.rows, tile.p) * multiplied_share(conv.columns, tile.q);
  const double warps = tile.threads / 32.0;
  const auto rows = static_cast<double>(conv.planes.window * loaded_positions(conv.rows, tile.p));
  const double loads = rows * static_cast<double>(loaded_positions(conv.columns, tile.q));
  const double accesses = loads * (conv.k() == conv.c() ? 1 : tile.vector);
  const double outputs = tile.p * tile.q;
  const double lines = std::max(1.0, tile.vector / 4.0);  // 16-byte accesses of a vector of f32
  const double fill = static_cast<double>(shared_bytes(tile, conv)) / 4 / 32;

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(ceil_div(places_per_image(tile, conv) * conv.n(), places_per_block(tile)) *
                                    channel_tiles(tile, conv));
  block.threads = tile.threads;
  block.registers = registers(tile, conv);
  block.shared_bytes = static_cast<double>(shared_bytes(tile, conv));
  block.fma = warps * taps * outputs * tile.vector;
  const double tap_reads = taps * tile.p * lines;                           // one for all neighbours in a row
  const double conversions = size_of(conv.x.dtype) == 4 ? 0 : tile.vector;  // of a load
  const double instructions =
      taps * outputs * tile.vector + accesses * 3 + loads * conversions + tap_reads + 110 + outputs * tile.vector * 5;
  block.instructions = warps * instructions + fill * 10;
  const double lane_bytes = tile.vector * size_of(conv.x.dtype);
  // However few addresses the lanes share, they get as many words. Lanes that fill are neighbours in taps, which are
  // BLOCK_K words apart: on one bank.
  block.shared_wavefronts =
      warps * tap_reads * std::min(4, tile.vector) + fill * (1 + std::min(32.0, static_cast<double>(conv.taps())));
  block.global_sectors = warps * (accesses * access_of_lanes(tile, conv.x, conv.columns.stride).l1 +
                                  outputs * access_of_lanes(tile, conv.y, 1).l1);
  block.l2_bytes = tile.threads * lane_bytes *
                   (outputs * static_cast<double>(conv.rows.stride * conv.columns.stride) * 1.3 + outputs);
  block.code_instructions = 1.5 * instructions;
  block.chain_clocks = 700 * rows / rows_ahead;
  // Later rounds find some of their lines in L1.
  block.latency_clocks =
      2000 + fill * 125 / warps + 1.3 * (instructions + fill * 10 / warps) + 0.7 * block.chain_clocks;
  work.dram_bytes = compulsory_bytes(contraction);
  return work;
}

}  // namespace
}  // namespace depthwise_nhwc_convolution_descriptor

Algorithm depthwise_nhwc_convolution(const std::string& template_path, const std::string& operation,
                                     ContractionMaker make) {
  using namespace depthwise_nhwc_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  auto description =
      describe<Tile>(name, operation, template_path, make)
          .takes_prologue()
          .adds([](const Tile&, const Contractions& parts, const Target&) {
            return order_on_lanes(DepthOrder{1, parts.main().addresses.taps()});
          })
          .applies([](const Contractions& parts, const Target&) {
            return refusal_of(
                parts, [](const Contraction& part) { return depthwise_refusal(part.addresses, Inner::channels); });
          })
          .param("TILE_P", &Tile::p, {2, 1, 4})
          .param("TILE_Q", &Tile::q, {4, 2, 1, 7})
          .param("VECTOR", &Tile::vector, {4, 8, 2, 1})
          .param("BLOCK_K", &Tile::k, {64, 32, 128})
          .param("THREADS", &Tile::threads, {128, 64, 256})
          .rule("vectors are aligned and end with the pixel", for_all(vectors_are_aligned))
          .pruning("vectors are not needlessly narrow",
                   for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     return tile.vector * 2 >= std::min(4, widest_access(part.addresses));
                   }))
          .pruning("the tile suits the image", for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     return tile_suits_the_image(part.addresses, tile.p, tile.q);
                   }))
          .rule("threads tile the channels", [](const Tile& tile, const Contractions&,
                                                const Target&) { return tile.threads % (tile.k / tile.vector) == 0; })
          .pruning("BLOCK_K suits the channels", for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     return tile.k == 32 || tile.k < 2 * part.addresses.k();
                   }))
          .rule("the unrolled loops are not too long", for_all(loops_are_short))
          .rule("filters fit into shared memory",
                for_all([](const Tile& tile, const Contraction& part, const Target& target) {
                  return shared_bytes(tile, part.addresses) <= target.arch.shared_per_block_default;
                }))
          .rule("registers suffice", for_all(registers_suffice))
          .opens(has_open_kernel);
  return of_one_launch(std::move(description), name, grid, add_constants, work_of, FixedAxes::windows);
}

}  // namespace kiln::descriptor
