#include <cmath>
#include <utility>

#include "conv/conv_estimate.h"
#include "conv/conv_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace {

using descriptor::ConvProblem;

struct Shape {
  int threads;
};

int64_t outputs_per_image(const ConvProblem& conv) {
  return conv.k() * conv.pixels_per_image();
}

Program program(const Shape& shape, const ConvProblem& conv, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::conv_prelude(conv);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::conv_launch("conv_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for(conv, outputs_per_image(conv), shape.threads);
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const ConvProblem& conv, const Target& target, const DeviceFigures& device) {
  const double taps = static_cast<double>(conv.c_per_group() * conv.taps()) *
                      (conv.blend.alpha == Scale::zero ? 0 : descriptor::inside_share(conv));
  const double warps = shape.threads / 32.0;
  // Lanes are neighbours in q: one access where those are neighbours in x, a sector each where not.
  const double sectors =
      std::min(32.0, 1.0 + static_cast<double>(conv.x.strides[descriptor::dimension::column] * conv.columns.stride) *
                               size_of(conv.x.dtype));
  descriptor::GridWork work;
  work.blocks = std::ceil(static_cast<double>(conv.y.elements()) / shape.threads);
  work.block.threads = shape.threads;
  work.block.registers = 40;
  work.block.fma = warps * taps;
  work.block.instructions = warps * (80 + 18 * taps);
  work.block.global_sectors = warps * taps * (1 + sectors);
  work.block.l2_bytes = work.block.global_sectors * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * taps;  // a load or two in flight
  work.dram_bytes = descriptor::compulsory_bytes(conv);
  return descriptor::grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm conv_simple() {
  return describe<Shape, ConvProblem>("conv_simple", "conv_forward", "conv/conv_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("grid fits", [](const Shape& shape, const ConvProblem& conv,
                            const Target&) { return conv.y.elements() / shape.threads < (int64_t{1} << 31) - 1; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
