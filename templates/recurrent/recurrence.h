// What descriptors of recurrent layers share.
#pragma once

#include <string>

#include "kiln/generator/algorithm.h"
#include "kiln/generator/operations/recurrent.h"

namespace kiln::descriptor {

/// Constants of lib/recurrent.cuh, and those of results.
Prelude recurrent_prelude(const RecurrentForward& layer);

/// One launch of `entry` with blocks of `threads`: all operands, `workspace`, alpha, beta, user code and n. The grid is
/// the caller's to set.
Launch recurrent_launch(std::string entry, int threads, const WorkspaceArgument& workspace);

/// Bytes that have to move: each operand once.
double recurrent_bytes(const RecurrentForward& layer);

}  // namespace kiln::descriptor
