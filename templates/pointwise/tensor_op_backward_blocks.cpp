#include <optional>
#include <string>

#include "descriptor/row_blocks.h"
#include "kiln/generator/algorithm.h"
#include "pointwise/gradient_rows.h"

namespace kiln {
namespace tensor_op_backward_blocks_descriptor {
namespace {

using descriptor::OpGradientRows;
using descriptor::RowBlocks;

std::optional<std::string> refusal(const OpGradientRows& rows, const Target& target) {
  if (rows.axes.empty()) return "the input does not repeat";
  return descriptor::refuse_row_blocks(rows, target);
}

Program program(const RowBlocks& blocks, const OpGradientRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(blocks, rows, emit);
  descriptor::add_op_gradient(prelude, rows);
  const WorkspaceArgument parts{0, descriptor::part_bytes(blocks, rows, 1)};
  Launch sum = descriptor::row_blocks_launch(blocks, rows, "tensor_op_backward_blocks");
  sum.arguments = {OperandArgument{"dy"},
                   OperandArgument{"a"},
                   OperandArgument{"b"},
                   OperandArgument{"dx"},
                   parts,
                   Scalar::alpha,
                   Scalar::beta,
                   UserArgument{},
                   Scalar::n};
  Program result{{emit.source(prelude)}, {sum}};
  if (blocks.splits == 1) return result;
  Launch merge = descriptor::merge_launch(blocks, rows, "tensor_op_backward_blocks_merge");
  merge.arguments = {parts, OperandArgument{"dx"}, Scalar::alpha, Scalar::beta, UserArgument{}, Scalar::n};
  result.steps.emplace_back(merge);
  return result;
}

Estimate predict(const RowBlocks& blocks, const OpGradientRows& rows, const Target& target,
                 const DeviceFigures& device) {
  descriptor::RowWork work;
  work.dram_bytes = rows.moved_bytes();
  work.instructions = 8;
  work.launches = blocks.splits == 1 ? 1 : 2;
  return descriptor::row_blocks_estimate(blocks, rows, target, device, work);
}

}  // namespace
}  // namespace tensor_op_backward_blocks_descriptor

Algorithm tensor_op_backward_blocks() {
  using namespace tensor_op_backward_blocks_descriptor;
  return descriptor::with_row_blocks(describe<RowBlocks, OpGradientRows>("tensor_op_backward_blocks",
                                                                         "tensor_op_backward",
                                                                         "pointwise/tensor_op_backward_blocks.cu"))
      .applies(refusal)
      .rule("parts of rows fit shared memory",
            [](const RowBlocks& blocks, const OpGradientRows&, const Target& target) {
              return descriptor::sums_fit(blocks, target, 1);
            })
      .opens([](const RowBlocks& blocks, const OpGradientRows&, const Target&) {
        return descriptor::has_open_row_blocks(blocks);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
