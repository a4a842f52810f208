#include "descriptor/prelude_and_launch.h"
#include "im2col/columns_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace col2im_simple_descriptor {
namespace {

using descriptor::ColumnsProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ColumnsProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::columns_prelude(problem);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::unary_launch("col2im_simple", shape.threads);
  launch.grid[0] =
      descriptor::blocks_for(problem.elements_per_image(), problem.n(), problem.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const ColumnsProblem& problem, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(problem.unfolded.dtype);
  const auto pitch = static_cast<double>(problem.unfolded.strides[descriptor::dimension::column]) * bytes;
  const auto images = static_cast<double>(problem.images.elements());
  const auto taps = static_cast<double>(problem.taps());
  descriptor::StreamingWork work =
      descriptor::columns_work(problem, images, 1, problem.columns_per_element(), descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread += 20 * taps;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace col2im_simple_descriptor

Algorithm col2im_simple() {
  using namespace col2im_simple_descriptor;
  return describe<Shape, ColumnsProblem>("col2im_simple", "col2im", "im2col/col2im_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
