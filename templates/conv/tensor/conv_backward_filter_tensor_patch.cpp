#include <algorithm>
#include <cmath>
#include <numeric>

#include "contraction/block_estimate.h"
#include "contraction/tensor_tiling.h"
#include "conv/gradients.h"
#include "conv/tensor/patch.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_filter_tensor_patch_descriptor {
namespace {

using descriptor::BlockWork;
using descriptor::ceil_div;
using descriptor::FilterGradient;
using descriptor::PatchStrips;
using descriptor::TensorTiling;
using descriptor::widest_vector;

constexpr int fragment = 16;  // rows or columns of the sums
constexpr int reduce_threads = 256;

struct Shape {
  int block_m, warp_m, warp_n;  // filters of a block and of a warp, columns of a warp
  int tile_p;                   // rows of a tile
  int split;                    // blocks that share the tiles
};

int element_bytes(const FilterGradient& gradient) {
  return size_of(gradient.x.dtype);
}

// Outputs of a row of a tile: the depth of a step.
int tile_q(const FilterGradient& gradient) {
  return 32 / element_bytes(gradient);
}

bool dy_along_k(const FilterGradient& gradient) {
  const descriptor::Inner inner = descriptor::inner_of(gradient.dy);
  return inner == descriptor::Inner::channels || (inner == descriptor::Inner::either && gradient.k() > 1);
}

int dy_run(const FilterGradient& gradient) {
  using namespace descriptor::dimension;
  constexpr int64_t longest = 8;
  if (dy_along_k(gradient)) {
    return widest_vector(gradient.dy, {channel}, std::gcd(gradient.k_per_group(), longest));
  }
  return widest_vector(gradient.dy, {column}, std::gcd(gradient.columns.outputs, longest));
}

PatchStrips strips(const FilterGradient& gradient) {
  return {gradient.x, gradient.c_per_group()};
}

int64_t pixel_bytes(const FilterGradient& gradient) {
  return descriptor::patch_pixel_bytes(gradient.c_per_group(), element_bytes(gradient));
}

int64_t run_columns(const FilterGradient& gradient) {
  return ceil_div(gradient.columns.window * pixel_bytes(gradient) / element_bytes(gradient), fragment) * fragment;
}

int64_t columns(const FilterGradient& gradient) {
  return gradient.planes.window * gradient.rows.window * run_columns(gradient);
}

// Warps along the columns: as many as there are columns for, or a block may have.
int warps_n(const Shape& shape, const FilterGradient& gradient) {
  constexpr int most_warps = 8;
  const int most = std::max(1, most_warps / (shape.block_m / shape.warp_m));
  return static_cast<int>(std::min<int64_t>(ceil_div(columns(gradient), shape.warp_n), most));
}

TensorTiling product_of(const Shape& shape, const FilterGradient& gradient) {
  const int block_n = warps_n(shape, gradient) * shape.warp_n;
  return {shape.block_m, block_n, shape.tile_p * tile_q(gradient), shape.warp_m, shape.warp_n, 1};
}

int64_t column_tiles(const Shape& shape, const FilterGradient& gradient) {
  return ceil_div(columns(gradient), product_of(shape, gradient).block_n);
}

int64_t shared_bytes(const Shape& shape, const FilterGradient& gradient) {
  const int bytes = element_bytes(gradient);
  const int64_t behind = run_columns(gradient) * bytes - gradient.columns.window * pixel_bytes(gradient) + 4;
  const int64_t piece = descriptor::patch_piece_bytes;
  const int64_t pitch = descriptor::patch_pitch_bytes(gradient.c_per_group(), bytes);
  return descriptor::patch_bytes(gradient, strips(gradient), pitch, shape.tile_p, tile_q(gradient)) +
         ceil_div(behind, piece) * piece + int64_t{shape.block_m} * shape.tile_p * tile_q(gradient) * bytes;
}

int registers(const Shape& shape) {
  return shape.warp_m * shape.warp_n / 32 + (shape.warp_m + shape.warp_n) / 4 + shape.warp_n / 8 + 52;
}

int64_t workspace_bytes(const Shape& shape, const FilterGradient& gradient) {
  return shape.split * gradient.k() * columns(gradient) * 4;
}

int64_t tiles(const Shape& shape, const FilterGradient& gradient) {
  return patch_tiles(gradient, shape.tile_p, tile_q(gradient)) * gradient.n();
}

int64_t filter_tiles(const Shape& shape, const FilterGradient& gradient) {
  return gradient.groups * ceil_div(gradient.k_per_group(), shape.block_m);
}

std::optional<std::string> refusal(const FilterGradient& gradient, const Target& target) {
  if (auto why = descriptor::patch_type_refusal(gradient.dy.dtype, gradient.x.dtype, gradient.arithmetic, target)) {
    return why;
  }
  if (gradient.blend.alpha == Scale::zero) return "alpha is zero: there is nothing to multiply";
  if (gradient.k_per_group() == 1) return "a group has one filter: a tile would have one row in 16";
  return descriptor::patch_refusal(gradient, "x", gradient.c_per_group(), gradient.groups, element_bytes(gradient));
}

Program program(const Shape& shape, const FilterGradient& gradient, const Target& target, const Emitter& emit) {
  const TensorTiling product = product_of(shape, gradient);
  Prelude prelude = descriptor::gradient_prelude(gradient);
  prelude.constant("TILE_P", shape.tile_p).constant("TILE_Q", tile_q(gradient)).constant("SPLIT", shape.split);
  prelude.constant("BLOCK_M", product.block_m).constant("BLOCK_N", product.block_n);
  prelude.constant("BLOCK_K", product.block_k).constant("WARP_M", product.warp_m).constant("WARP_N", product.warp_n);
  prelude.constant("THREADS", product.threads()).constant("SHARED_BYTES", shared_bytes(shape, gradient));
  prelude.constant("MIN_BLOCKS", descriptor::patch_min_blocks(product.threads(), registers(shape),
                                                              shared_bytes(shape, gradient), target.arch));
  prelude.constant("X_PIXELS", strips(gradient).pixels).constant("X_RUN", strips(gradient).x_run);
  prelude.constant("DY_RUN", dy_run(gradient)).flag("DY_ALONG_K", dy_along_k(gradient));
  prelude.constant("REDUCE_THREADS", reduce_threads);
  descriptor::add_tensor_factor(prelude, gradient.dy.dtype, gradient.arithmetic);

  const WorkspaceArgument parts{0, workspace_bytes(shape, gradient)};
  Launch sum = descriptor::launch_of("conv_backward_filter_tensor_patch", product.threads(),
                                     {OperandArgument{"x"}, OperandArgument{"dy"}, parts, Scalar::n});
  sum.grid = {Count{shape.split}, Count{filter_tiles(shape, gradient)}, Count{column_tiles(shape, gradient)}};
  sum.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes(shape, gradient));
  Launch reduce = descriptor::launch_of("conv_backward_filter_tensor_patch_reduce", reduce_threads,
                                        {parts, OperandArgument{"dw"}, Scalar::alpha, Scalar::beta, UserArgument{}});
  reduce.grid[0] = Count{ceil_div(gradient.dw.elements(), 32)};
  return {{emit.source(prelude)}, {sum, reduce}};
}

// Work of a block, whose tiles come one after the other.
BlockWork block_work(const Shape& shape, const FilterGradient& gradient, const Arch& arch, const Calibration& reached) {
  const TensorTiling product = product_of(shape, gradient);
  const PatchStrips strips = conv_backward_filter_tensor_patch_descriptor::strips(gradient);
  const double bytes = element_bytes(gradient), warps = product.warps(), rows = shape.tile_p;
  const double of_block = std::ceil(static_cast<double>(tiles(shape, gradient)) / shape.split);
  const double pixels = static_cast<double>(descriptor::patch_pixels(gradient, strips, shape.tile_p, tile_q(gradient)));
  const double channels = static_cast<double>(gradient.c_per_group());
  const double fragments_m = shape.warp_m / 16.0, fragments_n = shape.warp_n / 16.0;
  const double instruction_fma = 16 * 8 * 32 / bytes;
  const double products = fragments_m * fragments_n * 2 * rows;  // instructions of a warp and tile
  const double words = fragments_n * 4 * rows;
  const bool by_words = bytes == 4 && dy_along_k(gradient);
  const double matrices = fragments_m * rows * (by_words ? 4 : 1);
  const double gradients = static_cast<double>(product.block_m) * product.block_k;
  const double loads = pixels * channels / std::max(strips.pixels, strips.x_run), runs = gradients / dy_run(gradient);

  BlockWork work;
  work.threads = product.threads();
  work.registers = std::min(arch.registers_per_thread, registers(shape));
  work.shared_bytes = static_cast<double>(shared_bytes(shape, gradient));
  work.math = bytes == 4 ? MathClass::tensor_tf32 : MathClass::tensor_f16;
  work.warps_at_half_rate = 1;
  work.fma = of_block * warps * products * instruction_fma / 32;
  const double fill = (pixels / strips.pixels * 14 + pixels * channels + loads * 3 + runs * 16) / 32;
  work.instructions = of_block * (warps * (products + 2 * words + matrices + 40) + fill) +
                      warps * (100 + fragments_m * fragments_n * 16);
  work.shared_wavefronts =
      of_block * (warps * (words + 4 * matrices) + (pixels * channels + gradients) * bytes / 128 * 1.5);
  work.global_sectors = of_block * (loads / 32 * 6 + gradients * bytes / 32);
  work.l2_bytes =
      of_block * (pixels * channels + gradients) * bytes + static_cast<double>(product.block_m) * product.block_n * 4;
  const double multiply =
      std::ceil(warps / 4) * products * instruction_fma * 4 / descriptor::reached_products(arch, work.math, reached);
  const double fill_clocks = 1300 + fill / std::min(4.0, warps) * 2;
  work.latency_clocks = 1500 + of_block * (fill_clocks + std::max(multiply, 2 * words * 4));
  work.stall_clocks = of_block * 1500;
  work.code_instructions = 600 + 2 * products + 2 * words + matrices;
  return work;
}

Estimate predict(const Shape& shape, const FilterGradient& gradient, const Target& target,
                 const DeviceFigures& device) {
  descriptor::GridWork work;
  work.block = block_work(shape, gradient, target.arch, device.calibration);
  work.blocks = static_cast<double>(shape.split * filter_tiles(shape, gradient) * column_tiles(shape, gradient));
  const auto parts = static_cast<double>(workspace_bytes(shape, gradient));
  work.dram_bytes = descriptor::bytes_of(gradient.x) + descriptor::bytes_of(gradient.dy) +
                    descriptor::bytes_of(gradient.dw) + parts * descriptor::workspace_share(parts, device);
  work.extra_dram_bytes = parts * descriptor::workspace_share(parts, device);
  work.launches = 2;
  Estimate estimate = grid_estimate(work, target.arch, device);
  // A thread of the second launch loads eight parts at a time.
  const double reduce = (2 + std::ceil(shape.split / (reduce_threads / 32.0) / 8)) * 500 / device.clock_hz;
  estimate.overhead += reduce;
  estimate.seconds += reduce;
  return estimate;
}

}  // namespace
}  // namespace conv_backward_filter_tensor_patch_descriptor

Algorithm conv_backward_filter_tensor_patch() {
  using namespace conv_backward_filter_tensor_patch_descriptor;
  return describe<Shape, FilterGradient>("conv_backward_filter_tensor_patch", "conv_backward_filter",
                                         "conv/tensor/conv_backward_filter_tensor_patch.cu")
      .applies(refusal)
      .param("BLOCK_M", &Shape::block_m, {64, 32, 16, 128})
      .param("WARP_M", &Shape::warp_m, {64, 32, 16})
      .param("WARP_N", &Shape::warp_n, {32, 64, 16})
      .param("TILE_P", &Shape::tile_p, {8, 4, 16})
      .param("SPLIT", &Shape::split, {128, 256, 64, 512, 32, 8, 1})
      .rule("warps tile the block",
            [](const Shape& shape, const FilterGradient&, const Target&) {
              constexpr int fewest_sums = 16, most_sums = 128;  // of a thread
              const int sums = shape.warp_m * shape.warp_n / 32;
              return shape.block_m % shape.warp_m == 0 && sums >= fewest_sums && sums <= most_sums;
            })
      .rule("lines of a tile fill all banks",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return shape.block_m > 16 || element_bytes(gradient) == 2 || !dy_along_k(gradient);
            })
      .pruning("the tile suits the problem",
               [](const Shape& shape, const FilterGradient& gradient, const Target&) {
                 constexpr int smallest = 16;  // each tile of filters stages the patch anew
                 const int64_t k = gradient.k_per_group();
                 return (shape.block_m == smallest ? k <= smallest : shape.block_m < 2 * k) &&
                        (shape.tile_p == 4 || shape.tile_p < 2 * gradient.rows.outputs) &&
                        (shape.warp_n == 16 || shape.warp_n < 2 * columns(gradient));
               })
      .pruning("each part has tiles",
               [](const Shape& shape, const FilterGradient& gradient, const Target&) {
                 return shape.split == 1 || tiles(shape, gradient) >= shape.split;
               })
      .rule("patch and gradients fit into shared memory",
            [](const Shape& shape, const FilterGradient& gradient, const Target& target) {
              return shared_bytes(shape, gradient) <= target.arch.shared_per_block;
            })
      .rule("the parts fit into a gigabyte and a grid",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return workspace_bytes(shape, gradient) <= (int64_t{1} << 30) &&
                     filter_tiles(shape, gradient) <= most_blocks_in_y &&
                     column_tiles(shape, gradient) <= most_blocks_in_y;
            })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
