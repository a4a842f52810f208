#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "scatter/scatter_problem.h"

namespace kiln {
namespace scatter_lists_descriptor {
namespace {

using descriptor::RowLayout;
using descriptor::ScatterProblem;

struct Shape {
  int threads, parts, vector;
};

// Neighbours are of neighbouring lines unless those are further apart than the elements of one.
RowLayout layout_of(const ScatterProblem& problem) {
  return problem.lines_are_inner() ? descriptor::across_rows(problem.lines) : descriptor::along_rows(problem.lines);
}

bool vector_fits(const Shape& shape, const ScatterProblem& problem, const Target&) {
  if (shape.vector == 1) return true;
  // The strides of a single position are not looked at.
  return problem.lines_are_inner() && problem.positions() > 1 &&
         descriptor::vector_pays(problem.lines, layout_of(problem), shape.vector);
}

std::optional<std::string> refusal(const ScatterProblem& problem, const Target&) {
  if (problem.mode != ScatterMode::add) return "mode is not add";
  for (size_t i = 0; i < problem.indices.strides.size(); ++i) {
    if (i != problem.along() && problem.indices.extents[i] != 1) return "indices name no whole slices";
  }
  if (problem.count() > std::numeric_limits<int32_t>::max()) return "there are more than 2^31 - 1 updates";
  return std::nullopt;
}

Program program(const Shape& shape, const ScatterProblem& problem, const Target&, const Emitter& emit) {
  const RowLayout layout = layout_of(problem);
  Prelude prelude = descriptor::rows_prelude(problem.lines, layout, shape.vector, emit);
  descriptor::add_scatter(prelude, problem);
  prelude.constant("THREADS", shape.threads).flag("ACROSS", layout.across);
  prelude.extent("COLUMNS", layout.inner.extent / shape.vector);
  prelude.constant("PARTS", shape.parts).extent("SUM_BITS", problem.sum_bits());
  const int64_t positions = std::max<int64_t>(problem.positions(), 1);
  const int64_t of_positions = descriptor::aligned_bytes(positions * 4), used = descriptor::aligned_bytes(4);
  const std::vector<WorkspaceArgument> workspace = {
      {used, of_positions},
      {used + of_positions, of_positions},
      {used + 2 * of_positions, std::max<int64_t>(problem.count(), 1) * 4},
      {0, used}};
  Program program{{emit.source(prelude)}, {ClearWorkspace{0, used + of_positions}}};
  const auto add = [&](const char* entry, int64_t elements_per_block) {
    return &std::get<Launch>(program.steps.emplace_back(
        descriptor::scatter_launch(problem, entry, shape.threads, problem.positions(), elements_per_block, workspace)));
  };
  const Count of_updates{std::max<int64_t>(descriptor::ceil_div(problem.count(), shape.threads), 1)};
  add("scatter_lists_count", shape.threads)->grid[0] = of_updates;
  add("scatter_lists_place", shape.threads)->grid[0] = Count{descriptor::ceil_div(positions, shape.threads)};
  add("scatter_lists_fill", shape.threads)->grid[0] = of_updates;
  add("scatter_lists", int64_t{shape.threads / shape.parts} * shape.vector);
  return program;
}

Estimate predict(const Shape& shape, const ScatterProblem& problem, const Target& target, const DeviceFigures& device) {
  const auto updates = static_cast<double>(problem.updates.elements());
  const auto results = static_cast<double>(problem.y.elements());
  const double of_list = updates / std::max(results, 1.0);
  descriptor::StreamingWork lists;
  lists.dram_bytes = 12.0 * static_cast<double>(problem.count()) + 16.0 * static_cast<double>(problem.positions());
  lists.threads = 2 * static_cast<double>(problem.count() + problem.positions());
  lists.instructions_per_thread = 30;
  lists.blocks = std::max(1.0, lists.threads / shape.threads);
  lists.threads_per_block = shape.threads;
  lists.launches = 4;
  descriptor::StreamingWork sums;
  sums.dram_bytes = problem.bytes();
  const double of_thread = std::max(1.0, of_list / shape.parts);  // updates
  sums.cache_bytes = 2 * updates * (4.0 / shape.vector + size_of(problem.updates.dtype)) + results * 8 / shape.vector;
  sums.threads = results * shape.parts / shape.vector;
  sums.instructions_per_thread = 60 + of_list / shape.parts * (12 + 34.0 * shape.vector) + 10.0 * shape.vector;
  sums.registers_per_thread = 32 + 5 * shape.vector;
  sums.blocks = std::max(1.0, sums.threads / shape.threads);
  sums.threads_per_block = shape.threads;
  sums.bytes_in_flight_per_thread = shape.vector * size_of(problem.updates.dtype) * std::min(of_thread, 4.0);
  return descriptor::streaming_estimate({lists, sums}, target.arch, device);
}

}  // namespace
}  // namespace scatter_lists_descriptor

Algorithm scatter_lists() {
  using namespace scatter_lists_descriptor;
  return describe<Shape, ScatterProblem>("scatter_lists", "scatter", "scatter/scatter_lists.cu")
      .applies(refusal)
      .param("THREADS", &Shape::threads, {256, 128, 512})
      .param("PARTS", &Shape::parts, {1, 4, 16})
      .param("VECTOR", &Shape::vector, {4, 1, 8})
      .rule("VECTOR, strides and alignment agree", vector_fits)
      .rule("sums have bits for their terms",
            [](const Shape&, const ScatterProblem& problem, const Target&) { return problem.has_sum_bits(); })
      .pruning("PARTS have updates", [](const Shape& shape, const ScatterProblem& problem,
                                        const Target&) { return shape.parts == 1 || problem.count() >= shape.parts; })
      .opens([](const Shape& shape, const ScatterProblem&, const Target&) { return shape.threads == 256; })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
