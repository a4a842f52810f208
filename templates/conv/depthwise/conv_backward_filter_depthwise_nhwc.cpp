#include <algorithm>
#include <cmath>

#include "contraction/block_estimate.h"
#include "conv/depthwise/depthwise.h"
#include "conv/filter_parts.h"
#include "descriptor/numbers.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_filter_depthwise_nhwc_descriptor {
namespace {

using descriptor::ceil_div;
using descriptor::FilterGradient;

struct Tile {
  int p, q, rows, vector, k, threads, split;
};

// Rows of taps of a thread.
int64_t tap_rows(const Tile& tile, const FilterGradient& gradient) {
  return std::min<int64_t>(tile.rows, gradient.rows.window);
}

int64_t tap_groups(const Tile& tile, const FilterGradient& gradient) {
  return ceil_div(gradient.rows.window, tap_rows(tile, gradient));
}

int threads(const Tile& tile, const FilterGradient& gradient) {
  return tile.threads * static_cast<int>(tap_groups(tile, gradient));
}

int64_t taps_of_thread(const Tile& tile, const FilterGradient& gradient) {
  return gradient.planes.window * tap_rows(tile, gradient) * gradient.columns.window;
}

int64_t tiles(const Tile& tile, const FilterGradient& gradient) {
  return tiles_per_channel(gradient, tile.p, tile.q) * gradient.n();
}

// Tiles that a block works on side by side.
int64_t places(const Tile& tile) {
  return tile.threads / (tile.k / tile.vector);
}

int64_t channel_tiles(const Tile& tile, const FilterGradient& gradient) {
  return ceil_div(gradient.k(), tile.k);
}

// Widest access that dy and x (if its channels are those of dy) allow.
int widest_access(const FilterGradient& gradient) {
  using descriptor::dimension::channel;
  const int width = descriptor::widest_vector(gradient.dy, {channel}, gradient.k());
  if (gradient.k() != gradient.c()) return width;
  return std::min(width, descriptor::widest_vector(gradient.x, {channel}, gradient.c()));
}

// Sums, dy of a tile, and two rows of x on their way: as read in machine code for sm_80.
int registers(const Tile& tile, const FilterGradient& gradient) {
  const int64_t pixel = ceil_div(tile.vector * size_of(gradient.x.dtype), 4);
  const int64_t row = descriptor::met_positions(gradient.columns, tile.q) * pixel;
  const int64_t sums = taps_of_thread(tile, gradient) * tile.vector;
  return static_cast<int>(sums * 5 / 4 + int64_t{tile.p} * tile.q * tile.vector + 2 * row + 12);
}

int taps_at_once(const Tile& tile, const FilterGradient& gradient) {
  constexpr int most_bytes = 16384;
  return static_cast<int>(std::min<int64_t>(taps_of_thread(tile, gradient),
                                            std::max(1, most_bytes / (threads(tile, gradient) * tile.vector * 4))));
}

descriptor::SplitGrid grid(const Tile& tile, const FilterGradient& gradient) {
  return {threads(tile, gradient), tile.split, channel_tiles(tile, gradient)};
}

Program program(const Tile& tile, const FilterGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::gradient_prelude(gradient, descriptor::FixedAxes::windows);
  prelude.constant("THREADS", threads(tile, gradient));
  prelude.constant("TILE_P", tile.p).constant("TILE_Q", tile.q).constant("VECTOR", tile.vector);
  prelude.constant("TAP_ROWS", tap_rows(tile, gradient)).constant("BLOCK_K", tile.k);
  prelude.constant("MULTIPLIER", gradient.k() / gradient.c());
  return descriptor::split_gradient_program("conv_backward_filter_depthwise_nhwc", gradient, grid(tile, gradient),
                                            std::move(prelude), emit);
}

Estimate predict(const Tile& tile, const FilterGradient& gradient, const Target& target, const DeviceFigures& device) {
  using descriptor::dimension::channel, descriptor::dimension::column;
  const int threads = conv_backward_filter_depthwise_nhwc_descriptor::threads(tile, gradient);
  const double warps = threads / 32.0;
  const double steps = static_cast<double>(ceil_div(tiles(tile, gradient), places(tile) * tile.split));
  const double taps = static_cast<double>(taps_of_thread(tile, gradient)), outputs = tile.p * tile.q;
  WindowAxis rows_of_thread = gradient.rows;
  rows_of_thread.window = tap_rows(tile, gradient);
  const auto rows = static_cast<double>(gradient.planes.window * descriptor::met_positions(rows_of_thread, tile.p));
  const double loads = rows * static_cast<double>(descriptor::met_positions(gradient.columns, tile.q));
  const double accesses = loads * (gradient.k() == gradient.c() ? 1 : tile.vector);
  const double x_conversions = size_of(gradient.x.dtype) == 4 ? 0 : tile.vector;  // of a load
  const double dy_conversions = size_of(gradient.dy.dtype) == 4 ? 0 : tile.vector;
  const double of_step =
      taps * outputs * tile.vector + accesses * 3 + loads * x_conversions + outputs * (3 + dy_conversions) + 60;
  const double at_end = taps * tile.vector * 4;
  const double x_bytes = tile.vector * size_of(gradient.x.dtype), dy_bytes = tile.vector * size_of(gradient.dy.dtype);
  const int64_t of_pixel = tile.k / tile.vector;  // lanes
  const auto access = [&](const TensorSpec& spec, int64_t stride) {
    const int64_t element = size_of(spec.dtype), bytes = tile.vector * element;
    const int64_t pitch = tile.q * stride * spec.strides[column] * element;
    return descriptor::access_along({{of_pixel, spec.strides[channel] * bytes}, {1, pitch}}, bytes);
  };

  descriptor::BlockWork block;
  block.threads = threads;
  block.registers = registers(tile, gradient);
  block.shared_bytes = threads * tile.vector * 4.0 * taps_at_once(tile, gradient);
  block.fma = warps * steps * taps * outputs * tile.vector;
  block.instructions = warps * (steps * of_step + at_end + 80);
  block.shared_wavefronts = warps * taps * tile.vector * 2;
  block.global_sectors =
      warps * steps * (accesses * access(gradient.x, gradient.columns.stride).l1 + outputs * access(gradient.dy, 1).l1);
  block.l2_bytes = tile.threads * steps *
                   (outputs * static_cast<double>(gradient.rows.stride * gradient.columns.stride) * 1.3 * x_bytes +
                    outputs * dy_bytes);
  block.code_instructions = 1.2 * of_step + at_end;
  block.latency_clocks = 1500 + steps * (900 + 1.3 * of_step) + 2 * at_end;
  return descriptor::split_gradient_estimate(gradient, grid(tile, gradient), block, target, device);
}

// Rules: what their names below say.
bool is_wide(const Tile& tile, const FilterGradient& gradient) {
  return tile.vector * 2 >= std::min(4, widest_access(gradient)) ||
         taps_of_thread(tile, gradient) * tile.vector * 2 > descriptor::most_sums;
}
bool loops_are_short(const Tile& tile, const FilterGradient& gradient) {
  constexpr int64_t longest_body = 1600;
  const bool least = tile.p == 1 && tile.q == 1;
  return least || taps_of_thread(tile, gradient) * tile.p * tile.q * tile.vector <= longest_body;
}
bool registers_suffice(const Tile& tile, const FilterGradient& gradient, const Arch& arch) {
  const int limit = std::min(arch.registers_per_thread, arch.registers_per_sm / threads(tile, gradient));
  return taps_of_thread(tile, gradient) * tile.vector <= descriptor::most_sums &&
         registers(tile, gradient) <= limit - 30;
}

// As many rows of taps as registers and the length of the code allow.
int open_rows(Tile tile, const FilterGradient& gradient, const Arch& arch) {
  for (const int rows : {11, 4, 2}) {
    tile.rows = rows;
    const bool suits = rows == 11 || rows < gradient.rows.window;
    if (suits && loops_are_short(tile, gradient) && registers_suffice(tile, gradient, arch)) return rows;
  }
  return gradient.rows.window > 1 ? 1 : 11;
}

bool has_open_kernel(const Tile& tile, const FilterGradient& gradient, const Target& target) {
  const bool is_open_width = (tile.vector == 4 || tile.vector == 1) && tile.k == 32;
  const bool is_open_split = tile.split == 1 || tile.split == 8 || tile.split == 32 || tile.split == 128;
  return tile.p == 2 && tile.q == 4 && tile.threads == 128 && is_open_width && is_open_split &&
         tile.rows == open_rows(tile, gradient, target.arch);
}

}  // namespace
}  // namespace conv_backward_filter_depthwise_nhwc_descriptor

Algorithm conv_backward_filter_depthwise_nhwc() {
  using namespace conv_backward_filter_depthwise_nhwc_descriptor;
  return describe<Tile, FilterGradient>("conv_backward_filter_depthwise_nhwc", "conv_backward_filter",
                                        "conv/depthwise/conv_backward_filter_depthwise_nhwc.cu")
      .takes_prologue()
      .applies([](const FilterGradient& gradient, const Target&) {
        return descriptor::depthwise_gradient_refusal(gradient, gradient.c_per_group(), descriptor::Inner::channels);
      })
      .param("TILE_P", &Tile::p, {2, 1, 4})
      .param("TILE_Q", &Tile::q, {4, 2, 7, 1})
      .param("TAP_ROWS", &Tile::rows, {11, 4, 2, 1})  // 11: all, unless the filter has more
      .param("VECTOR", &Tile::vector, {4, 2, 8, 1})
      .param("BLOCK_K", &Tile::k, {64, 32})
      .param("GROUP_THREADS", &Tile::threads, {128, 64, 256})
      .param("SPLIT", &Tile::split, {1, 4, 8, 16, 32, 64, 128, 256})
      .rule("vectors are aligned and end with the pixel",
            [](const Tile& tile, const FilterGradient& gradient, const Target&) {
              return tile.vector <= widest_access(gradient);
            })
      .pruning("vectors are not needlessly narrow",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) { return is_wide(tile, gradient); })
      .pruning("the tile suits the image",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return descriptor::tile_suits_the_image(gradient, tile.p, tile.q);
               })
      .rule("TAP_ROWS suits the filter",
            [](const Tile& tile, const FilterGradient& gradient, const Target&) {
              return tile.rows == 11 || tile.rows < gradient.rows.window;
            })
      .rule("a block has no more than 512 threads", [](const Tile& tile, const FilterGradient& gradient,
                                                       const Target&) { return threads(tile, gradient) <= 512; })
      .rule("threads tile the channels", [](const Tile& tile, const FilterGradient&,
                                            const Target&) { return tile.threads % (tile.k / tile.vector) == 0; })
      .pruning("BLOCK_K suits the channels", [](const Tile& tile, const FilterGradient& gradient,
                                                const Target&) { return tile.k == 32 || tile.k < 2 * gradient.k(); })
      .rule("the unrolled loops are not too long", [](const Tile& tile, const FilterGradient& gradient,
                                                      const Target&) { return loops_are_short(tile, gradient); })
      .rule("registers suffice", [](const Tile& tile, const FilterGradient& gradient,
                                    const Target& target) { return registers_suffice(tile, gradient, target.arch); })
      .pruning("each part has a tile for its threads",
               [](const Tile& tile, const FilterGradient& gradient, const Target&) {
                 return tile.split == 1 || tiles(tile, gradient) >= places(tile) * tile.split;
               })
      .rule("splitting is worthwhile",
            [](const Tile& tile, const FilterGradient& gradient, const Target&) {
              return descriptor::split_is_worthwhile(gradient, grid(tile, gradient));
            })
      .rule("the grid fits", [](const Tile& tile, const FilterGradient& gradient,
                                const Target&) { return channel_tiles(tile, gradient) < most_blocks_in_x; })
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
