#include <algorithm>
#include <cmath>

#include "contraction/block_estimate.h"
#include "contraction/tensor_tiling.h"
#include "conv/depthwise/depthwise.h"
#include "conv/depthwise/depthwise_tensor.h"
#include "conv/filter_parts.h"
#include "descriptor/numbers.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_filter_depthwise_tensor_descriptor {
namespace {

using descriptor::BandShape;
using descriptor::ceil_div;
using descriptor::FilterGradient;

struct Tile {
  int channels, p, q;  // of a block
  int warp_r;          // rows of taps of a warp
  int split;
};

// Rows of dy are bands, and taps of the filter the sums.
BandShape shape_of(const Tile& tile, const FilterGradient& gradient) {
  const int64_t rows = ceil_div(gradient.rows.window, 16) * 16, columns = ceil_div(gradient.columns.window, 8) * 8;
  return {tile.channels, tile.p, tile.q, gradient.rows.stride, rows, columns, gradient.rows.dilation, tile.warp_r};
}

int64_t tiles(const Tile& tile, const FilterGradient& gradient) {
  return tiles_per_channel(gradient, tile.p, tile.q) * gradient.n();
}

int x_run(const Tile& tile, const FilterGradient& gradient) {
  return descriptor::band_run(gradient.x, gradient.c(), tile.channels);
}
int dy_run(const Tile& tile, const FilterGradient& gradient) {
  return descriptor::band_run(gradient.dy, gradient.k(), tile.channels);
}

descriptor::SplitGrid grid(const Tile& tile, const FilterGradient& gradient) {
  const BandShape shape = shape_of(tile, gradient);
  return {shape.threads(), tile.split, ceil_div(gradient.k(), tile.channels), 1, shape.shared_bytes()};
}

std::optional<std::string> refusal(const FilterGradient& gradient, const Target& target) {
  if (gradient.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
  if (auto why = descriptor::band_refusal(gradient.x, gradient.c_per_group(), gradient.k(), gradient)) return why;
  return descriptor::tensor_type_refusal(gradient.dy.dtype, gradient.x.dtype, gradient.arithmetic, target);
}

Program program(const Tile& tile, const FilterGradient& gradient, const Target&, const Emitter& emit) {
  const descriptor::SplitGrid grid = conv_backward_filter_depthwise_tensor_descriptor::grid(tile, gradient);
  Prelude prelude = descriptor::gradient_prelude(gradient);
  prelude.constant("CHANNELS", tile.channels).constant("TILE_P", tile.p).constant("TILE_Q", tile.q);
  prelude.constant("WARP_R", tile.warp_r).constant("THREADS", grid.threads);
  prelude.constant("X_RUN", x_run(tile, gradient)).constant("DY_RUN", dy_run(tile, gradient));
  prelude.constant("SHARED_BYTES", grid.dynamic_shared_bytes);
  return descriptor::split_gradient_program("conv_backward_filter_depthwise_tensor", gradient, grid, std::move(prelude),
                                            emit);
}

Estimate predict(const Tile& tile, const FilterGradient& gradient, const Target& target, const DeviceFigures& device) {
  const BandShape shape = shape_of(tile, gradient);
  const double warps = shape.threads() / 32.0, channels = tile.channels;
  const double steps = static_cast<double>(ceil_div(tiles(tile, gradient), tile.split));
  const double positions = static_cast<double>(shape.input_rows() * shape.pairs() * 16), outputs = tile.p * tile.q;
  const double x_loads = positions * channels / x_run(tile, gradient) / 32,
               dy_loads = outputs * channels / dy_run(tile, gradient) / 32;  // of all warps
  const double fill = x_loads * (9 + 4.0 * x_run(tile, gradient)) + dy_loads * (12 + 3.0 * dy_run(tile, gradient));
  const double sums = tile.warp_r * static_cast<double>(shape.columns) / 32;  // of a thread

  descriptor::BlockWork block = shape.work(steps);
  block.instructions += steps * fill + warps * sums * 12;
  block.shared_wavefronts += steps * (positions + outputs) * channels / 64;
  block.global_sectors = steps * (x_loads + dy_loads) * 32 + warps * sums * 32;
  block.l2_bytes = steps * (positions + outputs) * 2 * std::max(channels, 16.0);
  block.latency_clocks = 1500 + sums * 40 +
                         steps * (900 + 700 * x_loads / warps / 4 + fill / std::min(4.0, warps) +
                                  shape.clocks(target.arch, device.calibration));
  block.code_instructions += sums * 20;
  return descriptor::split_gradient_estimate(gradient, grid(tile, gradient), block, target, device);
}

}  // namespace
}  // namespace conv_backward_filter_depthwise_tensor_descriptor

Algorithm conv_backward_filter_depthwise_tensor() {
  using namespace conv_backward_filter_depthwise_tensor_descriptor;
  return describe<Tile, FilterGradient>("conv_backward_filter_depthwise_tensor", "conv_backward_filter",
                                        "conv/depthwise/conv_backward_filter_depthwise_tensor.cu")
      .applies(refusal)
      .param("CHANNELS", &Tile::channels, {8, 4, 16})
      .param("TILE_P", &Tile::p, {16, 32, 8, 64})
      .param("TILE_Q", &Tile::q, {32, 64, 16})
      .param("WARP_R", &Tile::warp_r, {16, 32})
      .param("SPLIT", &Tile::split, {1, 2, 4, 8, 16, 32, 64, 128})
      .rule("warps tile the taps", [](const Tile& tile, const FilterGradient& gradient,
                                      const Target&) { return shape_of(tile, gradient).warps_tile(); })
      .pruning("the tile suits the image",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return (tile.p == 8 || tile.p < 2 * gradient.rows.outputs) &&
                        (tile.q == 16 || tile.q < 2 * gradient.columns.outputs);
               })
      .pruning("CHANNELS suits the channels",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return tile.channels == 4 || tile.channels < 2 * gradient.k();
               })
      .rule("x and dy fit into shared memory",
            [](const Tile& tile, const FilterGradient& gradient, const Target& target) {
              return shape_of(tile, gradient).shared_bytes() <= target.arch.shared_per_block;
            })
      .rule("registers suffice",
            [](const Tile& tile, const FilterGradient& gradient, const Target& target) {
              return shape_of(tile, gradient).registers_suffice(target.arch);
            })
      .pruning("each part has a tile",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return tile.split == 1 || tiles(tile, gradient) >= tile.split;
               })
      .rule("splitting is worthwhile",
            [](const Tile& tile, const FilterGradient& gradient, const Target&) {
              return descriptor::split_is_worthwhile(gradient, grid(tile, gradient));
            })
      .rule("the grid fits", [](const Tile& tile, const FilterGradient& gradient,
                                const Target&) { return ceil_div(gradient.k(), tile.channels) < most_blocks_in_x; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
