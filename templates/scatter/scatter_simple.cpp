#include <algorithm>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "scatter/scatter_problem.h"

namespace kiln {
namespace scatter_simple_descriptor {
namespace {

using descriptor::ScatterProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ScatterProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::rows_prelude(problem.lines);
  descriptor::add_simple_rows(prelude, problem.lines);
  descriptor::add_scatter(prelude, problem);
  prelude.constant("THREADS", shape.threads);
  return descriptor::program_of(
      emit.source(prelude),
      descriptor::scatter_launch(problem, "scatter_simple", shape.threads, problem.positions(), shape.threads));
}

Estimate predict(const Shape& shape, const ScatterProblem& problem, const Target& target, const DeviceFigures& device) {
  const auto terms = static_cast<double>(problem.count());
  descriptor::StreamingWork work;
  work.dram_bytes = problem.bytes();
  work.threads = static_cast<double>(problem.y.elements());
  work.cache_bytes = work.threads * (32 + 8 * terms);
  work.instructions_per_thread = 60 + 9 * terms;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 4;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace scatter_simple_descriptor

Algorithm scatter_simple() {
  using namespace scatter_simple_descriptor;
  return describe<Shape, ScatterProblem>("scatter_simple", "scatter", "scatter/scatter_simple.cu")
      .trusted()
      .param("THREADS", &Shape::threads, {128, 64, 256})
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
