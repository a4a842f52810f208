#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "grid_sample/grid_problem.h"

namespace kiln {
namespace grid_sample_pixels_descriptor {
namespace {

using descriptor::GridProblem;
using Shape = descriptor::GridPixelShape;

Program program(const Shape& shape, const GridProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::grid_prelude(problem);
  descriptor::add_grid_pixels(prelude, shape);
  Launch launch = descriptor::grid_launch(problem, "grid_sample_pixels", shape.threads);
  descriptor::lay_out_pixels(shape, problem, true, launch);
  return descriptor::program_of(emit.source(prelude), launch);
}

}  // namespace
}  // namespace grid_sample_pixels_descriptor

Algorithm grid_sample_pixels() {
  using namespace grid_sample_pixels_descriptor;
  return describe<Shape, GridProblem>("grid_sample_pixels", "grid_sample", "grid_sample/grid_sample_pixels.cu")
      .param("THREADS", &Shape::threads, {128, 256, 64})
      .param("LANES", &Shape::lanes, {1, 8, 32})
      .param("CHANNELS", &Shape::channels, {4, 1, 8, 16})
      .pruning("lanes have work", descriptor::grid_lanes_have_work)
      .opens(descriptor::opens_grid_pixels)
      .program(program)
      .estimate([](const Shape& shape, const GridProblem& problem, const Target& target, const DeviceFigures& device) {
        return descriptor::predict_grid_pixels(shape, problem, true, 1, target, device);
      });
}

}  // namespace kiln
