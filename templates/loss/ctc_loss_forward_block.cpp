#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "loss/ctc.h"

namespace kiln {
namespace ctc_loss_forward_block_descriptor {
namespace {

using descriptor::CtcLayer;
using Shape = descriptor::CtcBlockShape;

Program program(const Shape& shape, const CtcLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::ctc_prelude(layer);
  descriptor::add_ctc_block(prelude, shape, layer);
  const int64_t steps = descriptor::aligned_bytes(descriptor::step_bytes(layer));
  const std::vector<WorkspaceArgument> workspace = {{0, steps}, {steps, descriptor::workspace_row_bytes(shape, layer)}};
  Program program{{emit.source(prelude)}, {}};
  if (layer.input == CtcInput::scores) {
    Launch softmax =
        descriptor::ctc_launch(layer, "ctc_loss_forward_block_steps", descriptor::ctc_row_threads, workspace);
    softmax.grid[0] = descriptor::step_blocks(layer);
    program.steps.emplace_back(softmax);
  }
  Launch main = descriptor::ctc_launch(layer, "ctc_loss_forward_block", shape.threads, workspace);
  main.grid[0] = descriptor::blocks_for(1, layer.images(), layer.dynamic_batch, 1);
  main.dynamic_shared_bytes = static_cast<unsigned>(descriptor::shared_row_bytes(shape, layer));
  program.steps.emplace_back(main);
  return program;
}

}  // namespace
}  // namespace ctc_loss_forward_block_descriptor

Algorithm ctc_loss_forward_block() {
  return descriptor::ctc_loss_blocks("ctc_loss_forward", ctc_loss_forward_block_descriptor::program, 1);
}

}  // namespace kiln
