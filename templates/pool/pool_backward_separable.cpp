#include <algorithm>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pool/pool_backward_problem.h"

namespace kiln {
namespace pool_backward_separable_descriptor {
namespace {

using descriptor::aligned_bytes;
using descriptor::PoolBackwardProblem;

constexpr int tap_bytes = 2;  // TapNumber
constexpr int sum_bytes = 4;
constexpr double least_visits = 9;         // windows that hold an element, on average
constexpr int64_t least_taps = 64;         // of a window whose maximum is to be found
constexpr double most_elements = 1 << 30;  // that are kept after one axis
constexpr int64_t most_taps = 32768;

struct Shape {
  int threads;
  int vector;  // channels a thread
  int run;     // neighbours along a step's axis
};

// A step along one axis: each element of its result takes what `visits` elements of the step before it give.
struct AxisStep {
  const char* entry;
  std::vector<Argument> arguments;
  int64_t across, along;  // elements of the result of an image: without the axis, and along it
  double visits;
  double visit_bytes, result_bytes;

  int64_t threads_per_image(const Shape& shape) const {
    return across / shape.vector * descriptor::ceil_div(along, shape.run);
  }
};

// How far an element is from the outputs that it gives to, along an axis.
double visits_of(const WindowAxis& axis) {
  const double windows = std::max(1.0, static_cast<double>(axis.window) / static_cast<double>(axis.stride));
  return std::min(windows, static_cast<double>(axis.outputs));
}

bool has_planes(const PoolBackwardProblem& pool) {
  const WindowAxis& planes = pool.planes;
  return planes.window > 1 || planes.stride > 1 || planes.outputs != planes.extent;
}

// Elements of an image where windows were taken along some axes only, the columns first.
struct Between {
  explicit Between(const PoolBackwardProblem& pool) {
    columns = pool.c() * pool.planes.extent * pool.rows.extent * pool.columns.outputs;
    rows = pool.c() * pool.planes.extent * pool.rows.outputs * pool.columns.outputs;
    planes = pool.windows_per_image();
  }

  int64_t columns, rows, planes;
};

// Ranges of the workspace, one behind the other.
struct Workspace {
  explicit Workspace(const PoolBackwardProblem& pool) {
    const Between between(pool);
    const bool deep = has_planes(pool), locates = pool.reads_x();
    const int64_t of_x = size_of(pool.x.dtype);
    maxima_of_columns = add(pool, locates ? between.columns * of_x : 0);
    maxima_of_rows = add(pool, locates && deep ? between.rows * of_x : 0);
    taps_of_columns = add(pool, locates ? between.columns * tap_bytes : 0);
    taps_of_rows = add(pool, locates ? between.rows * tap_bytes : 0);
    taps_of_planes = add(pool, locates && deep ? between.planes * tap_bytes : 0);
    sums_of_planes = add(pool, deep ? between.rows * sum_bytes : 0);
    sums_of_rows = add(pool, between.columns * sum_bytes);
  }

  WorkspaceArgument maxima_of_columns, maxima_of_rows, taps_of_columns, taps_of_rows, taps_of_planes, sums_of_planes,
      sums_of_rows;
  int64_t bytes = 0;

 private:
  WorkspaceArgument add(const PoolBackwardProblem& pool, int64_t per_image) {
    const WorkspaceArgument range{bytes, per_image * pool.n()};
    bytes += aligned_bytes(range.bytes);
    return range;
  }
};

std::optional<std::string> refusal(const PoolBackwardProblem& pool, const Target&) {
  if (pool.has_indices) return "indices are given";
  if (pool.blend.alpha == Scale::zero) return "alpha is zero";
  const double visits = visits_of(pool.planes) * visits_of(pool.rows) * visits_of(pool.columns);
  if (visits < least_visits && !(pool.reads_x() && pool.taps() >= least_taps)) {
    return "an element lies in fewer than nine windows, and these have few elements";
  }
  if (std::max({pool.planes.window, pool.rows.window, pool.columns.window}) == pool.taps()) {
    return "windows extend along one axis only";
  }
  if (std::max({pool.planes.window, pool.rows.window, pool.columns.window}) > most_taps) {
    return "a window has more than 32768 elements along an axis";
  }
  // As floating point: the extents of a hostile request may be anything.
  const auto longest = [](const WindowAxis& axis) { return static_cast<double>(std::max(axis.extent, axis.outputs)); };
  const double kept = static_cast<double>(pool.n()) * static_cast<double>(pool.c()) * longest(pool.planes) *
                      longest(pool.rows) * longest(pool.columns);
  if (kept > most_elements) return "more than 2^30 elements would be kept after each axis";
  return std::nullopt;
}

bool aligned(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return descriptor::channels_fit(pool, shape.vector);
}

// Windows of a run start one element apart, and share taps.
bool runs_share_taps(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  const auto shares = [&](const WindowAxis& axis) {
    return axis.window >= shape.run && axis.stride == 1 && axis.dilation == 1;
  };
  return shape.run == 1 || ((!has_planes(pool) || shares(pool.planes)) && shares(pool.rows) && shares(pool.columns));
}

bool has_open_kernel(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  return descriptor::is_open_vector(pool, shape.vector) && shape.threads == 128 && shape.run == 1;
}

std::vector<AxisStep> steps_of(const PoolBackwardProblem& pool, const Workspace& workspace) {
  const Between between(pool);
  const bool deep = has_planes(pool), locates = pool.reads_x();
  const double of_x = size_of(pool.x.dtype), of_dy = size_of(pool.dy.dtype), of_dx = size_of(pool.dx.dtype);
  const WindowAxis &planes = pool.planes, &rows = pool.rows, &columns = pool.columns;
  const OperandArgument x{"x"}, dy{"dy"}, dx{"dx"};
  std::vector<AxisStep> steps;
  const auto add = [&](const char* entry, std::vector<Argument> arguments, int64_t elements, int64_t along,
                       double visits, double visit_bytes, double result_bytes) {
    const int64_t across = along == 0 ? 0 : elements / along;
    arguments.emplace_back(Scalar::n);
    steps.push_back({entry, std::move(arguments), across, along, visits, visit_bytes, result_bytes});
  };
  const auto locate = [&](const char* entry, std::vector<Argument> arguments, int64_t elements, const WindowAxis& axis,
                          double result_bytes) {
    add(entry, std::move(arguments), elements, axis.outputs, static_cast<double>(axis.window), of_x, result_bytes);
  };
  if (locates) {
    locate("pool_backward_maxima_of_columns", {x, workspace.maxima_of_columns, workspace.taps_of_columns},
           between.columns, columns, of_x + tap_bytes);
    locate("pool_backward_maxima_of_rows",
           {workspace.maxima_of_columns, workspace.maxima_of_rows, workspace.taps_of_rows}, between.rows, rows,
           of_x + tap_bytes);
    if (deep) {
      locate("pool_backward_maxima_of_planes", {workspace.maxima_of_rows, workspace.taps_of_planes}, between.planes,
             planes, tap_bytes);
    }
  }
  const double of_tap = locates ? tap_bytes : 0;
  if (deep) {
    add("pool_backward_to_planes", {dy, workspace.taps_of_planes, workspace.sums_of_planes, UserArgument{}},
        between.rows, planes.extent, visits_of(planes), of_tap + of_dy, sum_bytes);
  }
  add("pool_backward_to_rows",
      {dy, workspace.sums_of_planes, workspace.taps_of_rows, workspace.sums_of_rows, UserArgument{}}, between.columns,
      rows.extent, visits_of(rows), of_tap + (deep ? sum_bytes : of_dy), sum_bytes);
  add("pool_backward_to_columns",
      {workspace.sums_of_rows, workspace.taps_of_columns, dx, Scalar::alpha, Scalar::beta, UserArgument{}},
      pool.elements_per_image(), columns.extent, visits_of(columns), of_tap + sum_bytes, of_dx);
  return steps;
}

Program program(const Shape& shape, const PoolBackwardProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_backward_prelude(pool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector).constant("RUN", shape.run);
  prelude.flag("CHANNELS_INNER", pool.channels_inner).flag("HAS_PLANES", has_planes(pool));
  Program result{{emit.source(prelude)}, {}};
  for (const AxisStep& step : steps_of(pool, Workspace(pool))) {
    Launch launch = descriptor::launch_of(step.entry, shape.threads, step.arguments);
    launch.grid[0] = descriptor::blocks_for(step.threads_per_image(shape), pool.n(), pool.dynamic_batch, shape.threads);
    result.steps.emplace_back(std::move(launch));
  }
  return result;
}

Estimate predict(const Shape& shape, const PoolBackwardProblem& pool, const Target& target,
                 const DeviceFigures& device) {
  const Workspace workspace(pool);
  const bool from_memory = static_cast<double>(workspace.bytes) > static_cast<double>(device.l2_bytes) / 2;
  const std::vector<AxisStep> steps = steps_of(pool, workspace);
  std::vector<descriptor::StreamingWork> works;
  for (const AxisStep& step : steps) {
    const auto elements = static_cast<double>(step.across * step.along * pool.n());
    const double loads = step.visits + shape.run - 1;  // of a thread
    descriptor::StreamingWork& work = works.emplace_back();
    work.dram_bytes = descriptor::compulsory_bytes(pool) / static_cast<double>(steps.size());
    if (from_memory) work.dram_bytes += elements * (step.result_bytes + step.visit_bytes);
    work.threads = static_cast<double>(step.threads_per_image(shape) * pool.n());
    work.cache_bytes = work.threads * shape.vector * loads * step.visit_bytes + elements * step.result_bytes;
    work.instructions_per_thread = 50 + loads * (4 + 3 * shape.vector) + shape.run * (10 + 12 * shape.vector);
    work.blocks = work.threads / shape.threads;
    work.threads_per_block = shape.threads;
    work.bytes_in_flight_per_thread = std::min(loads, 4.0) * step.visit_bytes * shape.vector;
  }
  return descriptor::streaming_estimate(works, target.arch, device);
}

}  // namespace
}  // namespace pool_backward_separable_descriptor

Algorithm pool_backward_separable() {
  using namespace pool_backward_separable_descriptor;
  return describe<Shape, PoolBackwardProblem>("pool_backward_separable", "pool_backward",
                                              "pool/pool_backward_separable.cu")
      .takes_prologue()
      .param("VECTOR", &Shape::vector, {4, 8, 2, 1})
      .param("RUN", &Shape::run, {4, 2, 1})
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .rule("C, alignment and VECTOR agree", aligned)
      .rule("windows of a run share taps", runs_share_taps)
      .opens(has_open_kernel)
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
