#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_problem.h"

namespace kiln {
namespace pool_global_nhwc_descriptor {
namespace {

using descriptor::PoolProblem;

struct Shape {
  int lanes;   // threads along C
  int rows;    // threads along the pixels
  int vector;  // channels a thread
};

int64_t slices(const Shape& shape, const PoolProblem& pool) {
  return (pool.c() + shape.lanes * shape.vector - 1) / (shape.lanes * shape.vector);
}

std::optional<std::string> refusal(const PoolProblem& pool, const Target&) {
  if (!descriptor::is_global(pool)) return "the window must be all of x, without padding";
  if (auto reason = descriptor::order_refusal(pool, descriptor::Inner::channels)) return reason;
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolProblem& pool, const Target&) {
  return descriptor::vector_fits(pool.x, {descriptor::dimension::channel}, shape.vector);
}

bool block_fits(const Shape& shape, const PoolProblem&, const Target& target) {
  const int threads = shape.lanes * shape.rows;
  return threads >= 32 && threads <= std::min(512, target.arch.threads_per_block);
}

bool shared_memory_fits(const Shape& shape, const PoolProblem&, const Target& target) {
  return shape.rows * shape.lanes * shape.vector * 4 <= target.arch.shared_per_block_default;
}

bool lanes_have_work(const Shape& shape, const PoolProblem& pool, const Target&) {
  return shape.lanes == 8 || shape.lanes / 2 * shape.vector < pool.x.extents[1];
}

bool rows_have_work(const Shape& shape, const PoolProblem& pool, const Target&) {
  return shape.rows / 2 < pool.taps() || shape.rows * shape.lanes <= 32;
}

bool has_open_kernel(const Shape& shape, const PoolProblem&, const Target&) {
  const bool for_few_channels = shape.lanes == 8 && shape.rows == 32;
  return (shape.vector == 1 || shape.vector == 4) && (for_few_channels || (shape.lanes == 32 && shape.rows == 8));
}

Program program(const Shape& shape, const PoolProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_prelude(pool);
  descriptor::add_even_pixels(prelude, pool);
  prelude.constant("LANES", shape.lanes).constant("ROWS", shape.rows).constant("VECTOR", shape.vector);

  Launch launch = descriptor::unary_launch("pool_global_nhwc", shape.lanes * shape.rows);
  launch.grid[0] = descriptor::blocks_for(slices(shape, pool), pool.n(), pool.dynamic_batch, 1);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PoolProblem& pool, const Target& target, const DeviceFigures& device) {
  const double blocks = static_cast<double>(slices(shape, pool) * pool.n());
  const double threads = shape.lanes * shape.rows;
  const double steps = std::ceil(static_cast<double>(pool.taps()) / shape.rows);
  const double bytes = size_of(pool.x.dtype);

  descriptor::StreamingWork work;
  work.dram_bytes = descriptor::compulsory_bytes(pool);
  work.cache_bytes = blocks * threads * shape.vector * (steps * bytes + 8);
  work.threads = blocks * threads;
  work.instructions_per_thread = 60 + steps * (6 + 2 * shape.vector) + shape.vector * 4;
  work.blocks = blocks;
  work.threads_per_block = threads;
  work.shared_bytes_per_block = threads * shape.vector * 4;
  work.bytes_in_flight_per_thread = std::min(steps, 4.0) * shape.vector * bytes;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_global_nhwc_descriptor

Algorithm pool_global_nhwc() {
  using namespace pool_global_nhwc_descriptor;
  return describe<Shape, PoolProblem>("pool_global_nhwc", "pool_forward", "pool/pool_global_nhwc.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("LANES", &Shape::lanes, {32, 16, 8, 64})
      .param("ROWS", &Shape::rows, {8, 4, 16, 2, 32})
      .rule("C, alignment and VECTOR agree", aligned)
      .rule("the block fits", block_fits)
      .rule("partial sums fit shared memory", shared_memory_fits)
      .pruning("at least half of the lanes have work", lanes_have_work)
      .pruning("at least half of the rows have work", rows_have_work)
      .opens(has_open_kernel)
      .applies(refusal)
      .adds([](const Shape& shape, const PoolProblem& pool, const Target&) {
        return descriptor::order_of_pool(pool, fmt::format("{} threads a channel, across", shape.rows));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
