#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_global_nchw_descriptor {
namespace {

using descriptor::PoolProblem;

struct Shape {
  int threads;
  int lanes;   // threads a plane
  int vector;  // elements a load
};

std::optional<std::string> refusal(const PoolProblem& pool, const Target&) {
  if (!descriptor::is_global(pool)) return "the window must be all of x, without padding";
  if (auto reason = descriptor::order_refusal(pool, descriptor::Inner::pixels)) return reason;
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolProblem& pool, const Target&) {
  using namespace descriptor::dimension;
  return descriptor::vector_fits(pool.x, {column, row, plane}, shape.vector);
}

bool lanes_form_groups(const Shape& shape, const PoolProblem&, const Target&) {
  return shape.lanes <= 32 || shape.lanes == shape.threads;
}

bool lanes_have_work(const Shape& shape, const PoolProblem& pool, const Target&) {
  return shape.lanes == 4 || shape.lanes / 2 * shape.vector < pool.taps();
}

bool has_open_kernel(const Shape& shape, const PoolProblem&, const Target&) {
  const bool is_open_width = shape.vector == 1 || shape.vector == 4;
  const bool for_small_planes = shape.lanes == 8 && shape.threads == 128;
  return is_open_width && (for_small_planes || (shape.lanes == 256 && shape.threads == 256));
}

Program program(const Shape& shape, const PoolProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_prelude(pool);
  descriptor::add_even_pixels(prelude, pool);
  prelude.constant("THREADS", shape.threads).constant("LANES", shape.lanes).constant("VECTOR", shape.vector);

  Launch launch = descriptor::unary_launch("pool_global_nchw", shape.threads);
  launch.grid[0] = descriptor::blocks_for(pool.c(), pool.n(), pool.dynamic_batch, shape.threads / shape.lanes);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const auto planes = static_cast<double>(pool.n() * pool.c());
  const auto plane = static_cast<double>(pool.taps());
  const double bytes = size_of(pool.x.dtype);
  const double steps = std::ceil(plane / (shape.lanes * shape.vector));

  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  // A warp's load touches at least a sector for each of its planes.
  const double groups = std::max(1.0, 32.0 / shape.lanes);
  const double warp_bytes = std::max(32.0 * shape.vector * bytes, groups * 48);
  work.cache_bytes = planes * shape.lanes / 32 * (steps * warp_bytes + 32 * groups);
  work.threads = planes * shape.lanes;
  work.instructions_per_thread = 50 + steps * (5 + 2 * shape.vector);
  work.blocks = planes * shape.lanes / shape.threads;
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = std::min(steps, 4.0) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_global_nchw_descriptor

Algorithm pool_global_nchw() {
  using namespace pool_global_nchw_descriptor;
  return describe<Shape, PoolProblem>("pool_global_nchw", "pool_forward", "pool/pool_global_nchw.cu")
      .takes_prologue()
      .param("LANES", &Shape::lanes, {32, 16, 8, 4, 128, 256, 512})
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("THREADS", &Shape::threads, {128, 256, 512, 64})
      .rule("H * W, alignment and VECTOR agree", aligned)
      .rule("LANES is at most a warp, or THREADS", lanes_form_groups)
      .pruning("at least half of the lanes have work", lanes_have_work)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Shape& shape, const PoolProblem& pool, const Target&) {
        // How many neighbours an access moves depends on alignment.
        const bool averages = pool.mode != PoolMode::max;
        if (averages && shape.vector > 1) return std::optional<std::string>();
        return std::optional(descriptor::order_of_pool(pool, fmt::format("{} threads a channel", shape.lanes)));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
