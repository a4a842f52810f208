#include "descriptor/prelude_and_launch.h"
#include "gather/gather_problem.h"
#include "kiln/generator/algorithm.h"

namespace kiln {
namespace gather_simple_descriptor {
namespace {

using descriptor::GatherProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const GatherProblem& gather, const Target&, const Emitter& emit) {
  const descriptor::PointwiseProblem& all = gather.elements;
  Prelude prelude = descriptor::gather_prelude(gather, all.logical, emit.open());
  prelude.constant("THREADS", shape.threads);
  Launch launch = descriptor::pointwise_launch(all, "gather_simple", shape.threads);
  launch.grid[0] = descriptor::blocks_for(all.per_image, all.batch, all.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

// Neighbouring threads take neighbours along the last dimension, wherever those lie.
Estimate predict(const Shape& shape, const GatherProblem& gather, const Target& target, const DeviceFigures& device) {
  return descriptor::streaming_estimate(descriptor::gather_work(gather, gather.elements.logical, 1, 1, shape.threads),
                                        target.arch, device);
}

}  // namespace
}  // namespace gather_simple_descriptor

Algorithm gather_simple() {
  using namespace gather_simple_descriptor;
  return describe<Shape, GatherProblem>("gather_simple", "gather", "gather/gather_simple.cu")
      .trusted()
      .takes_prologue()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
