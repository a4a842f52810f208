#include <algorithm>
#include <bit>

#include "descriptor/numbers.h"
#include "descriptor/prelude_and_launch.h"
#include "loss/ctc.h"

namespace kiln {
namespace ctc_loss_backward_block_descriptor {
namespace {

using descriptor::aligned_bytes;
using descriptor::CtcLayer;
using Shape = descriptor::CtcBlockShape;

// Classes whose parts are in a block's shared memory at once: of a few numbers, so that sizes share kernels.
int64_t classes_at_once(const CtcLayer& layer) {
  return static_cast<int64_t>(std::bit_ceil(std::clamp<uint64_t>(static_cast<uint64_t>(layer.classes()), 256, 4096)));
}

Program program(const Shape& shape, const CtcLayer& layer, const Target&, const Emitter& emit) {
  Prelude prelude = descriptor::ctc_prelude(layer);
  descriptor::add_ctc_block(prelude, shape, layer);
  prelude.constant("CLASSES_AT_ONCE", classes_at_once(layer));
  const int64_t steps = aligned_bytes(descriptor::step_bytes(layer));
  const int64_t rows = aligned_bytes(descriptor::workspace_row_bytes(shape, layer));
  const int64_t logs = aligned_bytes(layer.images() * layer.steps() * layer.states() * 4);
  const std::vector<WorkspaceArgument> workspace = {
      {0, steps}, {steps, rows}, {steps + rows, logs}, {steps + rows + logs, layer.images() * layer.labels() * 4}};
  constexpr int row_threads = descriptor::ctc_row_threads;
  Program program{{emit.source(prelude)}, {}};
  const auto add = [&](const char* entry, int threads, const Count& blocks, int64_t shared_bytes = 0) {
    Launch launch = descriptor::ctc_launch(layer, entry, threads, workspace);
    launch.grid[0] = blocks;
    launch.dynamic_shared_bytes = static_cast<unsigned>(shared_bytes);
    program.steps.emplace_back(launch);
  };
  const auto blocks = [&](int64_t per_image, int64_t per_block) {
    return descriptor::blocks_for(per_image, layer.images(), layer.dynamic_batch, per_block);
  };
  if (layer.labels() > 0) add("ctc_loss_backward_block_labels", row_threads, blocks(layer.labels(), row_threads));
  if (layer.input == CtcInput::scores) {
    add("ctc_loss_backward_block_steps", row_threads, descriptor::step_blocks(layer));
  }
  add("ctc_loss_backward_block", shape.threads, blocks(1, 1), descriptor::shared_row_bytes(shape, layer));
  add("ctc_loss_backward_block_classes", row_threads, blocks(layer.steps(), 1));
  return program;
}

}  // namespace
}  // namespace ctc_loss_backward_block_descriptor

Algorithm ctc_loss_backward_block() {
  return descriptor::ctc_loss_blocks("ctc_loss_backward", ctc_loss_backward_block_descriptor::program, 2);
}

}  // namespace kiln
