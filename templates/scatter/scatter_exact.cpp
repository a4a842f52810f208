#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "scatter/scatter_problem.h"

namespace kiln {
namespace scatter_exact_descriptor {
namespace {

using descriptor::ScatterProblem;

struct Shape {
  int threads;
};

Program program(const Shape& shape, const ScatterProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::scatter_lines_prelude(problem, shape.threads, emit);
  prelude.extent("SUM_BITS", problem.sum_bits());
  const int64_t elements = problem.y.elements();
  const int64_t largest = descriptor::aligned_bytes(elements * 4);
  const std::vector<WorkspaceArgument> workspace = {{0, largest}, {largest, elements * 8}};
  Program program{{emit.source(prelude)}, {ClearWorkspace{0, largest + elements * 8}}};
  const auto add = [&](const char* entry, int64_t of_line) {
    program.steps.emplace_back(
        descriptor::scatter_launch(problem, entry, shape.threads, of_line, shape.threads, workspace));
  };
  add("scatter_exact_largest", problem.count());
  add("scatter_exact_sums", problem.count());
  add("scatter_exact", problem.positions());
  return program;
}

Estimate predict(const Shape& shape, const ScatterProblem& problem, const Target& target, const DeviceFigures& device) {
  const auto updates = static_cast<double>(problem.updates.elements());
  const auto results = static_cast<double>(problem.y.elements());
  descriptor::StreamingWork work;
  work.dram_bytes = problem.bytes() + updates * size_of(problem.updates.dtype) + 13 * 4 * results;
  work.cache_bytes = updates * 2 * (32 + 8 + size_of(problem.updates.dtype)) + results * 16;
  work.threads = 2 * updates + results;
  work.instructions_per_thread = 60;
  work.blocks = std::max(1.0, work.threads / shape.threads);
  work.threads_per_block = shape.threads;
  work.bytes_in_flight_per_thread = 8;
  work.launches = 4;
  return descriptor::streaming_estimate(work, target.arch, device);
}

}  // namespace
}  // namespace scatter_exact_descriptor

Algorithm scatter_exact() {
  using namespace scatter_exact_descriptor;
  return describe<Shape, ScatterProblem>("scatter_exact", "scatter", "scatter/scatter_exact.cu")
      .applies([](const ScatterProblem& problem, const Target&) -> std::optional<std::string> {
        if (problem.mode != ScatterMode::add) return "mode is not add";
        return std::nullopt;
      })
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .rule("sums have bits for their terms",
            [](const Shape&, const ScatterProblem& problem, const Target&) { return problem.has_sum_bits(); })
      .opens([](const Shape& shape, const ScatterProblem&, const Target&) { return shape.threads == 256; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
