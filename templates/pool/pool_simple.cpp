#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_simple_descriptor {
namespace {

using descriptor::PoolProblem;

struct Shape {
  int threads;
};

// Others are faster where they serve.
bool has_open_kernel(const Shape& shape, const PoolProblem& pool, const Target&) {
  const bool no_other_does = !descriptor::coordinates_fit_int(pool) || (pool.inner == descriptor::Inner::pixels &&
                                                                        !pool.has_indices && pool.columns.reach() > 32);
  return shape.threads == 128 && no_other_does;
}

Program program(const Shape& shape, const PoolProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_prelude(pool);
  prelude.constant("THREADS", shape.threads);

  Launch launch = descriptor::unary_launch("pool_simple", shape.threads);
  launch.arguments.emplace_back(OperandArgument{"indices"});
  launch.grid[0] =
      descriptor::blocks_for(pool.c() * pool.pixels_per_image(), pool.n(), pool.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const double outputs = static_cast<double>(pool.y.elements());
  const double taps = descriptor::mean_taps_inside(pool);
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  work.cache_bytes = outputs * taps * descriptor::lane_bytes_of_x(pool, size_of(pool.x.dtype), 1, 1);
  work.threads = outputs;
  work.instructions_per_thread = 50 + taps * 12;
  work.blocks = outputs / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 2.0 * size_of(pool.x.dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_simple_descriptor

Algorithm pool_simple() {
  using namespace pool_simple_descriptor;
  return describe<Shape, PoolProblem>("pool_simple", "pool_forward", "pool/pool_simple.cu")
      .takes_prologue()
      .opens(has_open_kernel)
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .adds([](const Shape&, const PoolProblem& pool, const Target&) {
        return descriptor::order_of_pool(pool, "one tap after the other, divided by their number");
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
