// Handlers of everything that moves the program counter or blocks a warp. They do not depend on the vector unit.
#pragma once

#include "warp/warp.h"

namespace kiln::emulator {

/// Start of basic block `d` of `a` instructions: counts it; fragments meet here.
const Instruction* execute_label(Warp& warp, const Instruction* i);

/// To i + immediate where the guard holds.
const Instruction* execute_branch(Warp& warp, const Instruction* i);

/// brx.idx: to i + lists[extra + index], the index in register `a` (32 bits), `c` entries.
const Instruction* execute_indexed_branch(Warp& warp, const Instruction* i);

const Instruction* execute_exit(Warp& warp, const Instruction* i);
const Instruction* execute_trap(Warp& warp, const Instruction* i);
const Instruction* execute_nothing(Warp& warp, const Instruction* i);

/// Actions of a barrier instruction, in Instruction::immediate; `barrier_aligned` may be added.
enum BarrierAction : int64_t {
  barrier_sync = 0,
  barrier_arrive = 1,
  barrier_popc = 2,  ///< d: 32-bit register
  barrier_and = 3,   ///< d: predicate
  barrier_or = 4,    ///< d: predicate
  barrier_action = 7,
  barrier_aligned = 8,  ///< all live threads of the warp come together
  barrier_not = 16,     ///< bar.red's predicate is negated
};

/// Named barrier: `a` is the register with its number, `b` the one with the thread count (0: none), `c` the predicate.
const Instruction* execute_barrier(Warp& warp, const Instruction* i);

/// bar.warp.sync with the member mask in register `a`.
const Instruction* execute_warp_sync(Warp& warp, const Instruction* i);

const Instruction* execute_fence(Warp& warp, const Instruction* i);

/// fence.proxy.async, which only the checks look at.
const Instruction* execute_proxy_fence(Warp& warp, const Instruction* i);

/// nanosleep: lets the block's other warps run.
const Instruction* execute_sleep(Warp& warp, const Instruction* i);

/// cp.async.commit_group; cp.async.wait_group with the count in `immediate`, cp.async.wait_all if it is negative.
const Instruction* execute_commit_group(Warp& warp, const Instruction* i);
const Instruction* execute_wait_group(Warp& warp, const Instruction* i);

/// %clock and %globaltimer into register `d`. The clock counts the warp instructions of the block.
enum ClockKind : int64_t { clock_nanoseconds = 1, clock_high = 2 };
const Instruction* execute_clock_32(Warp& warp, const Instruction* i);
const Instruction* execute_clock_64(Warp& warp, const Instruction* i);

/// isspacep: predicate `d` from the generic address in `a`; the immediate is the ptx::Space.
const Instruction* execute_is_space(Warp& warp, const Instruction* i);

}  // namespace kiln::emulator
