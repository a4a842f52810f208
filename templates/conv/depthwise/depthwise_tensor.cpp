#include "conv/depthwise/depthwise_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "contraction/block_estimate.h"
#include "contraction/tensor_tiling.h"
#include "conv/depthwise/depthwise.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace depthwise_tensor_descriptor {
namespace {

struct BandTile {
  int channels, p, q;  // of a block
  int warp_p;          // rows of outputs of a warp
};

int threads(const BandTile& tile) {
  return 32 * tile.channels * (tile.p / tile.warp_p);
}

// As the kernel has them (lib/conv_depthwise_tensor.cuh).
int64_t steps(const ConvolutionAddresses& conv) {
  return ceil_div(conv.columns.window + 7, 16);
}
int64_t pairs(const BandTile& tile, const ConvolutionAddresses& conv) {
  return ceil_div(tile.q / 8 + 2 * steps(conv) - 1, 2);
}
int64_t pitch(const BandTile& tile, const ConvolutionAddresses& conv) {
  return 16 * pairs(tile, conv) + 8;
}
int64_t line_bytes(const ConvolutionAddresses& conv) {
  constexpr int64_t ahead = 4;
  return 4 * (ahead + 8 * steps(conv) + 1);
}
int64_t input_rows(const BandTile& tile, const ConvolutionAddresses& conv) {
  return input_positions(conv.rows, tile.p);
}

int64_t shared_bytes(const BandTile& tile, const ConvolutionAddresses& conv) {
  constexpr int64_t alignment = 16;
  const int64_t filters = ceil_div(tile.channels * conv.rows.window * line_bytes(conv), alignment) * alignment;
  const int64_t operands = filters + tile.channels * input_rows(tile, conv) * pitch(tile, conv) * 2;
  const int64_t sums = tile.p * (tile.q * (tile.channels + 1) + 1) * int64_t{4};
  return ceil_div(std::max(operands, sums), alignment) * alignment;
}

int64_t shared_bytes(const BandTile& tile, const Contractions& parts) {
  int64_t most = 0;
  for (const Contraction& part : parts.list) most = std::max(most, shared_bytes(tile, part.addresses));
  return most;
}

// Sums, matrices of x, a band and addresses.
int registers(const BandTile& tile, const ConvolutionAddresses& conv) {
  return tile.warp_p * tile.q / 32 + static_cast<int>(4 * pairs(tile, conv) + 2 * steps(conv)) + 30;
}

int x_run(const BandTile& tile, const ConvolutionAddresses& conv) {
  constexpr int longest = 8;
  return std::gcd(std::min(tile.channels, longest), widest_vector(conv.x, {dimension::channel}, conv.c()));
}
int y_run(const BandTile& tile, const ConvolutionAddresses& conv) {
  constexpr int longest = 8;
  if (!conv.y_along_k) return 1;
  return std::gcd(std::min(tile.channels, longest), output_vector_width(conv, conv.k()));
}

std::array<Count, 3> grid(const BandTile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  return {blocks_for(contraction, tiles_per_channel(conv, tile.p, tile.q), 1),
          Count{ceil_div(conv.k(), tile.channels)}, Count{1}};
}

std::optional<std::string> refusal_of_part(const Contraction& contraction) {
  constexpr int64_t fewest_taps = 7, most_taps_of_an_axis = 128;
  const ConvolutionAddresses& conv = contraction.addresses;
  if (auto why = depthwise_refusal(conv.x, conv.c_per_group(), Inner::channels)) return why;
  if (conv.k() != conv.c()) return "channels have several filters";
  if (size_of(conv.x.dtype) != 2) return "bands are of f16 and bf16";
  if (conv.divided != Divided::nothing) return "filters differ between regions";
  if (conv.planes.window != 1) return "filters have several planes";
  if (conv.rows.stride != 1 || conv.columns.stride != 1) return "the stride keeps neighbouring outputs apart";
  if (conv.columns.dilation != 1 && conv.columns.window != 1) return "dilation keeps the taps of a row apart";
  if (conv.columns.window < fewest_taps) return "rows of fewer than 7 taps leave most of a band empty";
  if (conv.rows.window > most_taps_of_an_axis || conv.columns.window > most_taps_of_an_axis) {
    return "a row or a column of a filter has more than 128 taps";
  }
  return std::nullopt;
}

std::optional<std::string> refusal(const Contractions& parts, const Target& target) {
  if (auto why = refusal_of(parts, depthwise_tensor_descriptor::refusal_of_part)) return why;
  for (const Contraction& part : parts.list) {
    if (auto why = depthwise_tensor_descriptor::refusal_of_part(part)) return why;
  }
  const Contraction& main = parts.main();
  return tensor_type_refusal(main.a_type(), main.b_type(), main.arithmetic, target);
}

void add_constants(Prelude& prelude, const BandTile& tile, const Contraction& contraction, int64_t shared_bytes) {
  const ConvolutionAddresses& conv = contraction.addresses;
  prelude.constant("CHANNELS", tile.channels).constant("TILE_P", tile.p).constant("TILE_Q", tile.q);
  prelude.constant("WARP_P", tile.warp_p).constant("THREADS", threads(tile));
  prelude.constant("X_RUN", x_run(tile, conv)).constant("Y_RUN", y_run(tile, conv));
  prelude.constant("SHARED_BYTES", shared_bytes);
}

Program program(const std::string& name, const BandTile& tile, const Contractions& parts, const Emitter& emit) {
  Launch launch = contraction_launch(name, threads(tile));
  launch.grid = grid_of(parts, [&](const Contraction& part) { return grid(tile, part); });
  launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(tile, parts));
  return program_of(parts, emit, {launch}, [&](const Contraction& part) {
    Prelude prelude = contraction_prelude(part);
    add_constants(prelude, tile, part, shared_bytes(tile, parts));
    return prelude;
  });
}

GridWork work_of(const BandTile& tile, const Contraction& contraction, const Target& target,
                 const Calibration& reached) {
  const ConvolutionAddresses& conv = contraction.addresses;
  constexpr double instruction_fma = 16 * 8 * 16;
  const auto rows = static_cast<double>(conv.rows.window), steps = static_cast<double>(
      depthwise_tensor_descriptor::steps(conv));
  const auto pairs = static_cast<double>(depthwise_tensor_descriptor::pairs(tile, conv));
  const double warps = threads(tile) / 32.0, fragments = tile.warp_p / 16.0;
  const double products = rows * fragments * tile.q / 8 * steps, matrices = rows * fragments * pairs,
               words = rows * steps * 4;  // of a warp
  const double positions = static_cast<double>(input_rows(tile, conv)) * pairs * 16;
  const double loads = positions * tile.channels / x_run(tile, conv) / 32;  // of all warps, as below
  const double taps = tile.channels * rows * static_cast<double>(line_bytes(conv)) / 4 / 32;
  const double outputs = static_cast<double>(tile.p) * tile.q, stores = outputs * tile.channels / y_run(tile, conv) / 32;
  const double fill = loads * (9 + 4.0 * x_run(tile, conv)) + taps * 40;
  const double finish = stores * (20 + 5.0 * y_run(tile, conv)) + outputs * tile.channels / 32 * 2;

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(tiles_per_channel(conv, tile.p, tile.q) * conv.n() *
                                    ceil_div(conv.k(), tile.channels));
  block.threads = threads(tile);
  block.registers = registers(tile, conv);
  block.shared_bytes = static_cast<double>(shared_bytes(tile, conv));
  block.math = MathClass::tensor_f16;
  block.warps_at_half_rate = 1;
  block.fma = warps * products * instruction_fma / 32;
  block.instructions = warps * (products + matrices + words * 1.5 + rows * 6 + 60) + fill + finish;
  block.shared_wavefronts = warps * (matrices * 4 + words) + loads * x_run(tile, conv) / 2 + taps + outputs * tile.channels / 32 * 3;
  block.global_sectors = loads * 32 * std::max(1.0, x_run(tile, conv) / 16.0) + taps * 8 + stores * 32;
  block.l2_bytes = positions * tile.channels * 2 * std::max(1.0, 16.0 / tile.channels) +
                   tile.channels * static_cast<double>(conv.taps()) * 2 + outputs * tile.channels * 2;
  const double multiply = std::ceil(warps / 4) * products * instruction_fma * 4 /
                          reached_products(target.arch, block.math, reached);
  const double at_once = std::min(4.0, warps);
  block.latency_clocks = 1500 + 700 * (loads / warps / 4 + taps / warps / 8) + (fill + finish) / at_once +
                         std::max(multiply, matrices * 8) + 400;
  block.stall_clocks = 1200;
  block.code_instructions = 900 + fragments * (tile.q / 8.0 * steps + pairs) + tile.warp_p * tile.q / 32.0 * 8;
  work.dram_bytes = compulsory_bytes(contraction);
  return work;
}

}  // namespace
}  // namespace depthwise_tensor_descriptor

Algorithm depthwise_tensor_convolution(const std::string& template_path, const std::string& operation,
                                       ContractionMaker make) {
  using namespace depthwise_tensor_descriptor;
  const std::string name = kernel_of(template_path);
  return describe<BandTile>(name, operation, template_path, make)
      .applies(refusal)
      .adds([](const BandTile& tile, const Contractions& parts, const Target&) {
        // Where x has infinities, the whole tile is added in another order.
        return fmt::format("tensor cores, rows of {} taps from multiples of 8 columns on, in tiles of {} x {}",
                           parts.main().addresses.columns.window, tile.p, tile.q);
      })
      .param("CHANNELS", &BandTile::channels, {8, 4, 16})
      .param("TILE_P", &BandTile::p, {32, 16, 64})
      .param("TILE_Q", &BandTile::q, {32, 16, 64})
      .param("WARP_P", &BandTile::warp_p, {32, 16})
      .rule("warps tile the block",
            [](const BandTile& tile, const Contractions&, const Target&) {
              constexpr int most_threads = 512, fewest_threads = 128;
              return tile.p % tile.warp_p == 0 && threads(tile) <= most_threads && threads(tile) >= fewest_threads;
            })
      .pruning("the tile suits the image", for_main([](const BandTile& tile, const Contraction& part, const Target&) {
                 return (tile.p == 16 || tile.p < 2 * part.addresses.rows.outputs) &&
                        (tile.q == 16 || tile.q < 2 * part.addresses.columns.outputs);
               }))
      .pruning("CHANNELS suits the channels", for_main([](const BandTile& tile, const Contraction& part, const Target&) {
                 return tile.channels == 4 || tile.channels < 2 * part.addresses.k();
               }))
      .rule("x, filters and sums fit into shared memory",
            [](const BandTile& tile, const Contractions& parts, const Target& target) {
              return !parts.refusal && shared_bytes(tile, parts) <= target.arch.shared_per_block;
            })
      .rule("registers suffice", for_all([](const BandTile& tile, const Contraction& part, const Target& target) {
              const int limit =
                  std::min(target.arch.registers_per_thread, target.arch.registers_per_sm / threads(tile));
              return registers(tile, part.addresses) <= limit - 16;
            }))
      .rule("the grid fits",
            [](const BandTile& tile, const Contractions& parts, const Target&) {
              return !parts.refusal &&
                     grid_fits(grid_of(parts, [&](const Contraction& part) { return grid(tile, part); }), parts);
            })
      .program([name](const BandTile& tile, const Contractions& parts, const Target&, const Emitter& emit) {
        return program(name, tile, parts, emit);
      })
      .estimate([](const BandTile& tile, const Contractions& parts, const Target& target, const DeviceFigures& device) {
        const auto of_part = [&](const Contraction& part) { return work_of(tile, part, target, device.calibration); };
        return grid_estimate(work_of_parts(parts, of_part), target.arch, device);
      });
}

}  // namespace kiln::descriptor
