#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_backward_problem.h"

namespace kiln {
namespace pool_backward_simple_descriptor {
namespace {

using descriptor::PoolBackwardProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const PoolBackwardProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_backward_prelude(pool);
  prelude.constant("THREADS", shape.threads);

  Launch launch =
      descriptor::launch_of("pool_backward_simple", shape.threads,
                            {OperandArgument{"dy"}, OperandArgument{"x"}, OperandArgument{"indices"},
                             OperandArgument{"dx"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = descriptor::blocks_for(pool.elements_per_image(), pool.n(), pool.dynamic_batch, shape.threads);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PoolBackwardProblem& pool, const Target& target,
                 const DeviceFigures& device) {
  const auto elements = static_cast<double>(pool.dx.elements());
  const auto taps = static_cast<double>(pool.taps());
  const double windows = taps * static_cast<double>(pool.dy.elements()) / std::max(elements, 1.0);  // of an element
  const double looks = pool.reads_x() ? windows * taps : 0;
  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  // Neighbouring threads are neighbours along the columns, wherever those lie.
  const auto lane = [](const TensorSpec& spec) {
    const double bytes = size_of(spec.dtype);
    return descriptor::lane_bytes(bytes, static_cast<double>(spec.strides[descriptor::dimension::column]) * bytes);
  };
  work.cache_bytes = elements * (looks * lane(pool.x) + windows * lane(pool.dy) + lane(pool.dx));
  if (pool.has_indices) work.cache_bytes += elements * windows * lane(pool.indices);
  work.threads = elements;
  work.instructions_per_thread = 50 + taps * 20 + std::max(windows, looks) * 12;
  work.blocks = elements / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 2.0 * size_of(pool.x.dtype);
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_backward_simple_descriptor

Algorithm pool_backward_simple() {
  using namespace pool_backward_simple_descriptor;
  return describe<Shape, PoolBackwardProblem>("pool_backward_simple", "pool_backward", "pool/pool_backward_simple.cu")
      .takes_prologue()
      .trusted()
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
