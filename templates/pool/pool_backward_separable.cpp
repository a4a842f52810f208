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
struct Step {
  const char* entry;
  int64_t across, along;  // elements of the result of an image, along the axis and without it
  double visits;
  double visit_bytes, result_bytes;

  int64_t threads_per_image(const Shape& shape) const {
    return across / shape.vector * descriptor::ceil_div(along, shape.run);
  }
};

// How far an element is from the outputs that it gives to, along an axis.
double visits_of(const WindowAxis& axis) {
  return std::max(1.0, static_cast<double>(axis.window) / static_cast<double>(axis.stride));
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
  if (shape.vector == 1) return true;
  const auto fits = [&](const TensorSpec& spec) {
    return descriptor::vector_fits(spec, {descriptor::dimension::channel}, shape.vector);
  };
  return pool.channels_inner && fits(pool.dy) && fits(pool.x) && fits(pool.dx);
}

// Windows of a run start one element apart, and share taps.
bool runs_share_taps(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  const auto shares = [&](const WindowAxis& axis) {
    return axis.window >= shape.run && axis.stride == 1 && axis.dilation == 1;
  };
  return shape.run == 1 || ((!has_planes(pool) || shares(pool.planes)) && shares(pool.rows) && shares(pool.columns));
}

bool has_open_kernel(const Shape& shape, const PoolBackwardProblem& pool, const Target&) {
  const bool is_open_width = shape.vector == 1 || shape.vector == 4 || shape.vector * size_of(pool.dx.dtype) == 16;
  return is_open_width && shape.threads == 128 && shape.run == 1;
}

std::vector<Step> steps_of(const PoolBackwardProblem& pool) {
  const Between between(pool);
  const bool deep = has_planes(pool), locates = pool.reads_x();
  const double of_x = size_of(pool.x.dtype), of_dy = size_of(pool.dy.dtype), of_dx = size_of(pool.dx.dtype);
  const auto window = [](const WindowAxis& axis) { return static_cast<double>(axis.window); };
  const auto step = [](const char* entry, int64_t elements, int64_t along, double visits, double visit_bytes,
                       double result_bytes) {
    return Step{entry, along == 0 ? 0 : elements / along, along, visits, visit_bytes, result_bytes};
  };
  const WindowAxis &planes = pool.planes, &rows = pool.rows, &columns = pool.columns;
  std::vector<Step> steps;
  if (locates) {
    steps.push_back(step("pool_backward_maxima_of_columns", between.columns, columns.outputs, window(columns), of_x,
                         of_x + tap_bytes));
    steps.push_back(
        step("pool_backward_maxima_of_rows", between.rows, rows.outputs, window(rows), of_x, of_x + tap_bytes));
    if (deep) {
      steps.push_back(
          step("pool_backward_maxima_of_planes", between.planes, planes.outputs, window(planes), of_x, tap_bytes));
    }
  }
  const double of_tap = locates ? tap_bytes : 0;
  if (deep) {
    steps.push_back(
        step("pool_backward_to_planes", between.rows, planes.extent, visits_of(planes), of_tap + of_dy, sum_bytes));
  }
  steps.push_back(step("pool_backward_to_rows", between.columns, rows.extent, visits_of(rows),
                       of_tap + (deep ? sum_bytes : of_dy), sum_bytes));
  steps.push_back(step("pool_backward_to_columns", pool.elements_per_image(), columns.extent, visits_of(columns),
                       of_tap + sum_bytes, of_dx));
  return steps;
}

std::vector<Argument> arguments_of(std::string_view entry, const Workspace& workspace) {
  const OperandArgument x{"x"}, dy{"dy"}, dx{"dx"};
  if (entry == "pool_backward_maxima_of_columns") {
    return {x, workspace.maxima_of_columns, workspace.taps_of_columns, Scalar::n};
  }
  if (entry == "pool_backward_maxima_of_rows") {
    return {workspace.maxima_of_columns, workspace.maxima_of_rows, workspace.taps_of_rows, Scalar::n};
  }
  if (entry == "pool_backward_maxima_of_planes") return {workspace.maxima_of_rows, workspace.taps_of_planes, Scalar::n};
  if (entry == "pool_backward_to_planes") {
    return {dy, workspace.taps_of_planes, workspace.sums_of_planes, UserArgument{}, Scalar::n};
  }
  if (entry == "pool_backward_to_rows") {
    return {dy, workspace.sums_of_planes, workspace.taps_of_rows, workspace.sums_of_rows, UserArgument{}, Scalar::n};
  }
  return {
      workspace.sums_of_rows, workspace.taps_of_columns, dx, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n};
}

Program program(const Shape& shape, const PoolBackwardProblem& pool, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pool_backward_prelude(pool);
  prelude.constant("THREADS", shape.threads).constant("VECTOR", shape.vector).constant("RUN", shape.run);
  prelude.flag("CHANNELS_INNER", pool.channels_inner).flag("HAS_PLANES", has_planes(pool));
  Program result{{emit.source(prelude)}, {}};
  const Workspace workspace(pool);
  for (const Step& step : steps_of(pool)) {
    Launch launch = descriptor::launch_of(step.entry, shape.threads, arguments_of(step.entry, workspace));
    launch.grid[0] = descriptor::blocks_for(step.threads_per_image(shape), pool.n(), pool.dynamic_batch, shape.threads);
    result.steps.emplace_back(std::move(launch));
  }
  return result;
}

Estimate predict(const Shape& shape, const PoolBackwardProblem& pool, const Target& target,
                 const DeviceFigures& device) {
  const Workspace workspace(pool);
  const bool from_memory = static_cast<double>(workspace.bytes) > static_cast<double>(device.l2_bytes) / 2;
  const std::vector<Step> steps = steps_of(pool);
  std::vector<descriptor::StreamingWork> works;
  for (const Step& step : steps) {
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
