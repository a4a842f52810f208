#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_backward_problem.h"

namespace kiln {
namespace pool_backward_gather_descriptor {
namespace {

using descriptor::PoolBackwardProblem;

constexpr int64_t tap_bytes = 2;  // TapNumber

struct Shape {
  int threads;
  int vector;  // channels a thread
};

std::optional<std::string> refusal(const PoolBackwardProblem& pool, const Target&) {
  constexpr int64_t most_taps = 65534;
  if (pool.reads_x() && pool.taps() > most_taps) return "a window has more than 65534 elements";
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return descriptor::channels_fit(pool, shape.vector);
}

bool has_open_kernel(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return descriptor::is_open_vector(pool, shape.vector) && shape.threads == 128;
}

Launch launch_of(const std::string& entry, const Shape& shape, const PoolBackwardProblem& pool, int64_t per_image) {
  Launch launch = descriptor::launch_of(entry, shape.threads);
  launch.grid[0] = descriptor::blocks_for(per_image / shape.vector, pool.n(), pool.dynamic_batch, shape.threads);
  return launch;
}

Program program(const Shape& shape, const PoolBackwardProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_backward_prelude(pool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector);
  prelude.flag("CHANNELS_INNER", pool.channels_inner);
  Program result{{emit.source(prelude)}, {}};

  const WorkspaceArgument taps{0, pool.reads_x() ? pool.windows_per_image() * pool.n() * tap_bytes : 0};
  if (pool.reads_x() && pool.blend.alpha != Scale::zero) {
    Launch locate = launch_of("pool_backward_locate", shape, pool, pool.windows_per_image());
    locate.arguments = {OperandArgument{"x"}, taps, Scalar::n};
    result.steps.emplace_back(std::move(locate));
  }
  Launch gather = launch_of("pool_backward_gather", shape, pool, pool.elements_per_image());
  gather.arguments = {OperandArgument{"dy"}, taps,          OperandArgument{"indices"},
                      OperandArgument{"dx"}, Scalar::alpha, Scalar::beta,
                      UserArgument{},        Scalar::n};
  result.steps.emplace_back(std::move(gather));
  return result;
}

Estimate predict(const Shape& shape, const PoolBackwardProblem& pool, const Target& target,
                 const DeviceFigures& device) {
  const bool is_max = pool.reads_x();
  const auto elements = static_cast<double>(pool.dx.elements()), windows = static_cast<double>(pool.dy.elements());
  const auto taps = static_cast<double>(pool.taps());
  const double visits = std::max(1.0, taps * windows / std::max(elements, 1.0));  // windows that hold an element
  const double bytes = size_of(pool.dy.dtype) + (is_max ? tap_bytes : pool.has_indices ? size_of(DType::i32) : 0);
  const auto step = [&](double results) {  // a thread for VECTOR of them
    descriptor::StreamingWork work;
    work.threads = results / shape.vector;
    work.blocks = work.threads / shape.threads;
    work.threads_per_block = shape.threads;
    work.bytes_in_flight_per_thread = bytes * shape.vector;
    return work;
  };
  descriptor::StreamingWork gather = step(elements);
  gather.dram_bytes = descriptor::compulsory_bytes(pool) + (is_max ? windows * tap_bytes : 0);
  gather.cache_bytes = elements * visits * bytes;
  gather.instructions_per_thread = 60 + visits * (20 + 4 * shape.vector);
  if (!is_max) return descriptor::streaming_estimate(gather, target.arch, device);

  const double of_x = static_cast<double>(pool.x.elements()) * size_of(pool.x.dtype);
  gather.dram_bytes -= of_x;
  descriptor::StreamingWork locate = step(windows);
  locate.dram_bytes = of_x + windows * tap_bytes;
  locate.cache_bytes = windows * taps * size_of(pool.x.dtype);
  locate.instructions_per_thread = 60 + taps * (8 + 3 * shape.vector);
  return descriptor::streaming_estimate({locate, gather}, target.arch, device);
}

}  // namespace
}  // namespace pool_backward_gather_descriptor

Algorithm pool_backward_gather() {
  using namespace pool_backward_gather_descriptor;
  return describe<Shape, PoolBackwardProblem>("pool_backward_gather", "pool_backward", "pool/pool_backward_gather.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
