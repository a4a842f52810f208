#include <algorithm>
#include <cstdint>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "grid_sample/grid_problem.h"

namespace kiln {
namespace grid_sample_backward_data_exact_descriptor {
namespace {

using descriptor::GridProblem;
using Shape = descriptor::GridPixelShape;

Program program(const Shape& shape, const GridProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::grid_prelude(problem);
  descriptor::add_grid_pixels(prelude, shape);
  prelude.extent("SUM_BITS", problem.sum_bits());
  const int64_t elements = problem.n() * problem.c() * problem.elements(),
                largest = descriptor::aligned_bytes(elements * 4);
  const std::vector<WorkspaceArgument> workspace = {{0, largest}, {largest, elements * 8}};
  Program program{{emit.source(prelude)}, {ClearWorkspace{0, largest + elements * 8}}};
  for (const char* const entry : {"grid_sample_backward_data_exact_largest", "grid_sample_backward_data_exact_sums"}) {
    Launch launch = descriptor::grid_launch(problem, entry, shape.threads, workspace);
    descriptor::lay_out_pixels(shape, problem, true, launch);
    program.steps.emplace_back(launch);
  }
  Launch finish = descriptor::grid_launch(problem, "grid_sample_backward_data_exact", shape.threads, workspace);
  finish.grid[0] =
      descriptor::blocks_for(problem.c() * problem.elements(), problem.n(), problem.dynamic_batch, shape.threads);
  program.steps.emplace_back(finish);
  return program;
}

}  // namespace
}  // namespace grid_sample_backward_data_exact_descriptor

Algorithm grid_sample_backward_data_exact() {
  using namespace grid_sample_backward_data_exact_descriptor;
  return describe<Shape, GridProblem>("grid_sample_backward_data_exact", "grid_sample_backward_data",
                                      "grid_sample/grid_sample_backward_data_exact.cu")
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .param("LANES", &Shape::lanes, {1, 8, 32})
      .param("CHANNELS", &Shape::channels, {4, 1, 16})
      .rule("sums have bits for their terms",
            [](const Shape&, const GridProblem& problem, const Target&) { return problem.has_sum_bits(); })
      .pruning("lanes have work", descriptor::grid_lanes_have_work)
      .opens(descriptor::opens_grid_pixels)
      .program(program)
      .estimate([](const Shape& shape, const GridProblem& problem, const Target& target, const DeviceFigures& device) {
        return descriptor::predict_grid_pixels(shape, problem, true, 3, target, device);
      });
}

}  // namespace kiln
