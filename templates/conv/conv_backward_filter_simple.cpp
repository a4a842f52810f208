#include <cmath>

#include "conv/conv_estimate.h"
#include "conv/gradients.h"
#include "descriptor/parts.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace {

using descriptor::FilterGradient;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const FilterGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads);

  Launch launch;
  launch.entry = "conv_backward_filter_simple";
  launch.grid[0] = Count{(gradient.dw.elements() + shape.threads - 1) / shape.threads};
  launch.block[0] = static_cast<unsigned>(shape.threads);
  launch.arguments = {OperandArgument{"x"}, OperandArgument{"dy"}, OperandArgument{"dw"},
                      Scalar::alpha,        Scalar::beta,          Scalar::n};
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const FilterGradient& gradient, const Target& target,
                 const DeviceFigures& device) {
  // A window that lies in the padding costs as much as another.
  const double products = static_cast<double>(gradient.n() * gradient.pixels_per_image());
  const double warps = shape.threads / 32.0;
  descriptor::GridWork work;
  work.blocks = std::ceil(static_cast<double>(gradient.dw.elements()) / shape.threads);
  work.block.threads = shape.threads;
  work.block.registers = 48;
  work.block.fma = warps * products;
  work.block.instructions = warps * (80 + 30 * products);
  work.block.global_sectors = warps * products * 10;
  work.block.l2_bytes = work.block.global_sectors * 32 / 8;
  work.block.latency_clocks = 1500 + 90 * products;  // a load or two in flight
  for (const TensorSpec* spec : {&gradient.x, &gradient.dy, &gradient.dw}) {
    work.dram_bytes += static_cast<double>(spec->elements()) * size_of(spec->dtype);
  }
  return descriptor::grid_estimate(work, target.arch, device);
}

}  // namespace

Algorithm conv_backward_filter_simple() {
  return describe<Shape, FilterGradient>("conv_backward_filter_simple", "conv_backward_filter",
                                         "conv/conv_backward_filter_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("the grid fits",
            [](const Shape& shape, const FilterGradient& gradient, const Target&) {
              return gradient.dw.elements() / shape.threads < (int64_t{1} << 31) - 1;
            })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
