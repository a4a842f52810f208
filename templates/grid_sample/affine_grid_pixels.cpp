#include <algorithm>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "descriptor/strided.h"
#include "grid_sample/affine_problem.h"

namespace kiln {
namespace affine_grid_pixels_descriptor {
namespace {

using descriptor::AffineProblem;

struct Shape {
  int threads, taken;
};

// Elements of one access: positions of an image that lie side by side.
int run(const Shape& shape, const AffineProblem& problem) {
  if (problem.pixels() % shape.taken != 0) return 1;
  return descriptor::widest_vector(problem.grid, {4, 3, 2, 1}, int64_t{shape.taken} * problem.axes);
}

Program program(const Shape& shape, const AffineProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::affine_prelude(problem);
  prelude.constant("THREADS", shape.threads).constant("TAKEN", shape.taken);
  prelude.constant("RUN", emit.open() ? 1 : run(shape, problem));
  Launch launch = descriptor::affine_launch(problem, "affine_grid_pixels", shape.threads);
  launch.grid[0] = descriptor::blocks_for(problem.pixels(), problem.n(), problem.dynamic_batch,
                                          int64_t{shape.threads} * shape.taken);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const AffineProblem& problem, const Target& target, const DeviceFigures& device) {
  const double positions = static_cast<double>(problem.grid.elements());
  descriptor::StreamingWork work;
  work.dram_bytes = problem.bytes();
  work.cache_bytes = positions * (run(shape, problem) > 1 ? 1 : 2) * size_of(problem.grid.dtype);
  work.threads = positions / (problem.axes * shape.taken);
  work.instructions_per_thread = 20 + 80 * shape.taken;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace affine_grid_pixels_descriptor

Algorithm affine_grid_pixels() {
  using namespace affine_grid_pixels_descriptor;
  return describe<Shape, AffineProblem>("affine_grid_pixels", "affine_grid", "grid_sample/affine_grid_pixels.cu")
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .param("TAKEN", &Shape::taken, {1, 2, 4})
      .rule("several pixels lie side by side",
            [](const Shape& shape, const AffineProblem& problem, const Target&) {
              return shape.taken == 1 || run(shape, problem) > 1;
            })
      .opens([](const Shape& shape, const AffineProblem&, const Target&) {
        return shape.threads == 128 && shape.taken == 1;
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
