#include <algorithm>
#include <vector>

#include "descriptor/prelude_and_launch.h"
#include "kiln/generator/algorithm.h"
#include "norm/norm_affine_rows.h"
#include "norm/norm_channel_rows.h"

namespace kiln {
namespace norm_affine_descriptor {
namespace {

using descriptor::AffineRows;
using descriptor::ChannelBlocks;
using descriptor::ChannelRows;
using descriptor::NormRows;
using descriptor::RowBlocks;
using descriptor::RowDimension;

constexpr int64_t most_of_warp = 64;  // parts, or pairs, that a warp takes of a row

// Threads that share a row in norm_affine.
int row_threads(const RowBlocks& blocks, const AffineRows& rows, int64_t run, const Emitter& emit) {
  const bool is_short = std::max(run * blocks.splits, rows.pairs.length()) <= most_of_warp;
  return is_short && !emit.open() ? 32 : blocks.threads;
}

// Bytes of what norm_statistics leaves: of rows that are not split, too.
int64_t bytes_of_parts(const RowBlocks& blocks, const NormRows& x) {
  return x.count() * blocks.splits * x.words() * 4;
}

// PAIR_EXTENTS and, for each operand, X_PAIR_STRIDES.
void add_pairs(Prelude& prelude, const descriptor::Rows& pairs) {
  const std::vector<RowDimension> dimensions = descriptor::along_rows(pairs).row;
  prelude.extents("PAIR_EXTENTS", descriptor::extents_of(dimensions, descriptor::most_axes));
  for (size_t i = 0; i < pairs.operands.size(); ++i) {
    prelude.extents(descriptor::constant_name(pairs.operands[i]) + "_PAIR_STRIDES",
                    descriptor::strides_of(dimensions, i, descriptor::most_axes));
  }
}

// `x`: rows of norm_statistics, of which `run` that follow each other are a row of `rows`. `numbers`: the dimensions
// that number those, innermost first.
Program program_of(const RowBlocks& blocks, const AffineRows& rows, const NormRows& x, int64_t run,
                   const std::vector<RowDimension>& numbers, const Emitter& emit) {
  const int threads = row_threads(blocks, rows, run, emit);
  Prelude prelude = descriptor::row_blocks_prelude(blocks, x, emit);
  descriptor::add_affine(prelude, rows);
  descriptor::add_groups(prelude, rows, run, numbers, {"w", "b", "scale", "shift"});
  add_pairs(prelude, rows.pairs);
  prelude.constant("ROW_THREADS", threads);

  const WorkspaceArgument parts{0, bytes_of_parts(blocks, x)};
  Launch statistics = descriptor::row_blocks_launch(blocks, x, "norm_statistics");
  statistics.arguments = {OperandArgument{"x"}, parts, UserArgument{}, Scalar::n};
  Launch merge = descriptor::launch_of("norm_affine", blocks.threads);
  merge.grid[0] = descriptor::blocks_for_rows(rows, blocks.threads / threads);
  merge.arguments = descriptor::operand_arguments({"w", "b", "scale", "shift"});
  descriptor::append(merge, {parts, UserArgument{}, OperationScalar{0}, Scalar::n});
  return Program{{emit.source(prelude)}, {statistics, merge}};
}

Estimate estimate_of(const RowBlocks& blocks, const NormRows& x, const Target& target, const DeviceFigures& device) {
  descriptor::RowWork work;
  const int64_t counted = descriptor::part_bytes(blocks, x, x.words());  // by row_blocks_estimate()
  work.dram_bytes = x.moved_bytes + 2 * static_cast<double>(bytes_of_parts(blocks, x) - counted);
  work.instructions = 8;
  work.registers = 48;
  work.shared_words = x.words();
  work.launches = 2;
  return descriptor::row_blocks_estimate(blocks, x, target, device, work);
}

// ---- rows by themselves

Program program(const RowBlocks& blocks, const AffineRows& rows, const Target&, const Emitter& emit) {
  const descriptor::RowLayout layout = descriptor::layout_of(blocks, rows);
  std::vector<RowDimension> numbers = layout.outer;
  if (layout.inner.extent > 1) numbers.insert(numbers.begin(), layout.inner);
  return program_of(blocks, rows, rows, 1, numbers, emit);
}

Estimate predict(const RowBlocks& blocks, const AffineRows& rows, const Target& target, const DeviceFigures& device) {
  return estimate_of(blocks, rows, target, device);
}

bool sums_fit(const RowBlocks& blocks, const AffineRows& rows, const Target& target) {
  return descriptor::sums_fit(blocks, target, rows.words());
}

bool has_open_kernel(const RowBlocks& blocks, const AffineRows&, const Target&) {
  return descriptor::has_open_row_blocks(blocks);
}

// ---- rows whose runs are side by side

struct Problem : ChannelRows {
  AffineRows affine;

  static Problem of(const Request& request) {
    const AffineRows affine = AffineRows::firsts_of(request);
    return {ChannelRows::of(affine, {"w", "b", "scale", "shift"}), affine};
  }
};

Program program_of_channels(const ChannelBlocks& blocks, const Problem& problem, const Target&, const Emitter& emit) {
  return program_of(blocks, problem.affine, problem.channels, problem.run, descriptor::along_rows(problem.groups).outer,
                    emit);
}

Estimate predict_channels(const ChannelBlocks& blocks, const Problem& problem, const Target& target,
                          const DeviceFigures& device) {
  return estimate_of(blocks, problem.channels, target, device);
}

}  // namespace
}  // namespace norm_affine_descriptor

Algorithm norm_affine_blocks() {
  using namespace norm_affine_descriptor;
  return descriptor::with_row_blocks(
             describe<RowBlocks>("norm_affine_blocks", "norm_affine", "norm/norm_affine.cu", AffineRows::firsts_of))
      .applies(descriptor::refuse_row_blocks)
      .takes_prologue()
      .rule("statistics fit shared memory", sums_fit)
      .opens(has_open_kernel)
      .adds([](const RowBlocks& blocks, const AffineRows&, const Target&) {
        return descriptor::order_of_sums("norm_affine_blocks", blocks);
      })
      .program(program)
      .estimate(predict);
}

Algorithm norm_affine_channels() {
  using namespace norm_affine_descriptor;
  return descriptor::with_channel_blocks(
             describe<ChannelBlocks, Problem>("norm_affine_channels", "norm_affine", "norm/norm_affine.cu"))
      .program(program_of_channels)
      .estimate(predict_channels);
}

}  // namespace kiln
