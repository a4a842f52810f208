// Parts that descriptors of CTC loss and its gradient share.
#pragma once

#include <string>
#include <vector>

#include "descriptor/layer_operands.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/ctc_loss.h"

namespace kiln::descriptor {

/// CTC loss, or its gradient.
struct CtcLayer : CtcLoss {
  LayerOperands operands;

  static CtcLayer of(const Request& request);

  /// Bytes that have to move: each operand once.
  double bytes() const { return bytes_of(operands); }
};

/// Constants of lib/ctc_loss.cuh, and those of results.
Prelude ctc_prelude(const CtcLayer& layer);

/// One launch of `entry` with blocks of `threads`: all operands, `workspace`, alpha, beta, user code and n. The grid is
/// the caller's to set.
Launch ctc_launch(const CtcLayer& layer, std::string entry, int threads,
                  const std::vector<WorkspaceArgument>& workspace);

/// Blocks of an image each: lib/ctc_loss_block.cuh.
struct CtcBlockShape {
  int threads, states, shared;
};
/// Threads of a block that takes the softmax of steps.
inline constexpr int ctc_row_threads = 128;

/// Constants of lib/ctc_loss_block.cuh.
void add_ctc_block(Prelude& prelude, const CtcBlockShape& shape, const CtcLayer& layer);
/// Bytes of the softmax of all steps, and blocks that find it.
int64_t step_bytes(const CtcLayer& layer);
Count step_blocks(const CtcLayer& layer);
/// Bytes of the rows of states: of a block's shared memory, and of all images in the workspace.
int64_t shared_row_bytes(const CtcBlockShape& shape, const CtcLayer& layer);
int64_t workspace_row_bytes(const CtcBlockShape& shape, const CtcLayer& layer);

using CtcBlockProgram = Program (*)(const CtcBlockShape& shape, const CtcLayer& layer, const Target& target,
                                    const Emitter& emit);
/// OPERATION_block of loss/OPERATION_block.cu. `passes`: how often its launches go through all operands.
Algorithm ctc_loss_blocks(const std::string& operation, CtcBlockProgram program, double passes);

/// OPERATION_simple of loss/OPERATION_simple.cu, the trusted kernel of `operation`: a thread takes an image.
Algorithm simple_ctc_loss(const std::string& operation);

}  // namespace kiln::descriptor
