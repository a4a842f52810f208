#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "contraction/block_estimate.h"
#include "conv/depthwise/depthwise.h"
#include "conv/filter_parts.h"
#include "descriptor/numbers.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_filter_depthwise_nchw_descriptor {
namespace {

using descriptor::ceil_div;
using descriptor::FilterGradient;

struct Tile {
  int p, q, lanes, threads, split;
};

int64_t tiles(const Tile& tile, const FilterGradient& gradient) {
  return tiles_per_channel(gradient, tile.p, tile.q) * gradient.n();
}

int64_t filter_blocks(const Tile& tile, const FilterGradient& gradient) {
  return ceil_div(gradient.k() * gradient.c_per_group(), tile.threads / tile.lanes);
}

int x_run(const Tile& tile, const FilterGradient& gradient) {
  return descriptor::depthwise_x_run(gradient.x, gradient.columns, tile.q);
}

int dy_run(const Tile& tile, const FilterGradient& gradient) {
  return descriptor::widest_vector(gradient.dy, {descriptor::dimension::column},
                                   std::gcd(gradient.columns.outputs, int64_t{tile.q}));
}

// Accesses of one row of x.
int64_t runs(const Tile& tile, const FilterGradient& gradient) {
  return descriptor::depthwise_runs(gradient.columns, tile.q, x_run(tile, gradient));
}

// Sums, dy of a tile, and a row of x.
int registers(const Tile& tile, const FilterGradient& gradient) {
  return static_cast<int>(gradient.taps() + int64_t{tile.p} * tile.q +
                          descriptor::input_positions(gradient.columns, tile.q) + 32);
}

descriptor::SplitGrid grid(const Tile& tile, const FilterGradient& gradient) {
  return {tile.threads, tile.split, filter_blocks(tile, gradient)};
}

// A channel of x is read for each filter of its group, one of dy for each of their channels.
std::optional<std::string> refusal(const FilterGradient& gradient, const Target&) {
  constexpr int64_t most_shared = 8, one_of_x = 1;  // a filter here has one channel
  if (std::min(gradient.c_per_group(), gradient.k_per_group()) > most_shared) {
    return "groups have more than 8 channels of x and of dy";
  }
  return descriptor::depthwise_gradient_refusal(gradient, one_of_x, descriptor::Inner::pixels);
}

// Rules: what their names below say.
bool loops_are_short(const Tile& tile, const FilterGradient& gradient, const Target&) {
  constexpr int64_t longest_body = 2500, most_accesses = 200;
  const bool least = tile.p == 1 && tile.q == 1;
  return least || (gradient.taps() * tile.p * tile.q <= longest_body &&
                   gradient.planes.window * descriptor::met_positions(gradient.rows, tile.p) * runs(tile, gradient) <=
                       most_accesses);
}
bool registers_suffice(const Tile& tile, const FilterGradient& gradient, const Target& target) {
  const int limit = std::min(target.arch.registers_per_thread, target.arch.registers_per_sm / tile.threads);
  return gradient.taps() <= descriptor::most_sums && registers(tile, gradient) <= limit - 40;
}

bool has_open_kernel(const Tile& tile, const FilterGradient& gradient, const Target& target) {
  Tile open = tile;
  open.p = open.q = 4;
  if (!loops_are_short(open, gradient, target) || !registers_suffice(open, gradient, target)) open.p = open.q = 1;
  return gradient.c_per_group() == 1 && tile.p == open.p && tile.q == open.q && tile.lanes == 32 && tile.threads == 128;
}

Program program(const Tile& tile, const FilterGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::gradient_prelude(gradient, descriptor::FixedAxes::windows);
  prelude.constant("THREADS", tile.threads);
  prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q).constant("LANES", tile.lanes);
  prelude.constant("X_RUN", x_run(tile, gradient)).constant("DY_RUN", dy_run(tile, gradient));
  prelude.constant("SHIFT", descriptor::depthwise_shift(gradient.columns, x_run(tile, gradient)));
  return descriptor::split_gradient_program("conv_backward_filter_depthwise_nchw", gradient, grid(tile, gradient),
                                            std::move(prelude), emit);
}

// Cost of an access of a warp, in units of BlockWork::global_sectors: its lanes are at neighbouring tiles, and touch
// several lines. How much a line costs was chosen by the clock's times of the sample's layers. Pixels of tiles are
// `row_stride` and `column_stride` apart in `spec`.
double access_of_lanes(const Tile& tile, const FilterGradient& gradient, const TensorSpec& spec, int64_t row_stride,
                       int64_t column_stride) {
  using namespace descriptor::dimension;
  const int64_t in_row = ceil_div(gradient.columns.outputs, tile.q),
                in_column = ceil_div(gradient.rows.outputs, tile.p);
  std::set<int64_t> lines;
  for (int64_t lane = 0; lane < 32; ++lane) {
    const int64_t number = lane % tile.lanes, filter = lane / tile.lanes;
    const int64_t offset = number % in_row * tile.q * column_stride * spec.strides[column] +
                           number / in_row % in_column * tile.p * row_stride * spec.strides[row] +
                           number / (in_row * in_column) * spec.strides[batch] + filter * spec.strides[channel];
    lines.insert(offset * size_of(spec.dtype) / 128);
  }
  return std::max(4.0, 2.5 * static_cast<double>(lines.size()));
}

Estimate predict(const Tile& tile, const FilterGradient& gradient, const Target& target, const DeviceFigures& device) {
  const double warps = tile.threads / 32.0;
  const auto steps = static_cast<double>(ceil_div(tiles(tile, gradient), int64_t{tile.lanes} * tile.split));
  const double taps = static_cast<double>(gradient.taps()), outputs = tile.p * tile.q;
  const auto rows = static_cast<double>(gradient.planes.window * descriptor::met_positions(gradient.rows, tile.p));
  const double dy_run = conv_backward_filter_depthwise_nchw_descriptor::dy_run(tile, gradient);
  const double loads = rows * static_cast<double>(descriptor::input_positions(gradient.columns, tile.q));
  const double x_accesses = rows * static_cast<double>(runs(tile, gradient)), dy_accesses = outputs / dy_run;
  const double x_size = size_of(gradient.x.dtype), dy_size = size_of(gradient.dy.dtype);
  const double of_step = taps * outputs + x_accesses * 3 + (x_size == 4 ? 0 : loads) + dy_accesses * 3 +
                         (dy_size == 4 ? 0 : outputs) + rows * 2 + 70;
  const double at_end = taps * (2 * std::log2(std::min(tile.lanes, 32)) + 4);
  const double x_access = access_of_lanes(tile, gradient, gradient.x, gradient.rows.stride, gradient.columns.stride);
  const double dy_access = access_of_lanes(tile, gradient, gradient.dy, 1, 1);

  descriptor::BlockWork block;
  block.threads = tile.threads;
  block.registers = registers(tile, gradient);
  block.shared_bytes = static_cast<double>(gradient.taps()) * 4 * std::max(1, tile.threads / std::min(tile.lanes, 32));
  block.fma = warps * steps * taps * outputs;
  block.instructions = warps * (steps * of_step + at_end + 60);
  block.shared_wavefronts = warps * taps * 5;
  block.global_sectors = warps * steps * (x_accesses * x_access + dy_accesses * dy_access);
  block.l2_bytes = tile.threads * steps *
                   (outputs * static_cast<double>(gradient.rows.stride * gradient.columns.stride) * 1.3 * x_size +
                    outputs * dy_size);
  block.code_instructions = 1.1 * of_step + at_end;
  block.latency_clocks = 1500 + steps * (900 + 1.3 * of_step) + 4 * at_end;
  return descriptor::split_gradient_estimate(gradient, grid(tile, gradient), block, target, device);
}

}  // namespace
}  // namespace conv_backward_filter_depthwise_nchw_descriptor

Algorithm conv_backward_filter_depthwise_nchw() {
  using namespace conv_backward_filter_depthwise_nchw_descriptor;
  return describe<Tile, FilterGradient>("conv_backward_filter_depthwise_nchw", "conv_backward_filter",
                                        "conv/depthwise/conv_backward_filter_depthwise_nchw.cu")
      .takes_prologue()
      .applies(refusal)
      .param("TILE_P", &Tile::p, {4, 2, 7, 1})
      .param("TILE_Q", &Tile::q, {4, 8, 7, 14, 1})
      .param("LANES", &Tile::lanes, {32, 128})
      .param("THREADS", &Tile::threads, {128, 256})
      .param("SPLIT", &Tile::split, {1, 4, 16, 64})
      .pruning("the tile suits the image",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return descriptor::tile_suits_the_image(gradient, tile.p, tile.q);
               })
      .rule("the unrolled loops are not too long", loops_are_short)
      .rule("registers suffice", registers_suffice)
      .pruning("each part has a tile for its threads",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return tile.split == 1 || tiles(tile, gradient) >= int64_t{tile.lanes} * tile.split;
               })
      .rule("splitting is worthwhile",
            [](const Tile& tile, const FilterGradient& gradient, const Target&) {
              return descriptor::split_is_worthwhile(gradient, grid(tile, gradient));
            })
      .rule("the grid fits", [](const Tile& tile, const FilterGradient& gradient,
                                const Target&) { return filter_blocks(tile, gradient) < most_blocks_in_x; })
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
