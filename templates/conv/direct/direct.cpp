#include "conv/direct/direct.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "contraction/block_estimate.h"
#include "descriptor/numbers.h"

namespace kiln::descriptor {
namespace direct_convolution_descriptor {
namespace {

struct Tile {
  int p, k, threads;
};

int64_t filter_elements(const ConvolutionAddresses& conv) {
  return conv.c_per_group() * conv.taps();
}

// Rows of x that a thread's outputs need.
int64_t input_rows(const Tile& tile, const ConvolutionAddresses& conv) {
  return (tile.p - 1) * conv.rows.stride + conv.rows.reach();
}

int64_t channel_tiles(const Tile& tile, const ConvolutionAddresses& conv) {
  return conv.groups * ceil_div(conv.k_per_group(), tile.k);
}

int64_t columns_per_image(const Tile& tile, const ConvolutionAddresses& conv) {
  return conv.planes.outputs * ceil_div(conv.rows.outputs, tile.p) * conv.columns.outputs;
}

// Channels of one access of x: as many as fit the registers of a column.
int x_run(const Tile& tile, const ConvolutionAddresses& conv) {
  if (!conv.channels_inner) return 1;
  int run = widest_vector(conv.x, {dimension::channel}, conv.c_per_group());
  while (run > 1 && run * input_rows(tile, conv) > 24) run /= 2;
  return run;
}

int y_run(const Tile& tile, const ConvolutionAddresses& conv) {
  if (!conv.y_along_k) return 1;
  return output_vector_width(conv, std::gcd(conv.k_per_group(), int64_t{std::min(tile.k, 8)}));
}

// Rows of x that some tap of some output of a thread meets: loads of one column.
int64_t met_rows(const Tile& tile, const ConvolutionAddresses& conv) {
  return std::min(input_rows(tile, conv), tile.p * conv.rows.window);
}

// How far the kernel unrolls: tap columns and steps of X_RUN channels.
struct Unrolling {
  int64_t s, c;
};

// All tap columns, unless the code gets too long for the instruction cache; then channels, until enough loads are under
// way to hide their latency.
Unrolling unrolling(const Tile& tile, const ConvolutionAddresses& conv) {
  constexpr int64_t longest_body = 1600, loads_under_way = 12;
  const int64_t products = conv.rows.window * tile.p * tile.k * x_run(tile, conv);  // of one tap column
  if (products * conv.columns.window > longest_body) return {1, 1};
  Unrolling result{conv.columns.window, 1};
  const int64_t steps = conv.c_per_group() / x_run(tile, conv);
  while (steps % (result.c * 2) == 0 && result.c * 2 * conv.columns.window * met_rows(tile, conv) <= loads_under_way &&
         result.c * 2 * conv.columns.window * products <= longest_body) {
    result.c *= 2;
  }
  return result;
}

// Registers of a column of x as it is stored.
int64_t column_registers(const Tile& tile, const ConvolutionAddresses& conv) {
  return met_rows(tile, conv) * ceil_div(x_run(tile, conv) * size_of(conv.x.dtype), 4);
}

// Columns that are loading or loaded at a time: no more than there are registers for.
int64_t columns_ahead(const Tile& tile, const ConvolutionAddresses& conv) {
  constexpr int64_t fewest = 2, most_registers = 32;
  const Unrolling unroll = unrolling(tile, conv);
  return std::min(unroll.s * unroll.c, std::max(fewest, most_registers / column_registers(tile, conv)));
}

int registers(const Tile& tile, const ConvolutionAddresses& conv) {
  return static_cast<int>(tile.p * tile.k + columns_ahead(tile, conv) * column_registers(tile, conv) + tile.k + 32);
}

// A warp's load of neighbouring elements of a filter.
Access filter_access(const ConvolutionAddresses& conv) {
  const int64_t element = size_of(conv.w.dtype), lanes = std::min<int64_t>(32, filter_elements(conv));
  const auto along = [&](int64_t extent, size_t axis) { return LaneAxis{extent, conv.w.strides[axis] * element}; };
  const LaneAxis channels = along(conv.c_per_group(), dimension::channel),
                 columns = along(conv.columns.window, dimension::column),
                 rows = along(conv.rows.window, dimension::row), planes = along(conv.planes.window, dimension::plane);
  return conv.channels_inner ? access_along({channels, columns, rows, planes}, element, lanes)
                             : access_along({columns, rows, planes, channels}, element, lanes);
}

std::optional<std::string> refusal(const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  constexpr int64_t longest_filter = 2048;
  if (filter_elements(conv) > longest_filter) return "a filter has more elements than shared memory holds";
  constexpr int64_t tallest_window = 32;
  if (input_rows({1, 1, 1}, conv) > tallest_window) return "a window spans more than 32 rows of x";
  if (conv.taps() > 256) return "a filter has more than 256 taps";
  return std::nullopt;
}

// Rules: what their names below say.
bool rows_fit_a_mask(const Tile& tile, const Contraction& part, const Target&) {
  return input_rows(tile, part.addresses) <= 32;
}
bool filters_fit(const Tile& tile, const Contraction& part, const Target& target) {
  return filter_elements(part.addresses) * tile.k * 4 <= target.arch.shared_per_block_default;
}
bool registers_suffice(const Tile& tile, const Contraction& part, const Target& target) {
  const int limit = std::min(target.arch.registers_per_thread, target.arch.registers_per_sm / tile.threads);
  return tile.p * tile.k <= 64 && registers(tile, part.addresses) <= limit - 40;
}

// Where channels are inner, how many a thread takes together depends on their alignment.
std::optional<std::string> order(const Tile&, const Contractions& parts, const Target&) {
  const ConvolutionAddresses& conv = parts.main().addresses;
  if (conv.channels_inner) return std::nullopt;
  return fmt::format("f32 lanes, {} planes, {} channels, {} columns and {} rows of taps after each other",
                     conv.planes.window, conv.c_per_group(), conv.columns.window, conv.rows.window);
}

// For few channels and for many the tallest tile that can be, and the lowest, for small images.
bool has_open_kernel(const Tile& tile, const Contractions& parts, const Target& target) {
  if (tile.threads != 128 || (tile.k != 4 && tile.k != 8)) return false;
  if (tile.p == 1) return true;
  for (const int rows : {4, 2}) {
    const Tile open{rows, tile.k, tile.threads};
    const bool can_be = for_all(rows_fit_a_mask)(open, parts, target) && for_all(filters_fit)(open, parts, target) &&
                        for_all(registers_suffice)(open, parts, target);
    if (can_be) return tile.p == rows;
  }
  return false;
}

std::array<Count, 3> grid(const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  return {blocks_for(contraction, columns_per_image(tile, conv), tile.threads), Count{channel_tiles(tile, conv)},
          Count{1}};
}

void add_constants(Prelude& prelude, const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  prelude.constant("TILE_P", tile.p).constant("TILE_K", tile.k).constant("THREADS", tile.threads);
  prelude.constant("X_RUN", x_run(tile, conv)).constant("Y_RUN", y_run(tile, conv));
  const Unrolling unroll = unrolling(tile, conv);
  prelude.constant("UNROLL_S", unroll.s).constant("UNROLL_C", unroll.c);
  prelude.constant("AHEAD", columns_ahead(tile, conv));
  prelude.extent("P_TILES", ceil_div(conv.rows.outputs, tile.p));
  prelude.extent("K_TILES", ceil_div(conv.k_per_group(), tile.k));
}

GridWork work_of(const Tile& tile, const Contraction& contraction) {
  const ConvolutionAddresses& conv = contraction.addresses;
  const double taps = static_cast<double>(conv.taps());
  const double filter = static_cast<double>(filter_elements(conv));
  // Warps of a block that have columns: few where images are small.
  const int64_t columns = std::max<int64_t>(1, columns_per_image(tile, conv) * conv.n());
  const int64_t blocks = ceil_div(columns, tile.threads);
  const double warps = static_cast<double>(ceil_div(columns, 32)) / static_cast<double>(blocks);
  const double rows = static_cast<double>(met_rows(tile, conv));
  const double run = x_run(tile, conv), inside = inside_share(conv);
  const double loads = filter / static_cast<double>(conv.rows.window) * rows / run;  // of x, a thread
  // Neighbouring lanes are neighbours in q: a whole pixel apart where channels stand side by side.
  const int64_t element = size_of(conv.x.dtype);
  const Access x =
      access_at_pitch(conv.columns.stride * conv.x.strides[dimension::column] * element, x_run(tile, conv) * element);
  const int64_t stored = size_of(conv.y.dtype) * y_run(tile, conv);
  const Access y = access_at_pitch(conv.y.strides[dimension::column] * size_of(conv.y.dtype), stored);
  const double stores = static_cast<double>(tile.p * tile.k) / y_run(tile, conv);  // a thread
  const Access w = filter_access(conv);
  const double fills = filter * tile.k / 32;  // accesses of w, and of shared memory, a block

  GridWork work;
  BlockWork& block = work.block;
  work.blocks = static_cast<double>(blocks * channel_tiles(tile, conv));
  block.threads = tile.threads;
  block.registers = registers(tile, conv);
  block.shared_bytes = filter * tile.k * 4;
  block.fma = warps * filter * tile.p * tile.k;
  const double shared_reads = filter * std::max(1.0, tile.k / 4.0);
  // Loads are not under way across groups of steps: the schedulers see gaps.
  block.instructions =
      block.fma * 1.15 +
      warps * (loads * (3 + run * contraction.prologue_instructions) + shared_reads + 120 + tile.p * tile.k * 6.0) +
      fills * 8;
  block.shared_wavefronts = warps * shared_reads * (tile.k >= 4 ? 4 : tile.k) + fills * std::min(32, tile.k);
  // Loads outside of x load nothing.
  block.global_sectors = warps * (loads * x.l1 * inside + stores * y.l1) + fills * w.l1;
  // A column's neighbours and the rows that windows share come from L1.
  const double reuse = std::max(1.0, taps * tile.p / rows / static_cast<double>(conv.columns.stride));
  block.l2_bytes = 32 * (warps * (loads * inside * x.sectors / reuse + stores * y.sectors) + fills * w.sectors);
  const Unrolling unroll = unrolling(tile, conv);
  block.code_instructions = 120 + 12.0 * tile.p * tile.k +
                            static_cast<double>(unroll.s * unroll.c) *
                                (1.15 * static_cast<double>(conv.rows.window * tile.p * tile.k) * run + 4 * rows);
  // A column's loads are waited for once in `ahead` columns.
  const double ahead = static_cast<double>(columns_ahead(tile, conv));
  block.latency_clocks = 1500 + filter * tile.k / tile.threads * 20 + 1.6 * block.fma / warps + 8 * shared_reads +
                         loads * (8 + 450 / rows / ahead + 4 * run * contraction.prologue_instructions);
  // Each step to further channels finds elements that no block has had yet.
  block.chain_clocks = 400 * static_cast<double>(conv.c_per_group()) / run / static_cast<double>(unroll.c);
  work.dram_bytes = compulsory_bytes(contraction);
  return work;
}

}  // namespace
}  // namespace direct_convolution_descriptor

Algorithm direct_convolution(const std::string& template_path, const std::string& operation, ContractionMaker make) {
  using namespace direct_convolution_descriptor;
  const std::string name = kernel_of(template_path);
  auto description =
      describe<Tile>(name, operation, template_path, make)
          .takes_prologue()
          .adds(order)
          .applies([](const Contractions& parts, const Target&) { return refusal_of(parts, refusal); })
          .param("TILE_P", &Tile::p, {4, 2, 1, 8})
          .param("TILE_K", &Tile::k, {8, 4, 2, 1, 16})
          .param("THREADS", &Tile::threads, {128, 64, 256})
          .pruning("TILE_P suits the image", for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     return tile.p == 1 || tile.p < 2 * part.addresses.rows.outputs;
                   }))
          .pruning("TILE_K suits the channels", for_main([](const Tile& tile, const Contraction& part, const Target&) {
                     const int64_t k = part.addresses.k_per_group();
                     return tile.k < 2 * k && (tile.k >= 4 || k < 4 || k % 4 != 0);
                   }))
          .rule("window rows fit a mask", for_all(rows_fit_a_mask))
          .rule("filters fit into shared memory", for_all(filters_fit))
          .rule("registers suffice", for_all(registers_suffice))
          .opens(has_open_kernel);
  return of_one_launch(std::move(description), name, grid, add_constants, work_of, FixedAxes::filters);
}

}  // namespace kiln::descriptor
