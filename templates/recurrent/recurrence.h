// Parts that descriptors of recurrent layers and their gradients share.
#pragma once

#include <string>

#include "descriptor/layer_operands.h"
#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/recurrent.h"

namespace kiln::descriptor {

/// A recurrent layer, or its gradient.
struct RecurrentLayer : Recurrence {
  LayerOperands operands;
  bool is_gradient = false;
  int64_t images = 0, steps = 0, directions = 0, hidden = 0;
  Blend blend;
  bool dynamic_batch = false;

  static RecurrentLayer of(const Request& request);

  const TensorSpec& r() const { return *spec_of(operands, "r"); }
  /// Rows of r: GH.
  int64_t rows() const { return gates_of(cell) * hidden; }
  /// Bytes that have to move: each operand once.
  double bytes() const { return bytes_of(operands); }
};

/// Constants of lib/recurrent.cuh, and those of results.
Prelude recurrent_prelude(const RecurrentLayer& layer);

/// One launch of `entry` with blocks of `threads`: all operands, `workspace`, alpha, beta, user code and n. The grid is
/// the caller's to set.
Launch recurrent_launch(const RecurrentLayer& layer, std::string entry, int threads,
                        const WorkspaceArgument& workspace);

/// Program of a trusted kernel: a block for each image and direction, which has so many floats of the workspace for
/// each element of a state.
Program simple_recurrent_program(const RecurrentLayer& layer, const std::string& entry, int threads,
                                 int64_t floats_per_unit, const Emitter& emit);
/// Its estimate.
Estimate simple_recurrent_estimate(const RecurrentLayer& layer, int threads, const Target& target,
                                   const DeviceFigures& device);

}  // namespace kiln::descriptor
