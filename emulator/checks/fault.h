// Faults of a running kernel and the report of each.
//
// Every function records the fault in the warp's block, unless the block has one already, and returns null: the handler
// that found it returns that, and the block stops.
#pragma once

#include <string_view>

#include "ptx/type.h"
#include "scheduler/warp.h"

namespace kiln::emulator {

/// Something `lanes` did at instruction `i`. The report names the first of them.
const Instruction* fault_here(Warp& warp, const Instruction* i, FaultKind kind, Mask lanes, std::string_view what);

/// The block has executed more than LaunchRequest::instruction_limit.
const Instruction* timeout_fault(Warp& warp, const Instruction* i);

/// No warp of the block can go on, and not all have finished: lists who waits where.
void deadlock_fault(Block& block);

}  // namespace kiln::emulator
