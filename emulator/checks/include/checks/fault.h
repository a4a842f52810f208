// Faults of a running kernel and the report of each.
//
// Every function records the fault in the warp's block, unless the block has one already, and returns null: the handler
// that found it returns that, and the block stops.
#pragma once

#include <string_view>

#include "checks/access.h"
#include "checks/global_shadow.h"
#include "checks/shared_shadow.h"
#include "warp/warp.h"

namespace kiln::emulator {

/// Something `lanes` did at instruction `i`. The report names the first of them.
const Instruction* fault_here(Warp& warp, const Instruction* i, FaultKind kind, Mask lanes, std::string_view what);

/// The block has executed more than LaunchRequest::instruction_limit.
const Instruction* timeout_fault(Warp& warp, const Instruction* i);

/// No warp of the block can go on, and not all have finished: lists who waits where.
void deadlock_fault(Block& block);

/// "reads", "writes", "updates".
const char* verb(AccessKind kind);

/// Reports a finding of SharedShadow: names the other access and its line, too.
const Instruction* shared_fault(Warp& warp, const Instruction* i, const AccessRequest& request,
                                const SharedShadow::Result& result);

/// `lanes` store to one address at once, and lane `other` stores something else than the first.
const Instruction* conflict_fault(Warp& warp, const Instruction* i, Mask lanes, uint32_t other,
                                  const AccessRequest& request);

/// The lane reads global memory of which byte `hole` of the access has never been written.
const Instruction* uninitialised_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                                       uint64_t hole);

/// The lane reads its local memory, of which byte `hole` of the access has not been written.
const Instruction* local_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                               uint64_t hole);

/// A value that was loaded though nobody had written it, as `load` says, matters at `i`; `where`: "stored here".
const Instruction* unwritten_use_fault(Warp& warp, const Instruction* i, const Fault& load, std::string_view where);

/// The lane's access to global memory races with another one of this launch.
const Instruction* global_race_fault(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane,
                                     const GlobalShadow::Other& other);

/// `lanes` arrive at a barrier of the whole block, where others wait at another instruction.
const Instruction* divergent_barrier_fault(Warp& warp, const Instruction* i, Mask lanes, uint32_t number);

/// `lanes` come to a barrier while others of their warp wait at another one for them.
const Instruction* divergent_warp_fault(Warp& warp, const Instruction* i, Mask lanes, const Fragment& others);

}  // namespace kiln::emulator
