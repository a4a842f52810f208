#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "resize/resize_problem.h"

namespace kiln {
namespace resize_simple_descriptor {
namespace {

using descriptor::ResizeProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ResizeProblem& resize, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::resize_prelude(resize);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::resize_launch("resize_simple", shape.threads);
  launch.grid[0] =
      descriptor::blocks_for(resize.c() * resize.pixels_per_image(), resize.n(), resize.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const ResizeProblem& resize, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(resize.x.dtype);
  const auto taps = static_cast<double>(resize.all_taps);
  const auto pitch = static_cast<double>(resize.x.strides[descriptor::dimension::column]) * bytes;
  descriptor::StreamingWork work = descriptor::resize_work(resize, static_cast<double>(resize.y.elements()), 1, taps,
                                                           bytes, descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread += taps * 8;  // nothing is looked up once for neighbours
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace resize_simple_descriptor

Algorithm resize_simple() {
  using namespace resize_simple_descriptor;
  return describe<Shape, ResizeProblem>("resize_simple", "resize", "resize/resize_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
