#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/streaming_estimate.h"
#include "kiln/generator/algorithm.h"
#include "pointwise/pointwise_problem.h"

namespace kiln {
namespace pointwise_transposed_descriptor {
namespace {

using descriptor::PointwiseProblem;

constexpr int tile = 32;

struct Shape {
  int rows;  // threads along the side of the square that is not a warp's
};

std::optional<std::string> refusal(const PointwiseProblem& problem, const Target&) {
  if (problem.cross != 0) return std::nullopt;
  if (!problem.padding.empty()) return "the input is padded";
  if (problem.merged.strides.back()[0] != 1) return "no dimension of the result has its neighbours side by side";
  return "no input lies across the result";
}

int64_t tiles(int64_t extent) {
  return descriptor::ceil_div(extent, tile);
}

// Squares of one image.
int64_t squares(const PointwiseProblem& problem) {
  const int64_t row = problem.merged.extents[0], column = problem.merged.extents[problem.cross];
  return problem.per_image / (row * column) * tiles(row) * tiles(column);
}

Program program(const Shape& shape, const PointwiseProblem& problem, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::pointwise_prelude(problem, problem.merged, emit.open());
  std::vector<int64_t> crossing(problem.crossing.begin(), problem.crossing.end());
  prelude.constant("CROSS", static_cast<int64_t>(problem.cross)).array("CROSSING", crossing);
  prelude.constant("TILE", tile).constant("ROWS", shape.rows);
  Launch launch = descriptor::pointwise_launch(problem, "pointwise_transposed", tile * shape.rows);
  launch.grid[0] = descriptor::blocks_for(squares(problem), problem.batch, problem.dynamic_batch, 1);
  return descriptor::program_of(emit.source(prelude), launch);
}

Estimate predict(const Shape& shape, const PointwiseProblem& problem, const Target& target,
                 const DeviceFigures& device) {
  const auto elements = static_cast<double>(problem.per_image * problem.batch);
  descriptor::StreamingWork work;
  work.dram_bytes = problem.compulsory_bytes();
  double bytes_of_inputs = 0;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    const double bytes = size_of(problem.operands[i].spec.dtype);
    const auto stride = static_cast<double>(problem.merged.strides[i][0]);
    const bool crosses = i < problem.inputs() && problem.crossing[i];
    work.cache_bytes += elements * (crosses ? 2 * bytes : descriptor::lane_bytes(bytes, stride * bytes));
    if (crosses) work.shared_bytes_per_block += tile * (tile * bytes + 4);
    if (i < problem.inputs()) bytes_of_inputs += bytes;
  }
  const double steps = static_cast<double>(tile) / shape.rows;
  work.blocks = static_cast<double>(squares(problem) * problem.batch);
  work.threads_per_block = tile * shape.rows;
  work.threads = work.blocks * work.threads_per_block;
  work.instructions_per_thread = 60 + steps * 45;
  work.registers_per_thread = 32 + steps;
  work.bytes_in_flight_per_thread = steps * bytes_of_inputs;
  return descriptor::streaming_estimate(work, target.arch, device);
}

Algorithm transposed(const std::string& operation) {
  return describe<Shape, PointwiseProblem>(operation + "_transposed", operation, "pointwise/pointwise_transposed.cu")
      .takes_prologue()
      .param("ROWS", &Shape::rows, {8, 4, 16})
      .opens([](const Shape& shape, const PointwiseProblem&, const Target&) { return shape.rows == 8; })
      .applies(refusal)
      .program(program)
      .estimate(predict);
}

}  // namespace
}  // namespace pointwise_transposed_descriptor

Algorithm activation_forward_transposed() {
  using namespace pointwise_transposed_descriptor;
  return transposed("activation_forward");
}
Algorithm activation_backward_transposed() {
  using namespace pointwise_transposed_descriptor;
  return transposed("activation_backward");
}
Algorithm tensor_transform_transposed() {
  using namespace pointwise_transposed_descriptor;
  return transposed("tensor_transform");
}
Algorithm tensor_op_transposed() {
  using namespace pointwise_transposed_descriptor;
  return transposed("tensor_op");
}

}  // namespace kiln
