#include "descriptor/prelude_and_launch.h"
#include "im2col/columns_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace im2col_simple_descriptor {
namespace {

using descriptor::ColumnsProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ColumnsProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::columns_prelude(problem);
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::unary_launch("im2col_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for(problem.k() * problem.pixels_per_image(), problem.n(), problem.dynamic_batch,
                                          shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const ColumnsProblem& problem, const Target& target, const DeviceFigures& device) {
  const double bytes = size_of(problem.images.dtype);
  const auto pitch = static_cast<double>(problem.images.strides[descriptor::dimension::column]) * bytes;
  descriptor::StreamingWork work = descriptor::columns_work(problem, static_cast<double>(problem.unfolded.elements()),
                                                            1, 1, descriptor::lane_bytes(bytes, pitch));
  work.instructions_per_thread += 60;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace im2col_simple_descriptor

Algorithm im2col_simple() {
  using namespace im2col_simple_descriptor;
  return describe<Shape, ColumnsProblem>("im2col_simple", "im2col", "im2col/im2col_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
