#include <algorithm>
#include <cmath>

#include "contraction/block_estimate.h"
#include "conv/filter_parts.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_filter_direct_descriptor {
namespace {

using descriptor::ceil_div;
using descriptor::FilterGradient;

struct Shape {
  int threads, tap_tile, split;
};

int64_t filters(const FilterGradient& gradient) {
  return gradient.k() * gradient.c_per_group();
}

// Filters side by side: a warp of them where their channels stand side by side.
int lanes(const FilterGradient& gradient) {
  const descriptor::Inner inner = descriptor::inner_of(gradient.dy);
  const bool channels =
      inner == descriptor::Inner::channels || (inner == descriptor::Inner::either && filters(gradient) > 1);
  return channels ? 32 : 1;
}

int64_t filter_blocks(const FilterGradient& gradient) {
  return ceil_div(filters(gradient), lanes(gradient));
}

// Taps of a thread: all of a filter, or some rows of it, or a part of a row.
struct TapTile {
  int64_t planes, rows, columns;

  TapTile(const Shape& shape, const FilterGradient& gradient) {
    const bool is_whole = gradient.taps() <= shape.tap_tile;
    planes = is_whole ? gradient.planes.window : 1;
    columns = std::min<int64_t>(gradient.columns.window, shape.tap_tile);
    rows = is_whole ? gradient.rows.window : std::clamp<int64_t>(shape.tap_tile / columns, 1, gradient.rows.window);
  }

  int64_t taps() const { return planes * rows * columns; }
  // Tiles of a filter.
  int64_t tiles(const FilterGradient& gradient) const {
    return ceil_div(gradient.planes.window, planes) * ceil_div(gradient.rows.window, rows) *
           ceil_div(gradient.columns.window, columns);
  }
};

int64_t windows(const FilterGradient& gradient) {
  return gradient.n() * gradient.pixels_per_image();
}

int64_t places(const Shape& shape, const FilterGradient& gradient) {
  return shape.threads / lanes(gradient);
}

descriptor::SplitGrid grid(const Shape& shape, const FilterGradient& gradient) {
  return {shape.threads, shape.split, filter_blocks(gradient), TapTile(shape, gradient).tiles(gradient)};
}

Program program(const Shape& shape, const FilterGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads).constant("LANES", lanes(gradient));
  const TapTile tile(shape, gradient);
  prelude.constant("TILE_T", tile.planes).constant("TILE_R", tile.rows).constant("TILE_S", tile.columns);

  return descriptor::split_gradient_program("conv_backward_filter_direct", gradient, grid(shape, gradient),
                                            std::move(prelude), emit);
}

Estimate predict(const Shape& shape, const FilterGradient& gradient, const Target& target,
                 const DeviceFigures& device) {
  const double warps = shape.threads / 32.0;
  const TapTile tile(shape, gradient);
  const auto taps = static_cast<double>(tile.taps()), rows = static_cast<double>(tile.planes * tile.rows);
  const double steps =
      std::ceil(static_cast<double>(windows(gradient)) / static_cast<double>(places(shape, gradient) * shape.split));
  const int64_t pitch = lanes(gradient) == 1
                            ? gradient.x.strides[descriptor::dimension::column] * gradient.columns.stride
                            : gradient.x.strides[descriptor::dimension::channel];
  const double lane_bytes = static_cast<double>(std::clamp<int64_t>(pitch * size_of(gradient.x.dtype), 1, 32));

  descriptor::BlockWork block;
  block.threads = shape.threads;
  block.registers = 40 + taps;
  block.shared_bytes = shape.threads * 4.0;
  block.fma = warps * steps * taps;
  block.instructions = block.fma + warps * (steps * (24 + 6 * rows + 4 * taps) + taps * 20 + 60);
  block.global_sectors = warps * steps * (taps + 1) * lane_bytes;
  // Taps share what they read through L1.
  block.l2_bytes = shape.threads * steps * 2 * lane_bytes;
  block.latency_clocks = 1500 + steps * (1000 + 30 * taps) + taps * 120;
  return descriptor::split_gradient_estimate(gradient, grid(shape, gradient), block, target, device);
}

}  // namespace
}  // namespace conv_backward_filter_direct_descriptor

Algorithm conv_backward_filter_direct() {
  using namespace conv_backward_filter_direct_descriptor;
  return describe<Shape, FilterGradient>("conv_backward_filter_direct", "conv_backward_filter",
                                         "conv/direct/conv_backward_filter_direct.cu")
      .takes_prologue()
      .applies([](const FilterGradient& gradient, const Target&) -> std::optional<std::string> {
        constexpr int64_t most_channels = 16;
        if (gradient.c_per_group() > most_channels) return "a group has more than 16 channels of x";
        if (gradient.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
        return std::nullopt;
      })
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .param("TAP_TILE", &Shape::tap_tile, {32, 16})
      .param("SPLIT", &Shape::split, {1, 4, 16, 64})
      .rule("TAP_TILE suits the filter",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return shape.tap_tile == 32 || gradient.taps() > shape.tap_tile;
            })
      .pruning("each part has windows for its threads",
               [](const Shape& shape, const FilterGradient& gradient, const Target&) {
                 return shape.split == 1 || windows(gradient) >= 2 * places(shape, gradient) * shape.split;
               })
      .rule("splitting is worthwhile",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return descriptor::split_is_worthwhile(gradient, grid(shape, gradient));
            })
      .rule("the grid fits",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return filter_blocks(gradient) < most_blocks_in_x &&
                     TapTile(shape, gradient).tiles(gradient) <= most_blocks_in_y;
            })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
