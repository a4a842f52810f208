#include <algorithm>
#include <string>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_rows.h"

namespace kiln {
namespace norm_channels_descriptor {
namespace {

using descriptor::NormRows;
using descriptor::RowLayout;

const std::vector<std::string> statistics = {"mean", "inv_deviation", "running_mean", "running_variance"};

bool is_statistic(std::string_view operand) {
  return std::find(statistics.begin(), statistics.end(), operand) != statistics.end();
}

// Axis along which elements of a row are side by side in x.
std::optional<size_t> run_of(const NormRows& rows) {
  const TensorSpec& x = rows.operands.front().spec;
  for (const int64_t axis : rows.axes) {
    const auto d = static_cast<size_t>(axis);
    if (x.extents[d] > 1 && x.strides[d] == 1) return d;
  }
  return std::nullopt;
}

struct Problem {
  NormRows groups;    // rows as the request has them
  NormRows channels;  // each neighbour of their runs as a row; statistics stand aside
  int64_t run = 1;

  static Problem of(const Request& request) {
    Problem problem;
    problem.groups = NormRows::of(request);
    problem.channels = problem.groups;
    NormRows& channels = problem.channels;
    const std::optional<size_t> run = run_of(problem.groups);
    if (!run) return problem;
    problem.run = channels.extents()[*run];
    std::erase(channels.axes, static_cast<int64_t>(*run));
    Request without = request;
    std::erase_if(without.operands, [](const Operand& operand) { return is_statistic(operand.name); });
    std::vector<std::string_view> names;
    for (const Operand& operand : channels.operands) names.push_back(operand.name);
    channels.operands = descriptor::operands_or_stand_ins(without, names);
    return problem;
  }
};

struct Shape : descriptor::RowBlocks {
  Shape() : descriptor::RowBlocks{.across = 1, .lanes = 0, .vector = 0, .threads = 0, .splits = 0} {}
};

std::optional<std::string> refuse(const Problem& problem, const Target& target) {
  if (problem.run == 1) return "no dimension of the axes is the innermost of x";
  if (auto reason = descriptor::refuse_row_blocks(problem.groups, target)) return reason;
  if (problem.channels.length() == 1) return "rows are single runs of neighbours";
  const bool alone = problem.groups.per_image() == 1;
  if (!alone && descriptor::across_rows(problem.channels).inner.extent == problem.run) {
    return "runs of rows are not side by side in all operands";
  }
  return std::nullopt;
}

// Adapts a condition of channels as rows.
template <class Holds>
auto of_channels(Holds holds) {
  return [holds](const Shape& shape, const Problem& problem, const Target& target) {
    return holds(shape, problem.channels, target);
  };
}

void add_groups(Prelude& prelude, const NormRows& groups) {
  const RowLayout layout = descriptor::along_rows(groups);
  prelude.extents("GROUP_EXTENTS", layout.outer_extents());
  for (size_t i = 0; i < groups.operands.size(); ++i) {
    if (!is_statistic(groups.operands[i].name)) continue;
    prelude.extents(descriptor::constant_name(groups.operands[i]) + "_GROUP_STRIDES", layout.outer_strides(i));
  }
}

Program program(const Shape& shape, const Problem& problem, const Target&, const Emitter& emit) {
  const NormRows& channels = problem.channels;
  Prelude prelude = descriptor::row_blocks_prelude(shape, channels, emit);
  descriptor::add_norm(prelude, channels);
  prelude.extent("RUN", problem.run);
  add_groups(prelude, problem.groups);
  const WorkspaceArgument workspace{0,
                                    descriptor::part_bytes(shape, channels, channels.words()) + channels.count() * 8};
  Launch sums = descriptor::row_blocks_launch(shape, channels, "norm_statistics");
  sums.arguments = {OperandArgument{"x"}, workspace, UserArgument{}, Scalar::n};
  Launch merge = descriptor::launch_of("norm_channels", shape.threads);
  merge.grid[0] = descriptor::blocks_for_rows(problem.groups, 1);
  merge.arguments = descriptor::operand_arguments({"mean", "inv_deviation", "running_mean", "running_variance"});
  descriptor::append(merge, {workspace, OperationScalar{0}, OperationScalar{1}});
  return Program{{emit.source(prelude)}, {sums, merge, descriptor::norm_apply(shape, channels, workspace)}};
}

Estimate predict(const Shape& shape, const Problem& problem, const Target& target, const DeviceFigures& device) {
  return descriptor::norm_blocks_estimate(shape, problem.channels, target, device, 0, 3);
}

}  // namespace
}  // namespace norm_channels_descriptor

Algorithm norm_forward_channels() {
  using namespace norm_channels_descriptor;
  return describe<Shape, Problem>("norm_forward_channels", "norm_forward", "norm/norm_channels.cu")
      .param("LANES", &Shape::lanes, {8, 16, 4, 32, 2})
      .param("VECTOR", &Shape::vector, {2, 1, 4, 8})
      .param("THREADS", &Shape::threads, {256, 128})
      .param("SPLITS", &Shape::splits, {64, 256, 16, 4})
      .applies(refuse)
      .takes_prologue()
      .rule("VECTOR divides the channels", of_channels(descriptor::vectors_divide))
      .pruning("alignment makes VECTOR pay", of_channels(descriptor::vectors_suit))
      .rule("channels side by side fill sectors", of_channels(descriptor::lanes_fill_warps))
      .pruning("at least half of the threads have work", of_channels(descriptor::threads_have_work))
      .pruning("parts of rows are worth more blocks", of_channels(descriptor::splitting_pays))
      .rule("sums fit shared memory",
            of_channels([](const Shape& shape, const NormRows& channels, const Target& target) {
              return descriptor::sums_fit(shape, target, channels.words());
            }))
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
