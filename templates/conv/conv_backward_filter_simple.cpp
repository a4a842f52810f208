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
  return descriptor::simple_gradient_estimate(shape.threads, products, {&gradient.x, &gradient.dy, &gradient.dw},
                                              target, device);
}

}  // namespace

Algorithm conv_backward_filter_simple() {
  return describe<Shape, FilterGradient>("conv_backward_filter_simple", "conv_backward_filter",
                                         "conv/conv_backward_filter_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .rule("the grid fits", [](const Shape& shape, const FilterGradient& gradient,
                                const Target&) { return descriptor::simple_gradient_fits(shape.threads, gradient.dw); })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
