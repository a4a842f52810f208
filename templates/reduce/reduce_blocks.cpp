#include "descriptor/row_blocks.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace reduce_blocks_descriptor {
namespace {

using descriptor::ReduceRows;
using descriptor::RowBlocks;

int words(const ReduceRows& rows) {
  return rows.with_indices ? 2 : 1;
}

Program program(const RowBlocks& blocks, const ReduceRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(blocks, rows, emit);
  descriptor::add_reduce(prelude, rows);

  const WorkspaceArgument parts{0, descriptor::part_bytes(blocks, rows, words(rows))};
  Launch sum = descriptor::row_blocks_launch(blocks, rows, "reduce_blocks");
  sum.arguments = {OperandArgument{"x"},
                   OperandArgument{"y"},
                   OperandArgument{"indices"},
                   parts,
                   Scalar::alpha,
                   Scalar::beta,
                   UserArgument{},
                   Scalar::n};
  Program result{{emit.source(prelude)}, {sum}};
  if (blocks.splits == 1) return result;

  Launch merge = descriptor::merge_launch(blocks, rows, "reduce_blocks_merge");
  merge.arguments = {
      parts, OperandArgument{"y"}, OperandArgument{"indices"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n};
  result.steps.emplace_back(merge);
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
}  // namespace reduce_blocks_descriptor

Algorithm reduce_blocks() {
  using namespace reduce_blocks_descriptor;
  return descriptor::with_row_blocks(
             describe<RowBlocks, ReduceRows>("reduce_blocks", "reduce", "reduce/reduce_blocks.cu"))
      .takes_prologue()
      .applies(descriptor::refuse_row_blocks)
      .rule("parts of rows fit shared memory",
            [](const RowBlocks& blocks, const ReduceRows& rows, const Target& target) {
              return descriptor::sums_fit(blocks, target, words(rows));
            })
      .opens([](const RowBlocks& blocks, const ReduceRows&, const Target&) {
        return descriptor::has_open_row_blocks(blocks);
      })
      .adds([](const RowBlocks& blocks, const ReduceRows& rows, const Target&) {
        return rows.order(descriptor::order_of_sums("reduce_blocks", blocks));
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
