#include <algorithm>
#include <cmath>

#include "contraction/block_estimate.h"
#include "conv/conv_contractions.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace local_conv_forward_dots_descriptor {
namespace {

using namespace descriptor;  // NOLINT(google-build-using-namespace): of this library

struct Shape {
  int warps, warp_filters, pixels, chunk;
};

// A request whose elements of filters are worked off in the order of w.
struct Dots {
  static Dots of(const Request& request) {
    Dots dots{forward_contractions(request)};
    ConvolutionAddresses& conv = dots.contractions.list.front().addresses;
    conv.channels_inner = inner_of(conv.w) == Inner::channels;
    return dots;
  }

  const Contraction& main() const { return contractions.main(); }
  const ConvolutionAddresses& conv() const { return main().addresses; }
  int64_t pixels() const { return conv().n() * conv().pixels_per_image(); }  // of a region
  int64_t filter() const { return conv().c_per_group() * conv().taps(); }

  Contractions contractions;
};

int w_run(const Shape& shape, const Dots& dots) {
  const ConvolutionAddresses& conv = dots.conv();
  const int widest =
      conv.channels_inner
          ? widest_vector(conv.w, {dimension::channel}, conv.c_per_group())
          : widest_vector(conv.w, {dimension::column, dimension::row, dimension::plane, dimension::channel},
                          dots.filter());
  return std::min(widest, shape.chunk / 32);
}

std::optional<std::string> refusal(const Dots& dots, const Target&) {
  constexpr int64_t most_pixels = 32;
  if (dots.contractions.refusal) return dots.contractions.refusal;
  if (dots.pixels() > most_pixels) return "a region has more than 32 pixels, images counted: matrix products suit it";
  return std::nullopt;
}

int64_t filter_tiles(const Shape& shape, const Dots& dots) {
  return dots.conv().groups * ceil_div(dots.conv().k_per_group(), int64_t{shape.warps} * shape.warp_filters);
}

// Registers of a chunk of a warp's filters, in a lane.
int64_t chunk_registers(const Shape& shape, const Dots& dots) {
  return ceil_div(int64_t{shape.chunk} / 32 * shape.warp_filters * size_of(dots.conv().w.dtype), 4);
}

Program program(const Shape& shape, const Dots& dots, const Target&, const Emitter& emit) {
  Prelude prelude = contraction_prelude(dots.main());
  prelude.constant("WARPS", shape.warps).constant("WARP_FILTERS", shape.warp_filters);
  prelude.constant("PIXELS", shape.pixels).constant("CHUNK", shape.chunk).constant("W_RUN", w_run(shape, dots));

  Launch launch = contraction_launch("local_conv_forward_dots", shape.warps * 32,
                                     {OperandArgument{"x"}, OperandArgument{"w"}, OperandArgument{"y"}});
  launch.grid = {blocks_for(dots.main(), dots.conv().pixels_per_image(), shape.pixels),
                 Count{filter_tiles(shape, dots)}, Count{dots.main().divisions()}};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const Dots& dots, const Target& target, const DeviceFigures& device) {
  const ConvolutionAddresses& conv = dots.conv();
  const double warps = shape.warps, pixels = shape.pixels, filters = shape.warp_filters;
  const auto chunks = static_cast<double>(ceil_div(dots.filter(), shape.chunk));
  const double run = w_run(shape, dots), runs = shape.chunk / (32 * run);
  const double gathered = shape.chunk / 32.0;  // elements of a warp, for each pixel
  const double w_bytes = warps * filters * shape.chunk * size_of(conv.w.dtype);

  GridWork work;
  BlockWork& block = work.block;
  work.blocks =
      static_cast<double>(ceil_div(dots.pixels(), shape.pixels) * filter_tiles(shape, dots) * dots.main().divisions());
  block.threads = warps * 32;
  block.registers = 40 + static_cast<double>(chunk_registers(shape, dots)) + pixels * (filters + 4);
  block.shared_bytes = pixels * shape.chunk * 4;
  block.fma = warps * chunks * runs * run * filters * pixels;
  const double conversions = size_of(conv.w.dtype) == 4 ? 0 : run * filters;
  block.instructions = block.fma +
                       chunks * (gathered * (30 + 9 * pixels) +
                                 warps * (runs * (filters * 4 + pixels * std::max(1.0, run / 4) + conversions) + 20)) +
                       warps * (80 + filters * pixels * 12 + 30);
  block.shared_wavefronts = chunks * (gathered * pixels + warps * runs * pixels * std::max(1.0, run));
  block.global_sectors = chunks * (w_bytes / 32 + gathered * pixels * 16);
  block.l2_bytes = chunks * (w_bytes + gathered * pixels * 32 * 8);
  block.latency_clocks = 1500 + chunks * (900 + 60 * gathered / warps * pixels);
  work.dram_bytes = compulsory_bytes(dots.main());
  return grid_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace local_conv_forward_dots_descriptor

Algorithm local_conv_forward_dots() {
  using namespace local_conv_forward_dots_descriptor;
  return describe<Shape, Dots>("local_conv_forward_dots", "local_conv_forward", "conv/local/local_conv_forward_dots.cu")
      .takes_prologue()
      .applies(refusal)
      .param("WARPS", &Shape::warps, {8, 4})
      .param("WARP_FILTERS", &Shape::warp_filters, {4, 2, 1})
      .param("PIXELS", &Shape::pixels, {4, 1, 2, 8})
      .param("CHUNK", &Shape::chunk, {512, 256})
      .pruning("the tile suits the problem",
               [](const Shape& shape, const Dots& dots, const Target&) {
                 return (shape.pixels == 1 || shape.pixels < 2 * dots.pixels()) &&
                        (shape.warp_filters == 1 || shape.warps * shape.warp_filters < 2 * dots.conv().k_per_group()) &&
                        (shape.chunk == 256 || shape.chunk < 2 * dots.filter());
               })
      .rule("a lane finishes at most one sum",
            [](const Shape& shape, const Dots&, const Target&) { return shape.warp_filters * shape.pixels <= 32; })
      .rule("registers suffice",
            [](const Shape& shape, const Dots& dots, const Target&) {
              return chunk_registers(shape, dots) + shape.pixels * (shape.warp_filters + 4) <= 112;
            })
      .rule("the grid fits",
            [](const Shape& shape, const Dots& dots, const Target&) {
              return filter_tiles(shape, dots) <= most_blocks_in_y && dots.main().divisions() <= most_blocks_in_y;
            })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
