#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "pool/unpool_problem.h"

namespace kiln {
namespace unpool_backward_simple_descriptor {
namespace {

using descriptor::UnpoolProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const UnpoolProblem& unpool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::unpool_prelude(unpool);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::launch_of("unpool_backward_simple", shape.threads,
                                        {OperandArgument{"dy"}, OperandArgument{"indices"}, OperandArgument{"dx"},
                                         Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = descriptor::blocks_for(unpool.outputs_per_image(), unpool.n(), unpool.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const UnpoolProblem& unpool, const Target& target, const DeviceFigures& device) {
  return descriptor::streaming_estimate(descriptor::unpool_work(unpool, 1, shape.threads, false), target.arch, device);
}

}  // namespace
}  // namespace unpool_backward_simple_descriptor

Algorithm unpool_backward_simple() {
  using namespace unpool_backward_simple_descriptor;
  return describe<Shape, UnpoolProblem>("unpool_backward_simple", "unpool_backward", "pool/unpool_backward_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
