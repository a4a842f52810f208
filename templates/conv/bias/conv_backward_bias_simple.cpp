#include "conv/bias/bias_gradient.h"
#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace conv_backward_bias_simple_descriptor {
namespace {

using descriptor::BiasGradient;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const BiasGradient& gradient, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::bias_gradient_prelude(gradient);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::launch_of(
      "conv_backward_bias_simple", shape.threads,
      {OperandArgument{"dy"}, OperandArgument{"db"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = Count{descriptor::ceil_div(gradient.k(), shape.threads)};
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const BiasGradient& gradient, const Target& target, const DeviceFigures& device) {
  const double terms = static_cast<double>(gradient.n() * gradient.pixels());
  descriptor::StreamingWork work;
  work.dram_bytes = static_cast<double>(gradient.dy.elements()) * size_of(gradient.dy.dtype);
  work.cache_bytes = static_cast<double>(gradient.dy.elements()) * 32;  // a sector an element
  work.threads = static_cast<double>(gradient.k());
  work.instructions_per_thread = 20 + 8 * terms;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = size_of(gradient.dy.dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace conv_backward_bias_simple_descriptor

Algorithm conv_backward_bias_simple() {
  using namespace conv_backward_bias_simple_descriptor;
  return describe<Shape, BiasGradient>("conv_backward_bias_simple", "conv_backward_bias",
                                       "conv/bias/conv_backward_bias_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {32, 128})
      .rule("the grid fits", [](const Shape& shape, const BiasGradient& gradient,
                                const Target&) { return gradient.k() / shape.threads < (int64_t{1} << 31) - 1; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
