#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "grid_sample/affine_problem.h"

namespace kiln {
namespace affine_grid_backward_split_descriptor {
namespace {

using descriptor::AffineProblem;

struct Shape {
  int threads, split;
};

Program program(const Shape& shape, const AffineProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::affine_prelude(problem);
  prelude.constant("THREADS", shape.threads).extent("SPLIT", shape.split);
  const WorkspaceArgument parts{0, shape.split == 1 ? 0 : problem.n() * shape.split * problem.elements() * 4};
  Launch sum = descriptor::affine_launch(problem, "affine_grid_backward_split", shape.threads, {parts});
  sum.grid[0] = descriptor::blocks_for(shape.split, problem.n(), problem.dynamic_batch, 1);
  Program result{{emit.source(prelude)}, {sum}};
  if (shape.split == 1) return result;

  Launch finish =
      descriptor::launch_of("affine_grid_backward_split_sum", shape.threads,
                            {parts, OperandArgument{"dtheta"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  finish.grid[0] = descriptor::blocks_for(problem.elements(), problem.n(), problem.dynamic_batch, shape.threads);
  result.steps.emplace_back(finish);
  return result;
}

Estimate predict(const Shape& shape, const AffineProblem& problem, const Target& target, const DeviceFigures& device) {
  const double pixels = static_cast<double>(problem.pixels()), images = static_cast<double>(problem.n());
  const double places = descriptor::ceil_div(problem.pixels(), int64_t{shape.threads} * shape.split);
  descriptor::StreamingWork work;
  work.dram_bytes = problem.bytes() + (shape.split > 1 ? 8.0 * images * shape.split * problem.elements() : 0);
  work.cache_bytes = images * pixels * problem.axes * 4;
  work.blocks = images * shape.split;
  work.threads = work.blocks * shape.threads;
  work.instructions_per_thread = 60 + places * (50 + 8 * problem.axes) + 12.0 * problem.elements();
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = problem.axes * size_of(problem.grid.dtype) * std::clamp(places, 1.0, 4.0);
  work.launches = shape.split == 1 ? 1 : 2;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace affine_grid_backward_split_descriptor

Algorithm affine_grid_backward_split() {
  using namespace affine_grid_backward_split_descriptor;
  return describe<Shape, AffineProblem>("affine_grid_backward_split", "affine_grid_backward",
                                        "grid_sample/affine_grid_backward_split.cu")
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .param("SPLIT", &Shape::split, {1, 4, 16, 64})
      .pruning("each part has pixels for its threads",
               [](const Shape& shape, const AffineProblem& problem, const Target&) {
                 return shape.split == 1 || problem.pixels() > int64_t{shape.threads} * (shape.split - 1);
               })
      .opens([](const Shape& shape, const AffineProblem&, const Target&) { return shape.threads == 256; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
