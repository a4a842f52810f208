#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "scatter/scatter_problem.h"

namespace kiln {
namespace scatter_extremes_descriptor {
namespace {

using descriptor::ScatterProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ScatterProblem& problem, const Target&, const Emitter& emit) {
  const int64_t key_bytes = problem.y.elements() * 4;
  Program program{{emit.source(descriptor::scatter_lines_prelude(problem, shape.threads, emit))},
                  {ClearWorkspace{0, key_bytes}}};
  const auto add = [&](const char* entry, int64_t of_line) {
    program.steps.emplace_back(
        descriptor::scatter_launch(problem, entry, shape.threads, of_line, shape.threads, {{0, key_bytes}}));
  };
  add("scatter_extremes_keys", problem.count());
  add("scatter_extremes", problem.positions());
  return program;
}

Estimate predict(const Shape& shape, const ScatterProblem& problem, const Target& target, const DeviceFigures& device) {
  const auto updates = static_cast<double>(problem.updates.elements());
  const auto results = static_cast<double>(problem.y.elements());
  descriptor::StreamingWork work;
  work.dram_bytes = problem.bytes() + 3 * 4 * results;
  work.cache_bytes = updates * (32 + 8 + size_of(problem.updates.dtype)) + results * 8;
  work.threads = updates + results;
  work.instructions_per_thread = 50;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 8;
  work.launches = 3;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace scatter_extremes_descriptor

Algorithm scatter_extremes() {
  using namespace scatter_extremes_descriptor;
  return describe<Shape, ScatterProblem>("scatter_extremes", "scatter", "scatter/scatter_extremes.cu")
      .applies([](const ScatterProblem& problem, const Target&) -> std::optional<std::string> {
        if (problem.mode == ScatterMode::min || problem.mode == ScatterMode::max) return std::nullopt;
        return "mode is neither min nor max";
      })
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .opens([](const Shape& shape, const ScatterProblem&, const Target&) { return shape.threads == 256; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
