#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "grid_sample/grid_problem.h"

namespace kiln {
namespace grid_sample_backward_grid_pixels_descriptor {
namespace {

using descriptor::GridProblem;
using Shape = descriptor::GridPixelShape;

Program program(const Shape& shape, const GridProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::grid_prelude(problem);
  descriptor::add_grid_pixels(prelude, shape);
  Launch launch = descriptor::grid_launch(problem, "grid_sample_backward_grid_pixels", shape.threads);
  descriptor::lay_out_pixels(shape, problem, false, launch);
  return descriptor::program_of(emit.source(prelude), launch);
}

bool lanes_have_channels(const Shape& shape, const GridProblem& problem, const Target&) {
  return shape.lanes == 1 || problem.c() > shape.lanes / 2;
}

// Few kernels for all sizes.
bool has_open_kernel(const Shape& shape, const GridProblem& problem, const Target& target) {
  return shape.threads == 128 && lanes_have_channels(shape, problem, target);
}

}  // namespace
}  // namespace grid_sample_backward_grid_pixels_descriptor

Algorithm grid_sample_backward_grid_pixels() {
  using namespace grid_sample_backward_grid_pixels_descriptor;
  return describe<Shape, GridProblem>("grid_sample_backward_grid_pixels", "grid_sample_backward_grid",
                                      "grid_sample/grid_sample_backward_grid_pixels.cu")
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .param("LANES", &Shape::lanes, {1, 4, 8, 32})
      .pruning("lanes have channels", lanes_have_channels)
      .opens(has_open_kernel)
      .program(program)
      .estimate([](const Shape& shape, const GridProblem& problem, const Target& target, const DeviceFigures& device) {
        return descriptor::predict_grid_pixels(shape, problem, false, 1, target, device);
      });
}

}  // namespace kiln
