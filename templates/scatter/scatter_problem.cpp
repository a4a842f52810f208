#include "scatter/scatter_problem.h"

#include <algorithm>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {

ScatterProblem ScatterProblem::of(const Request& request) {
  ScatterProblem problem;
  static_cast<Scatter&>(problem) = Scatter::of(request);
  problem.lines.operands = {{"y", problem.y}, {"updates", problem.updates}, {"indices", problem.indices}};
  problem.lines.axes = {problem.axis};
  problem.lines.dynamic_batch = problem.dynamic_batch;
  return problem;
}

double ScatterProblem::bytes() const {
  double bytes = 0;
  for (const Operand& operand : lines.operands) bytes += bytes_of(operand.spec);
  return bytes;
}

void add_scatter(Prelude& prelude, const ScatterProblem& problem) {
  const size_t along = problem.along();
  prelude.constant("MODE", static_cast<int64_t>(problem.mode));
  prelude.extent("POSITIONS", problem.positions()).extent("DIVISOR", std::max<int64_t>(problem.positions(), 1));
  prelude.extent("COUNT", problem.count());
  prelude.extent("UPDATES_ALONG", problem.updates.strides[along]);
  prelude.extent("INDICES_ALONG", problem.indices.strides[along]).extent("Y_ALONG", problem.y.strides[along]);
  add_blend(prelude, problem.blend);
}

Prelude scatter_lines_prelude(const ScatterProblem& problem, int threads, const Emitter& emit) {
  Prelude prelude = rows_prelude(problem.lines, along_rows(problem.lines), 1, emit);
  add_scatter(prelude, problem);
  prelude.constant("THREADS", threads).flag("LINES_INNER", problem.lines_are_inner());
  return prelude;
}

Launch scatter_launch(const ScatterProblem& problem, std::string entry, int threads, int64_t elements,
                      int64_t elements_per_block, const std::vector<WorkspaceArgument>& workspace) {
  Launch launch = launch_of(std::move(entry), threads,
                            {OperandArgument{"updates"}, OperandArgument{"indices"}, OperandArgument{"y"}});
  for (const WorkspaceArgument& each : workspace) launch.arguments.push_back(each);
  append(launch, {Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n});
  const int64_t images = problem.axis == 0 ? 1 : problem.y.extents.front();
  launch.grid[0] = blocks_for(problem.lines.per_image() * elements, images, problem.dynamic_batch, elements_per_block);
  return launch;
}

}  // namespace kiln::descriptor
