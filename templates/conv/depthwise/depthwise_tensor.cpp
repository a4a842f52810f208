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
namespace {

constexpr double instruction_fma = 16 * 8 * 16;

}  // namespace

int BandShape::threads() const {
  return 32 * channels * static_cast<int>(rows / warp_rows);
}

int64_t BandShape::steps() const {
  return ceil_div(taps + 7, 16);
}

int64_t BandShape::pairs() const {
  return ceil_div(columns / 8 + 2 * steps() - 1, 2);
}

int64_t BandShape::input_rows() const {
  return (rows - 1) * row_step + (tap_rows - 1) * tap_step + 1;
}

int64_t BandShape::line_bytes() const {
  constexpr int64_t ahead = 4;
  return 4 * (ahead + 8 * steps() + 1);
}

int64_t BandShape::shared_bytes() const {
  constexpr int64_t alignment = 16;
  const int64_t of_taps = ceil_div(channels * tap_rows * line_bytes(), alignment) * alignment;
  return of_taps + channels * input_rows() * (16 * pairs() + 8) * 2;
}

int BandShape::registers() const {
  return static_cast<int>(warp_rows * columns / 32 + 4 * pairs() + 2 * steps()) + 30;
}

double BandShape::products() const {
  const int64_t of_columns = columns / 8;
  return static_cast<double>(tap_rows * of_columns * steps()) * warp_rows / 16;
}
double BandShape::matrices() const {
  return static_cast<double>(tap_rows * pairs()) * warp_rows / 16;
}
double BandShape::words() const {
  return static_cast<double>(tap_rows * steps() * 4);
}

bool BandShape::warps_tile() const {
  constexpr int most_threads = 512, fewest_threads = 128;
  return rows % warp_rows == 0 && threads() <= most_threads && threads() >= fewest_threads;
}

bool BandShape::registers_suffice(const Arch& arch) const {
  return registers() <= std::min(arch.registers_per_thread, arch.registers_per_sm / threads()) - 16;
}

BlockWork BandShape::work(double times) const {
  const double warps = threads() / 32.0, of_rows = static_cast<double>(tap_rows);
  BlockWork block;
  block.threads = threads();
  block.registers = registers();
  block.shared_bytes = static_cast<double>(shared_bytes());
  block.math = MathClass::tensor_f16;
  block.warps_at_half_rate = 1;
  block.fma = times * warps * products() * instruction_fma / 32;
  block.instructions = times * warps * (products() + matrices() + words() * 1.5 + of_rows * 6 + 60);
  block.shared_wavefronts = times * warps * (matrices() * 4 + words());
  block.stall_clocks = times * 1200;
  block.code_instructions = 900 + (products() + matrices()) / of_rows;
  return block;
}

double BandShape::clocks(const Arch& arch, const Calibration& reached) const {
  const double multiply = std::ceil(threads() / 128.0) * products() * instruction_fma * 4 /
                          reached_products(arch, MathClass::tensor_f16, reached);
  return std::max(multiply, matrices() * 8);
}

std::optional<std::string> band_refusal(const TensorSpec& x, int64_t c_per_group, int64_t k, const SpatialAxes& axes) {
  constexpr int64_t fewest_taps = 7, most_taps_of_an_axis = 128;
  if (auto why = depthwise_refusal(x, c_per_group, Inner::channels)) return why;
  if (k != x.extents[dimension::channel]) return "channels have several filters";
  if (size_of(x.dtype) != 2) return "bands are of f16 and bf16";
  if (axes.planes.window != 1) return "filters have several planes";
  if (axes.rows.stride != 1 || axes.columns.stride != 1) return "the stride keeps neighbouring outputs apart";
  if (axes.columns.dilation != 1 && axes.columns.window != 1) return "dilation keeps the taps of a row apart";
  if (axes.columns.window < fewest_taps) return "rows of fewer than 7 taps leave most of a band empty";
  if (axes.rows.window > most_taps_of_an_axis || axes.columns.window > most_taps_of_an_axis) {
    return "a row or a column of a filter has more than 128 taps";
  }
  return std::nullopt;
}

int band_run(const TensorSpec& spec, int64_t channels, int of_block) {
  constexpr int longest = 8;
  return std::gcd(std::min(of_block, longest), widest_vector(spec, {dimension::channel}, channels));
}

namespace depthwise_tensor_descriptor {
namespace {

struct BandTile {
  int channels, p, q;  // of a block
  int warp_p;          // rows of outputs of a warp
};

BandShape shape_of(const BandTile& tile, const ConvolutionAddresses& conv) {
  return {tile.channels, conv.rows.window, conv.columns.window, conv.rows.dilation, tile.p, tile.q, 1, tile.warp_p};
}

// Operands, and afterwards sums.
int64_t shared_bytes(const BandTile& tile, const Contractions& parts) {
  constexpr int64_t alignment = 16;
  int64_t most = tile.p * (tile.q * (tile.channels + 1) + 1) * int64_t{4};
  for (const Contraction& part : parts.list) most = std::max(most, shape_of(tile, part.addresses).shared_bytes());
  return ceil_div(most, alignment) * alignment;
}

int y_run(const BandTile& tile, const ConvolutionAddresses& conv) {
  constexpr int longest = 8;
  if (!conv.y_along_k) return 1;
  return std::gcd(std::min(tile.channels, longest), output_vector_width(conv, conv.k()));
}

std::array<Count, 3> grid(const BandTile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  return {blocks_for(contraction, tiles_per_channel(conv, tile.p, tile.q), 1), Count{ceil_div(conv.k(), tile.channels)},
          Count{1}};
}

std::optional<std::string> refusal(const Contractions& parts, const Target& target) {
  if (parts.refusal) return parts.refusal;
  for (const Contraction& part : parts.list) {
    const ConvolutionAddresses& conv = part.addresses;
    if (auto why = band_refusal(conv.x, conv.c_per_group(), conv.k(), conv)) return why;
    if (conv.divided != Divided::nothing) return "filters differ between regions";
  }
  const Contraction& main = parts.main();
  return tensor_type_refusal(main.a_type(), main.b_type(), main.arithmetic, target);
}

Program program(const std::string& name, const BandTile& tile, const Contractions& parts, const Emitter& emit) {
  const int threads = shape_of(tile, parts.main().addresses).threads();
  const int64_t bytes = shared_bytes(tile, parts);
  Launch launch = contraction_launch(name, threads);
  launch.grid = grid_of(parts, [&](const Contraction& part) { return grid(tile, part); });
  launch.dynamic_shared_bytes = static_cast<unsigned>(bytes);
  return program_of(parts, emit, {launch}, [&](const Contraction& part) {
    const ConvolutionAddresses& conv = part.addresses;
    Prelude prelude = contraction_prelude(part);
    prelude.constant("CHANNELS", tile.channels).constant("TILE_P", tile.p).constant("TILE_Q", tile.q);
    prelude.constant("WARP_P", tile.warp_p).constant("THREADS", threads);
    prelude.constant("X_RUN", band_run(conv.x, conv.c(), tile.channels)).constant("Y_RUN", y_run(tile, conv));
    return prelude.constant("SHARED_BYTES", bytes);
  });
}

GridWork work_of(const BandTile& tile, const Contraction& contraction, const Target& target,
                 const Calibration& reached) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const BandShape shape = shape_of(tile, conv);
  const double warps = shape.threads() / 32.0, channels = tile.channels;
  const int x_run = band_run(conv.x, conv.c(), tile.channels);
  const double positions = static_cast<double>(shape.input_rows() * shape.pairs() * 16);
  const double loads = positions * channels / x_run / 32;  // of all warps, as below
  const double taps = channels * static_cast<double>(shape.tap_rows * shape.line_bytes()) / 4 / 32;
  const double outputs = static_cast<double>(tile.p) * tile.q, stores = outputs * channels / y_run(tile, conv) / 32;
  const double fill = loads * (9 + 4.0 * x_run) + taps * 40;
  const double finish = stores * (20 + 5.0 * y_run(tile, conv)) + outputs * channels / 32 * 2;

  GridWork work;
  work.blocks =
      static_cast<double>(tiles_per_channel(conv, tile.p, tile.q) * conv.n() * ceil_div(conv.k(), tile.channels));
  BlockWork& block = work.block = shape.work(1);
  block.instructions += fill + finish;
  block.shared_wavefronts += loads * x_run / 2 + taps + outputs * channels / 32 * 3;
  block.global_sectors = loads * 32 + taps * 8 + stores * 32;
  block.l2_bytes = positions * 2 * std::max(channels, 16.0) + channels * static_cast<double>(conv.taps()) * 2 +
                   outputs * channels * 2;
  block.latency_clocks = 1900 + 700 * (loads / warps / 4 + taps / warps / 8) + (fill + finish) / std::min(4.0, warps) +
                         shape.clocks(target.arch, reached);
  block.code_instructions += tile.warp_p * tile.q / 32.0 * 8;
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
      .adds([](const BandTile&, const Contractions& parts, const Target&) {
        return fmt::format("tensor cores, rows of {} taps in steps of 16 columns, from a multiple of 8 on",
                           parts.main().addresses.columns.window);
      })
      .param("CHANNELS", &BandTile::channels, {8, 4, 16})
      .param("TILE_P", &BandTile::p, {32, 16, 64})
      .param("TILE_Q", &BandTile::q, {32, 16, 64})
      .param("WARP_P", &BandTile::warp_p, {32, 16})
      .rule("warps tile the block", for_main([](const BandTile& tile, const Contraction& part, const Target&) {
              return shape_of(tile, part.addresses).warps_tile();
            }))
      .pruning("the tile suits the image", for_main([](const BandTile& tile, const Contraction& part, const Target&) {
                 return (tile.p == 16 || tile.p < 2 * part.addresses.rows.outputs) &&
                        (tile.q == 16 || tile.q < 2 * part.addresses.columns.outputs);
               }))
      .pruning("CHANNELS suits the channels",
               for_main([](const BandTile& tile, const Contraction& part, const Target&) {
                 return tile.channels == 4 || tile.channels < 2 * part.addresses.k();
               }))
      .rule("x, filters and sums fit into shared memory",
            [](const BandTile& tile, const Contractions& parts, const Target& target) {
              return !parts.refusal && shared_bytes(tile, parts) <= target.arch.shared_per_block;
            })
      .rule("registers suffice", for_all([](const BandTile& tile, const Contraction& part, const Target& target) {
              return shape_of(tile, part.addresses).registers_suffice(target.arch);
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
