// Handlers of cp.async.bulk. Each lane that executes one issues a copy of its own.
#pragma once

#include "kernel/instruction.h"

namespace kiln::emulator {

/// From global memory at register `b` to shared memory at register `a`; the mbarrier at register `c` gets to know.
/// lists[extra] is 0, and lists[extra + 1] the register with the bytes (32 bits). Of a box, lists[extra] is its rank,
/// `b` has the address of the tensor map, and registers with the coordinates of its corner follow. Addresses are
/// generic.
extern const HandlerPair bulk_to_shared;
/// The same from shared memory to global memory, without an mbarrier: in the thread's open group.
extern const HandlerPair bulk_to_global;

/// cp.async.bulk.commit_group; cp.async.bulk.wait_group with the count in `immediate`.
const Instruction* execute_bulk_commit(Warp& warp, const Instruction* i);
const Instruction* execute_bulk_wait(Warp& warp, const Instruction* i);

}  // namespace kiln::emulator
