#include "descriptor/row_blocks.h"
#include "kiln/generator/algorithm.h"
#include "reduce/reduce_rows.h"

namespace kiln {
namespace reduce_backward_blocks_descriptor {
namespace {

using descriptor::ReduceGradientRows;
using descriptor::RowBlocks;

Program program(const RowBlocks& blocks, const ReduceGradientRows& rows, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::row_blocks_prelude(blocks, rows, emit);
  descriptor::add_reduce_gradient(prelude, rows);
  Launch launch = descriptor::row_blocks_launch(blocks, rows, "reduce_backward_blocks");
  launch.arguments = descriptor::reduce_gradient_arguments();
  return {{emit.source(prelude)}, {launch}};
}

Estimate predict(const RowBlocks& blocks, const ReduceGradientRows& rows, const Target& target,
                 const DeviceFigures& device) {
  descriptor::RowWork work;
  work.dram_bytes = rows.moved_bytes();
  work.instructions = 6;
  work.shared_words = 0;
  return descriptor::row_blocks_estimate(blocks, rows, target, device, work);
}

}  // namespace
}  // namespace reduce_backward_blocks_descriptor

Algorithm reduce_backward_blocks() {
  using namespace reduce_backward_blocks_descriptor;
  return descriptor::with_row_blocks(describe<RowBlocks, ReduceGradientRows>("reduce_backward_blocks",
                                                                             "reduce_backward",
                                                                             "reduce/reduce_backward_blocks.cu"))
      .applies(descriptor::refuse_row_blocks)
      .opens([](const RowBlocks& blocks, const ReduceGradientRows&, const Target&) {
        return descriptor::has_open_row_blocks(blocks);
      })
      .program(program)
      .estimate(predict);
}

}  // namespace kiln
