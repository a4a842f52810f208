#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_channel_rows.h"

namespace kiln {
namespace norm_channels_descriptor {
namespace {

using descriptor::ChannelBlocks;
using descriptor::NormRows;

const std::vector<std::string_view> statistics = {"mean", "inv_deviation", "running_mean", "running_variance"};

struct Problem : descriptor::ChannelRows {
  static Problem of(const Request& request) { return {ChannelRows::of(NormRows::of(request), statistics)}; }
};

Program program(const ChannelBlocks& blocks, const Problem& problem, const Target&, const Emitter& emit) {
  const NormRows& channels = problem.channels;
  Prelude prelude = descriptor::row_blocks_prelude(blocks, channels, emit);
  descriptor::add_norm(prelude, channels);
  descriptor::add_groups(prelude, problem.groups, problem.run, descriptor::along_rows(problem.groups).outer,
                         statistics);
  const WorkspaceArgument workspace{0,
                                    descriptor::part_bytes(blocks, channels, channels.words()) + channels.count() * 8};
  Launch sums = descriptor::row_blocks_launch(blocks, channels, "norm_statistics");
  sums.arguments = {OperandArgument{"x"}, workspace, UserArgument{}, Scalar::n};
  Launch merge = descriptor::launch_of("norm_channels", blocks.threads);
  merge.grid[0] = descriptor::blocks_for_rows(problem.groups, 1);
  merge.arguments = descriptor::operand_arguments(statistics);
  descriptor::append(merge, {workspace, OperationScalar{0}, OperationScalar{1}});
  return Program{{emit.source(prelude)}, {sums, merge, descriptor::norm_apply(blocks, channels, workspace)}};
}

Estimate predict(const ChannelBlocks& blocks, const Problem& problem, const Target& target,
                 const DeviceFigures& device) {
  return descriptor::norm_blocks_estimate(blocks, problem.channels, target, device, 0, 3);
}

}  // namespace
}  // namespace norm_channels_descriptor

Algorithm norm_forward_channels() {
  using namespace norm_channels_descriptor;
  return descriptor::with_channel_blocks(
             describe<ChannelBlocks, Problem>("norm_forward_channels", "norm_forward", "norm/norm_channels.cu"))
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
