#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "pool/unpool_problem.h"

namespace kiln {
namespace unpool_backward_gather_descriptor {
namespace {

using descriptor::UnpoolProblem;

struct Shape {
  int threads;
  int vector;  // channels a thread
};

bool aligned(const Shape& shape, const UnpoolProblem& unpool, const Target&) {
  if (shape.vector == 1) return true;
  const auto fits = [&](const TensorSpec& spec) {
    return descriptor::vector_fits(spec, {descriptor::dimension::channel}, shape.vector);
  };
  return unpool.channels_inner && fits(unpool.indices) && fits(unpool.dx);
}

bool has_open_kernel(const Shape& shape, const UnpoolProblem&, const Target&) {
  return (shape.vector == 1 || shape.vector == 4) && shape.threads == 128;
}

Program program(const Shape& shape, const UnpoolProblem& unpool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::unpool_prelude(unpool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector);
  prelude.flag("CHANNELS_INNER", unpool.channels_inner);

  Launch launch = descriptor::launch_of("unpool_backward_gather", shape.threads,
                                        {OperandArgument{"dy"}, OperandArgument{"indices"}, OperandArgument{"dx"},
                                         Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = descriptor::blocks_for(unpool.outputs_per_image() / shape.vector, unpool.n(), unpool.dynamic_batch,
                                          shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const UnpoolProblem& unpool, const Target& target, const DeviceFigures& device) {
  return descriptor::streaming_estimate(
      descriptor::unpool_work(unpool, shape.vector, shape.threads, unpool.channels_inner), target.arch, device);
}

}  // namespace
}  // namespace unpool_backward_gather_descriptor

Algorithm unpool_backward_gather() {
  using namespace unpool_backward_gather_descriptor;
  return describe<Shape, UnpoolProblem>("unpool_backward_gather", "unpool_backward", "pool/unpool_backward_gather.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .opens(has_open_kernel)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
