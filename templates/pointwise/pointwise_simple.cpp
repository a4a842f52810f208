#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pointwise/pointwise_problem.h"

namespace kiln {
namespace pointwise_simple_descriptor {
namespace {

using descriptor::PointwiseProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const PointwiseProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pointwise_prelude(problem, problem.logical, emit.open());
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::pointwise_launch(problem, "pointwise_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for(problem.per_image, problem.batch, problem.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Neighbouring threads take neighbours along the last dimension, wherever those lie.
Estimate predict(const Shape& shape, const PointwiseProblem& problem, const Target& target,
                 const DeviceFigures& device) {
  const auto elements = static_cast<double>(problem.per_image * problem.batch);
  descriptor::StreamingWork work;
  work.dram_bytes = problem.compulsory_bytes();
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    if (!problem.is_in_memory(i)) continue;
    const double bytes = size_of(problem.operands[i].spec.dtype);
    work.cache_bytes +=
        elements * descriptor::lane_bytes(bytes, static_cast<double>(problem.logical.strides[i][0]) * bytes);
  }
  work.threads = elements;
  work.instructions_per_thread = problem.function == descriptor::PointwiseFunction::dropout ? 150 : 60;
  work.blocks = elements / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = size_of(problem.result().dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

Algorithm simple(const std::string& operation) {
  return describe<Shape, PointwiseProblem>(operation + "_simple", operation, "pointwise/pointwise_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace
}  // namespace pointwise_simple_descriptor

Algorithm activation_forward_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("activation_forward");
}
Algorithm activation_backward_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("activation_backward");
}
Algorithm tensor_transform_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("tensor_transform");
}
Algorithm tensor_set_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("tensor_set");
}
Algorithm tensor_op_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("tensor_op");
}
Algorithm dropout_simple() {
  using namespace pointwise_simple_descriptor;
  return simple("dropout");
}

}  // namespace kiln
