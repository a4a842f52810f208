#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "resize/resize_problem.h"

namespace kiln {
namespace resize_backward_simple_descriptor {
namespace {

using descriptor::ResizeProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ResizeProblem& resize, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::resize_backward_prelude(resize, false);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::resize_backward_launch("resize_backward_simple", shape.threads);
  launch.grid[0] =
      descriptor::blocks_for(resize.c() * resize.pixels_of_x(), resize.n(), resize.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const ResizeProblem& resize, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(resize.y.dtype);
  const auto pitch = static_cast<double>(resize.y.strides[descriptor::dimension::column]) * bytes;
  descriptor::StreamingWork work = descriptor::resize_backward_work(resize, static_cast<double>(resize.x.elements()), 1,
                                                                    1, bytes, descriptor::lane_bytes(bytes, pitch));
  // Nothing is looked up once for neighbours.
  work.instructions_per_thread *= resize.mode == ResizeMode::cubic ? 10 : 5;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace resize_backward_simple_descriptor

Algorithm resize_backward_simple() {
  using namespace resize_backward_simple_descriptor;
  return describe<Shape, ResizeProblem>("resize_backward_simple", "resize_backward", "resize/resize_backward_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
