#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_indexed_descriptor {
namespace {

using descriptor::PoolProblem;

struct Shape {
  int threads;
  int vector;  // channels a thread
};

bool channels_inner(const PoolProblem& pool) {
  return pool.inner == descriptor::Inner::channels || (pool.inner == descriptor::Inner::either && pool.c() > 1);
}

std::optional<std::string> refusal(const PoolProblem& pool, const Target&) {
  if (!pool.has_indices) return "it is for maxima with their indices";
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolProblem& pool, const Target&) {
  if (shape.vector == 1) return true;
  const auto fits = [&](const TensorSpec& spec) {
    return descriptor::vector_fits(spec, {descriptor::dimension::channel}, shape.vector);
  };
  return channels_inner(pool) && fits(pool.x) && fits(pool.y) && fits(pool.indices);
}

bool has_open_kernel(const Shape& shape, const PoolProblem&, const Target&) {
  return (shape.vector == 1 || shape.vector == 4) && shape.threads == 128;
}

Program program(const Shape& shape, const PoolProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_prelude(pool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector);
  prelude.flag("CHANNELS_INNER", channels_inner(pool));

  Launch launch = descriptor::launch_of("pool_indexed", shape.threads,
                                        {OperandArgument{"x"}, OperandArgument{"y"}, OperandArgument{"indices"},
                                         Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = descriptor::blocks_for(pool.c() * pool.pixels_per_image() / shape.vector, pool.n(),
                                          pool.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const double outputs = static_cast<double>(pool.y.elements());
  const double taps = descriptor::mean_taps_inside(pool);
  const double bytes = size_of(pool.x.dtype);
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  work.cache_bytes =
      outputs * (channels_inner(pool) ? taps * bytes : taps * descriptor::lane_bytes_of_x(pool, bytes, 1, 1));
  work.threads = outputs / shape.vector;
  work.instructions_per_thread = 60 + taps * (8 + 4 * shape.vector);
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 32 + 3 * shape.vector;
  work.bytes_in_flight_per_thread = bytes * shape.vector * std::min(taps, 4.0);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_indexed_descriptor

Algorithm pool_indexed() {
  using namespace pool_indexed_descriptor;
  return describe<Shape, PoolProblem>("pool_indexed", "pool_forward", "pool/pool_indexed.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Shape&, const PoolProblem& pool, const Target&) {
        return descriptor::order_of_pool(pool, "one tap after the other");
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
