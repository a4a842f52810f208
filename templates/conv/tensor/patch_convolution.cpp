#include "conv/tensor/patch_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "contraction/block_estimate.h"
#include "contraction/tensor_tiling.h"
#include "conv/depthwise/depthwise.h"
#include "conv/tensor/patch.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace {

struct PatchTile {
  int p, q, n;  // outputs of a tile along two axes, and filters
  int warp_m, warp_n;
  int tiles;  // of a block
};

PatchStrips strips_of(const Contraction& contraction) {
  return {contraction.addresses.x, contraction.addresses.c_per_group()};
}

int element_bytes(const Contraction& contraction) {
  return size_of(contraction.addresses.x.dtype);
}

int64_t pixel_bytes(const Contraction& contraction) {
  return patch_pixel_bytes(contraction.addresses.c_per_group(), element_bytes(contraction));
}

int64_t pitch_bytes(const Contraction& contraction) {
  return patch_pitch_bytes(contraction.addresses.c_per_group(), element_bytes(contraction));
}

// Steps of the depth: two pieces each (lib/conv_patch.cuh).
int64_t steps_of(const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const int64_t run_pieces = ceil_div(conv.columns.window * pixel_bytes(contraction), patch_piece_bytes);
  return ceil_div(conv.planes.window * conv.rows.window * run_pieces, 2);
}

// The tile as one of a product: the whole depth is one chunk.
TensorTiling product_of(const PatchTile& tile, const Contraction& contraction) {
  const int64_t depth = steps_of(contraction) * 2 * patch_piece_bytes / element_bytes(contraction);
  return {tile.p * tile.q, tile.n, static_cast<int>(depth), tile.warp_m, tile.warp_n, 1};
}

int threads(const PatchTile& tile) {
  return 32 * (tile.p * tile.q / tile.warp_m) * (tile.n / tile.warp_n);
}

int64_t shared_bytes(const PatchTile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const int64_t patch = patch_bytes(conv, strips_of(contraction), pitch_bytes(contraction), tile.p, tile.q);
  const int64_t line = (2 * steps_of(contraction) + 1) * patch_piece_bytes;
  const int64_t exchange = conv.y_along_k ? 0 : product_of(tile, contraction).exchange_bytes();
  return exchange + 2 * patch + tile.n * line;
}

int registers(const PatchTile& tile) {
  return tile.warp_m * tile.warp_n / 32 + tile.warp_m * 3 / 4 + tile.warp_n / 4 + 52;
}

int y_run(const PatchTile& tile, const ConvolutionAddresses& conv) {
  constexpr int64_t longest = 8;
  if (!conv.y_along_k) return output_vector_width(conv, std::gcd(conv.columns.outputs, longest));
  return output_vector_width(conv, std::gcd(conv.k_per_group(), std::min<int64_t>(longest, tile.warp_n / 4)));
}

std::array<Count, 3> grid(const PatchTile& tile, const Contraction& contraction) {
  return {blocks_for(contraction, patch_tiles(contraction.addresses, tile.p, tile.q), tile.tiles),
          Count{contraction.column_tiles(tile.n)}, Count{1}};
}

std::optional<std::string> refusal(const Contractions& parts, const Target& target) {
  if (auto why = refusal_of(parts, refusal_of_depthwise)) return why;
  const ConvolutionAddresses& conv = parts.main().addresses;
  const Arithmetic& arithmetic = parts.main().arithmetic;
  if (auto why = patch_type_refusal(conv.x.dtype, conv.w.dtype, arithmetic, target)) return why;
  if (conv.divided != Divided::nothing) return "filters differ between regions";
  if (parts.list.size() > 1) return "elements of dx fall into classes, with taps of their own";
  return patch_refusal(conv, parts.operands.a, conv.c_per_group(), conv.groups, element_bytes(parts.main()));
}

Program program(const std::string& kernel, const PatchTile& tile, const Contractions& parts, const Target& target,
                const Emitter& emit) {
  Launch launch = contraction_launch(kernel, threads(tile));
  launch.grid = grid(tile, parts.main());
  launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(tile, parts.main()));
  return program_of(parts, emit, {launch}, [&](const Contraction& contraction) {
    const TensorTiling product = product_of(tile, contraction);
    Prelude prelude = contraction_prelude(contraction);
    prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q).constant("TILES", tile.tiles);
    prelude.constant("BLOCK_M", product.block_m).constant("BLOCK_N", tile.n).constant("BLOCK_K", product.block_k);
    prelude.constant("WARP_M", tile.warp_m).constant("WARP_N", tile.warp_n).constant("THREADS", threads(tile));
    prelude.constant("SHARED_BYTES", shared_bytes(tile, contraction));
    prelude.constant("MIN_BLOCKS",
                     patch_min_blocks(threads(tile), registers(tile), shared_bytes(tile, contraction), target.arch));
    prelude.constant("X_PIXELS", strips_of(contraction).pixels).constant("X_RUN", strips_of(contraction).x_run);
    prelude.constant("Y_RUN", y_run(tile, contraction.addresses));
    add_tensor_factor(prelude, contraction.a_type(), contraction.arithmetic);
    return prelude;
  });
}

// Work of a block, whose tiles come one after the other.
BlockWork block_work(const PatchTile& tile, const Contraction& contraction, const Arch& arch,
                     const Calibration& reached) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const TensorTiling product = product_of(tile, contraction);
  const PatchStrips strips = strips_of(contraction);
  const double tiles = tile.tiles, warps = product.warps(), bytes = element_bytes(contraction);
  const double steps = static_cast<double>(steps_of(contraction));
  const double pixels = static_cast<double>(patch_pixels(conv, strips, tile.p, tile.q));
  const double channels = static_cast<double>(conv.c_per_group());
  const double instruction_fma = 16 * 8 * 32 / bytes;
  const double products = tile.warp_m / 16.0 * tile.warp_n / 8.0 * steps;  // instructions of a warp and tile
  const double words = tile.warp_m / 16.0 * 4 * steps, matrices = tile.warp_n / 16.0 * steps;
  const double loads = pixels * channels / std::max(strips.pixels, strips.x_run);
  const double outputs = static_cast<double>(product.block_m) * tile.n;
  const auto stored = static_cast<double>(patch_bytes(conv, strips, pitch_bytes(contraction), tile.p, tile.q));
  const double filters = static_cast<double>(tile.n) * steps * 2;  // pieces
  const double filter_bytes = static_cast<double>(tile.n) * channels * static_cast<double>(conv.taps()) * bytes;

  BlockWork work;
  work.threads = product.threads();
  work.registers = std::min(arch.registers_per_thread, registers(tile));
  work.shared_bytes = static_cast<double>(shared_bytes(tile, contraction));
  work.math = bytes == 4 ? MathClass::tensor_tf32 : bytes == 1 ? MathClass::tensor_int8 : MathClass::tensor_f16;
  work.warps_at_half_rate = 1;
  work.fma = tiles * warps * products * instruction_fma / 32;
  const double fill = (pixels / strips.pixels * 14 + pixels * channels + loads * 3) / 32,
               finish = outputs / 32 * (2.0 + 16.0 / y_run(tile, conv));
  const double prepare = filters / 32 * (30 + 4.0 * patch_piece_bytes / bytes) + warps * 120;
  work.instructions = prepare + tiles * (warps * (products + words + matrices + 60) + fill + finish);
  work.shared_wavefronts =
      filters * patch_piece_bytes / 128 +
      tiles * (warps * (words + 4 * matrices) + stored / 128 * 2 + outputs * (conv.y_along_k ? 2 : 12) / 128);
  work.global_sectors = tiles * loads / 32 * 6 + filters;
  work.l2_bytes = filter_bytes + tiles * (pixels * channels * bytes + outputs * size_of(conv.y.dtype));
  const double multiply =
      std::ceil(warps / 4) * products * instruction_fma * 4 / reached_products(arch, work.math, reached);
  const double fill_clocks = 800 + fill / std::min(4.0, warps) * 2;
  work.latency_clocks = 1200 + prepare / std::min(4.0, warps) * 3 +
                        tiles * (fill_clocks + std::max(multiply, words * 4) + finish / std::min(4.0, warps) * 2 + 200);
  work.stall_clocks = tiles * 400;
  work.code_instructions = 500 + 2 * products + words + matrices;
  return work;
}

Estimate predict(const PatchTile& tile, const Contractions& parts, const Target& target, const DeviceFigures& device) {
  const Contraction& contraction = parts.main();
  GridWork work;
  work.block = block_work(tile, contraction, target.arch, device.calibration);
  const auto tiles = static_cast<double>(patch_tiles(contraction.addresses, tile.p, tile.q) * contraction.n());
  work.blocks = std::ceil(tiles / tile.tiles) * static_cast<double>(contraction.column_tiles(tile.n));
  work.dram_bytes = compulsory_bytes(contraction);
  return grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm patch_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make) {
  const std::string kernel = kernel_of(template_path);
  return describe<PatchTile>(kernel, operation, template_path, make)
      .applies(refusal)
      .adds([](const PatchTile&, const Contractions& parts, const Target&) {
        const ConvolutionAddresses& conv = parts.main().addresses;
        return fmt::format("tensor cores, steps of {} bytes along rows of {} taps with {} channels each",
                           2 * patch_piece_bytes, conv.columns.window, conv.c_per_group());
      })
      .param("TILE_P", &PatchTile::p, {8, 4, 16, 1})
      .param("TILE_Q", &PatchTile::q, {16, 8, 32, 128})
      .param("BLOCK_N", &PatchTile::n, {64, 32, 16, 128})
      .param("WARP_M", &PatchTile::warp_m, {32, 16, 64})
      .param("WARP_N", &PatchTile::warp_n, {64, 32, 16})
      .param("TILES", &PatchTile::tiles, {8, 4, 1, 16})
      .rule("warps tile the block",
            [](const PatchTile& tile, const Contractions&, const Target&) {
              constexpr int fewest = 8, most = 128, warps = 8;  // sums of a thread; of a block
              const int sums = tile.warp_m * tile.warp_n / 32;
              return tile.p * tile.q % tile.warp_m == 0 && tile.n % tile.warp_n == 0 && sums >= fewest &&
                     sums <= most && threads(tile) <= 32 * warps;
            })
      .pruning("the tile suits the problem",
               [](const PatchTile& tile, const Contractions& parts, const Target&) {
                 const ConvolutionAddresses& conv = parts.main().addresses;
                 return (tile.p <= 4 || tile.p < 2 * conv.rows.outputs) &&
                        (tile.q == 8 || tile.q < 2 * conv.columns.outputs) &&
                        (tile.n == 16 || tile.n < 2 * conv.k_per_group());
               })
      .pruning("an image, or all, have TILES tiles",
               [](const PatchTile& tile, const Contractions& parts, const Target&) {
                 const Contraction& contraction = parts.main();
                 return tile.tiles == 1 ||
                        patch_tiles(contraction.addresses, tile.p, tile.q) * contraction.n() >= tile.tiles * 2;
               })
      .rule("patch and filters fit into shared memory",
            [](const PatchTile& tile, const Contractions& parts, const Target& target) {
              return !parts.refusal && shared_bytes(tile, parts.main()) <= target.arch.shared_per_block;
            })
      .rule("the grid fits", [](const PatchTile& tile, const Contractions& parts,
                                const Target&) { return !parts.refusal && grid_fits(grid(tile, parts.main()), parts); })
      .program([kernel](const PatchTile& tile, const Contractions& parts, const Target& target, const Emitter& emit) {
        return program(kernel, tile, parts, target, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
