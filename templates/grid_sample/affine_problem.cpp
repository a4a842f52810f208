#include "grid_sample/affine_problem.h"

#include <algorithm>
#include <array>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace affine_descriptor {
namespace {

struct Shape {
  int threads;
};

Program program(const Shape& shape, const std::string& name, const AffineProblem& problem, const Emitter& emit) {
  Prelude prelude = affine_prelude(problem);
  prelude.constant("THREADS", shape.threads);
  Launch launch = affine_launch(problem, name, shape.threads);
  const int64_t results = problem.is_gradient() ? problem.elements() : problem.pixels() * problem.axes;
  launch.grid[0] = blocks_for(results, problem.n(), problem.dynamic_batch, shape.threads);
  return program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const AffineProblem& problem, const Target& target, const DeviceFigures& device) {
  const double results =
      static_cast<double>(problem.is_gradient() ? problem.theta.elements() : problem.grid.elements());
  const double terms = problem.is_gradient() ? static_cast<double>(problem.pixels()) : 1;
  StreamingWork work;
  work.dram_bytes = problem.bytes();
  work.cache_bytes = results * terms * 32;
  work.threads = results;
  work.instructions_per_thread = 40 + terms * 80;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = size_of(problem.grid.dtype);
  return streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace affine_descriptor

AffineProblem AffineProblem::of(const Request& request) {
  AffineProblem problem;
  if (request.operation == "affine_grid") {
    AffineGrid view = AffineGrid::of(request);
    problem.theta = std::move(view.theta), problem.grid = std::move(view.grid), problem.ends = view.ends;
  } else {
    AffineGridBackward view = AffineGridBackward::of(request);
    problem.theta = std::move(view.dtheta), problem.grid = std::move(view.dgrid), problem.ends = view.ends;
  }
  problem.operation = request.operation;
  problem.axes = problem.grid.rank() - 2;
  problem.grid = grid_with_planes(std::move(problem.grid));
  problem.blend = request.blend;
  problem.dynamic_batch = request.dynamic_batch;
  return problem;
}

double AffineProblem::bytes() const {
  return bytes_of(theta) + bytes_of(grid);
}

TensorSpec grid_with_planes(TensorSpec grid) {
  if (grid.rank() == 5) return grid;
  grid.extents.insert(grid.extents.begin() + 1, 1);
  grid.strides.insert(grid.strides.begin() + 1, 0);
  return grid;
}

Prelude affine_prelude(const AffineProblem& problem) {
  Prelude prelude;
  prelude.type("TTHETA", problem.theta.dtype).type("TGRID", problem.grid.dtype);
  prelude.index_type("Index", needs_wide_index({&problem.theta, &problem.grid}));
  add_batch(prelude, problem.n(), problem.dynamic_batch);
  prelude.constant("ENDS", static_cast<int64_t>(problem.ends)).constant("AXES", problem.axes);
  prelude.extent("PIXELS", problem.pixels());
  constexpr const char* names[] = {"Z", "P", "Q"};
  for (size_t i = 0; i < 3; ++i) prelude.extent(names[i], problem.grid.extents[1 + i]);
  add_strides(prelude, "THETA", "NIJ", problem.theta);
  add_strides(prelude, "GRID", "NZPQE", problem.grid);
  add_blend(prelude, problem.blend);
  return prelude;
}

Launch affine_launch(const AffineProblem& problem, std::string entry, int threads,
                     const std::vector<WorkspaceArgument>& workspace) {
  Launch launch = launch_of(std::move(entry), threads);
  for (const char* const name : problem.is_gradient() ? std::array{"dgrid", "dtheta"} : std::array{"theta", "grid"}) {
    launch.arguments.push_back(OperandArgument{name});
  }
  for (const WorkspaceArgument& each : workspace) launch.arguments.push_back(each);
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  return launch;
}

Algorithm simple_affine_grid(const std::string& operation) {
  using namespace affine_descriptor;
  const std::string name = operation + "_simple";
  return describe<Shape, AffineProblem>(name, operation, "grid_sample/" + name + ".cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program([name](const Shape& shape, const AffineProblem& problem, const Target&, const Emitter& emit) {
        return program(shape, name, problem, emit);
      })
      .estimate(predict);
}

}  // namespace kiln::descriptor
