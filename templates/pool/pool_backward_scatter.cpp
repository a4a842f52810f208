#include <algorithm>
#include <bit>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_backward_problem.h"

namespace kiln {
namespace pool_backward_scatter_descriptor {
namespace {

using descriptor::PoolBackwardProblem;

struct Shape {
  int threads;
  int vector;  // channels a thread
  int team;    // threads a window
};

bool is_apart(const WindowAxis& axis) {
  return axis.outputs == 1 || axis.stride >= axis.reach();
}

std::optional<std::string> refusal(const PoolBackwardProblem& pool, const Target&) {
  if (pool.mode != PoolMode::max) return "an average has no maximum to be found";
  if (pool.has_indices) return "indices are given";
  if (pool.blend.alpha == Scale::zero) return "alpha is zero";
  if (!is_apart(pool.planes) || !is_apart(pool.rows) || !is_apart(pool.columns)) return "windows overlap";
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return descriptor::channels_fit(pool, shape.vector);
}

bool whole_teams(const Shape& shape, const PoolBackwardProblem&, const Target&) {
  return shape.team <= shape.threads;
}

bool no_idle_threads(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return shape.team == 1 || shape.team <= pool.taps();
}

// Teams of an image.
int64_t teams(const Shape& shape, const PoolBackwardProblem& pool) {
  return pool.windows_per_image() / shape.vector;
}

Program program(const Shape& shape, const PoolBackwardProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_backward_prelude(pool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector).constant("TEAM", shape.team);
  prelude.flag("CHANNELS_INNER", pool.channels_inner);
  Launch launch = descriptor::launch_of("pool_backward_scatter", shape.threads,
                                        {OperandArgument{"dy"}, OperandArgument{"x"}, OperandArgument{"dx"},
                                         Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  launch.grid[0] = descriptor::blocks_for(teams(shape, pool), pool.n(), pool.dynamic_batch, shape.threads / shape.team);
  return {{emit.source(prelude)}, {std::move(launch)}};
}

Estimate predict(const Shape& shape, const PoolBackwardProblem& pool, const Target& target,
                 const DeviceFigures& device) {
  const auto elements = static_cast<double>(pool.dx.elements()), windows = static_cast<double>(pool.dy.elements());
  const double of_x = size_of(pool.x.dtype), of_dx = size_of(pool.dx.dtype);
  const auto each = [&](double of_window) { return std::max(1.0, of_window / shape.team); };  // of a thread
  const double taps = each(static_cast<double>(pool.taps())), stores = each(elements / std::max(windows, 1.0));
  const auto rounds = static_cast<double>(std::bit_width(static_cast<unsigned>(shape.team)) - 1);
  // A block that has few channels of a pixel moves parts of sectors. Neighbours that each have a window are apart.
  const int neighbours = shape.threads / shape.team;
  const bool has_parts = pool.channels_inner && neighbours < pool.c() / shape.vector;
  const double pitch = pool.channels_inner || shape.team > 1 ? 1 : static_cast<double>(pool.columns.stride);
  const auto moved = [&](double bytes) {
    return has_parts ? std::max(1.0, 32 / (neighbours * shape.vector * bytes)) : 1.0;
  };

  descriptor::StreamingWork work;
  work.dram_bytes =
      descriptor::compulsory_bytes(pool) + static_cast<double>(pool.x.elements()) * of_x * (moved(of_x) - 1);
  work.threads = static_cast<double>(teams(shape, pool) * pool.n()) * shape.team;
  work.cache_bytes = work.threads * shape.vector *
                     (taps * descriptor::lane_bytes(of_x, pitch * of_x) * moved(of_x) +
                      stores * descriptor::lane_bytes(of_dx, pitch * of_dx) * moved(of_dx));
  work.instructions_per_thread = 60 + (taps + stores) * (14 + 4 * shape.vector);
  if (shape.team > 1) work.instructions_per_thread += 260 + (rounds * 20 + 4) * shape.vector;
  work.blocks = work.threads / shape.threads;
  work.threads_per_block = shape.threads;
  work.registers_per_thread = 40 + 6 * shape.vector;
  work.bytes_in_flight_per_thread = std::min(taps, 4.0) * of_x * shape.vector;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace pool_backward_scatter_descriptor

Algorithm pool_backward_scatter() {
  using namespace pool_backward_scatter_descriptor;
  return describe<Shape, PoolBackwardProblem>("pool_backward_scatter", "pool_backward", "pool/pool_backward_scatter.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("TEAM", &Shape::team, {1, 4, 16, 64, 256})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .rule("a block has whole teams", whole_teams)
      .rule("a window has an element for each thread", no_idle_threads)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
