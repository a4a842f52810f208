#include "descriptor/row_blocks.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace {

using descriptor::ReduceRows;
using descriptor::RowBlocks;

int words(const ReduceRows& rows) {
  return rows.with_indices ? 2 : 1;
}

Program program(const RowBlocks& blocks, const ReduceRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(blocks, rows);
  descriptor::add_reduce(prelude, rows);

  Launch sum = descriptor::row_blocks_launch(blocks, rows, "reduce_blocks");
  sum.arguments = {OperandArgument{"x"},
                   OperandArgument{"y"},
                   OperandArgument{"indices"},
                   WorkspaceArgument{0},
                   Scalar::alpha,
                   Scalar::beta,
                   Scalar::n};
  Program result{{emit.source(prelude)}, {sum}};
  if (blocks.splits == 1) return result;

  Launch merge = descriptor::merge_launch(blocks, rows, "reduce_blocks_merge");
  merge.arguments = {WorkspaceArgument{0}, OperandArgument{"y"}, OperandArgument{"indices"},
                     Scalar::alpha,        Scalar::beta,         Scalar::n};
  result.steps.emplace_back(merge);
  result.workspace_bytes = descriptor::part_bytes(blocks, rows, words(rows));
  return result;
}

Estimate predict(const RowBlocks& blocks, const ReduceRows& rows, const Target& target, const DeviceFigures& device) {
  descriptor::RowWork work;
  work.dram_bytes = rows.moved_bytes();
  work.instructions = rows.with_indices ? 8 : 3;
  work.shared_words = words(rows);
  work.launches = blocks.splits == 1 ? 1 : 2;
  return descriptor::row_blocks_estimate(blocks, rows, target, device, work);
}

}  // namespace

Algorithm reduce_blocks() {
  return describe<RowBlocks, ReduceRows>("reduce_blocks", "reduce", "reduce/reduce_blocks.cu")
      .applies(descriptor::refuse_row_blocks)
      .param("ACROSS", &RowBlocks::across, {0, 1})
      .param("LANES", &RowBlocks::lanes, {32, 256, 8, 1, 4, 16, 128, 2})
      .param("VECTOR", &RowBlocks::vector, {4, 8, 2, 1})
      .param("THREADS", &RowBlocks::threads, {256, 128})
      .param("SPLITS", &RowBlocks::splits, {1, 4, 16, 64, 256})
      .rule("ACROSS suits how rows lie", descriptor::direction_suits)
      .rule("row length, alignment and VECTOR agree", descriptor::vectors_suit)
      .rule("a row has lanes of a warp or all of a block, rows side by side fill sectors", descriptor::lanes_fill_warps)
      .rule("at least half of the threads have work", descriptor::threads_have_work)
      .rule("parts are worth a second kernel", descriptor::splitting_pays)
      .rule("parts of rows fit shared memory",
            [](const RowBlocks& blocks, const ReduceRows& rows, const Target& target) {
              return descriptor::sums_fit(blocks, target, words(rows));
            })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
