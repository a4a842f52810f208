#include "conv/filter_parts.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "descriptor/strided.h"

namespace kiln::descriptor {
namespace {

constexpr int reduce_threads = 256, elements_of_reduce = 32;

int64_t parts_bytes(const FilterGradient& gradient, int split) {
  return split == 1 ? 0 : split * gradient.dw.elements() * 4;
}

}  // namespace

bool split_is_worthwhile(const FilterGradient& gradient, const SplitGrid& grid) {
  constexpr int64_t plenty_of_blocks = 8192, most_workspace = int64_t{1} << 30;
  return grid.split == 1 || (grid.blocks_in_x * grid.blocks_in_z * grid.split <= plenty_of_blocks &&
                             parts_bytes(gradient, grid.split) <= most_workspace);
}

Program split_gradient_program(const std::string& name, const FilterGradient& gradient, const SplitGrid& grid,
                               Prelude prelude, const Emitter& emit) {
  prelude.extent("SPLIT", grid.split).flag("IS_SPLIT", grid.split > 1).constant("REDUCE_THREADS", reduce_threads);
  const WorkspaceArgument parts{0, parts_bytes(gradient, grid.split)};
  Launch sum = launch_of(name, grid.threads,
                         {OperandArgument{"x"}, OperandArgument{"dy"}, OperandArgument{"dw"}, parts, Scalar::alpha,
                          Scalar::beta, UserArgument{}, Scalar::n});
  sum.grid = {Count{grid.blocks_in_x}, Count{grid.split}, Count{grid.blocks_in_z}};
  sum.dynamic_shared_bytes = static_cast<unsigned>(grid.dynamic_shared_bytes);
  Program result{{emit.source(prelude)}, {sum}};
  if (grid.split == 1) return result;

  Launch reduce = launch_of(name + "_reduce", reduce_threads,
                            {parts, OperandArgument{"dw"}, Scalar::alpha, Scalar::beta, UserArgument{}});
  reduce.grid[0] = Count{ceil_div(gradient.dw.elements(), elements_of_reduce)};
  result.steps.emplace_back(reduce);
  return result;
}

Estimate split_gradient_estimate(const FilterGradient& gradient, const SplitGrid& grid, const BlockWork& block,
                                 const Target& target, const DeviceFigures& device) {
  GridWork work;
  work.block = block;
  work.blocks = static_cast<double>(grid.blocks_in_x * grid.blocks_in_z * grid.split);
  // Blocks are long: SMs that have one less than others wait at the end, and leave their share of the bandwidth.
  const double sms = std::max(device.sms, 1);
  const double uneven = std::ceil(work.blocks / sms) * sms / work.blocks;
  work.dram_bytes = (bytes_of(gradient.x) + bytes_of(gradient.dy) + bytes_of(gradient.dw)) * uneven;
  if (grid.split == 1) return grid_estimate(work, target.arch, device);

  const auto parts = static_cast<double>(parts_bytes(gradient, grid.split));
  work.extra_dram_bytes = 2 * parts * workspace_share(parts, device);
  work.launches = 2;
  Estimate estimate = grid_estimate(work, target.arch, device);
  // A thread of the second launch loads eight parts at a time.
  constexpr int shares = reduce_threads / elements_of_reduce;
  const double reduce = (2 + std::ceil(grid.split / (8.0 * shares))) * 500 / device.clock_hz;
  estimate.overhead += reduce;
  estimate.seconds += reduce;
  return estimate;
}

}  // namespace kiln::descriptor
