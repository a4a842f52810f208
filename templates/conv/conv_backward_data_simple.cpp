#include "conv/gradients.h"
#include "descriptor/parts.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace {

using descriptor::DataGradient;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const DataGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads);

  Launch launch;
  launch.entry = "conv_backward_data_simple";
  launch.grid[0] =
      descriptor::blocks_for(gradient.c() * gradient.planes.extent * gradient.rows.extent * gradient.columns.extent,
                             gradient.n(), gradient.dynamic_batch, shape.threads);
  launch.block[0] = static_cast<unsigned>(shape.threads);
  launch.arguments = {OperandArgument{"dy"}, OperandArgument{"w"}, OperandArgument{"dx"},
                      Scalar::alpha,         Scalar::beta,         Scalar::n};
  return Program{{emit.source(prelude)}, {launch}};
}

Estimate predict(const Shape& shape, const DataGradient& gradient, const Target& target, const DeviceFigures& device) {
  // Taps that miss an output cost a test, not a product.
  const double products = static_cast<double>(gradient.k_per_group() * gradient.taps()) /
                          static_cast<double>(gradient.planes.stride * gradient.rows.stride * gradient.columns.stride);
  return descriptor::simple_gradient_estimate(shape.threads, products, {&gradient.dy, &gradient.w, &gradient.dx},
                                              target, device);
}

}  // namespace

Algorithm conv_backward_data_simple() {
  return describe<Shape, DataGradient>("conv_backward_data_simple", "conv_backward_data",
                                       "conv/conv_backward_data_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("the grid fits", [](const Shape& shape, const DataGradient& gradient,
                                const Target&) { return descriptor::simple_gradient_fits(shape.threads, gradient.dx); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
