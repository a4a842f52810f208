// Divergence: how a warp's fragments are set aside, chosen and brought together again.
#pragma once

#include "warp/warp.h"

namespace kiln::emulator {

/// Makes the ready fragment with the lowest instruction the running one; null, and no active lane, if none is ready.
/// Fragments whose wait the exit of other lanes has ended become ready first.
const Instruction* next_fragment(Warp& warp);

/// Starts the warp again after it was blocked or preempted; null if it cannot run.
const Instruction* resume(Warp& warp);

/// Books what the warp has executed of its budget, and renews that. Returns what the block has executed so far.
uint64_t account(Warp& warp);

/// Takes `lanes` out of the running fragment, which stands at `i`, and returns where the warp goes on.
const Instruction* leave(Warp& warp, const Instruction* i, Mask lanes);

/// For an instruction that `members` have to execute together when not all of them are among `lanes`: joins those that
/// wait here already, or sets `lanes` aside until the others come. Returns what to execute next.
const Instruction* converge(Warp& warp, const Instruction* i, Mask lanes, Mask members);

/// The same where each lane has a member mask of its own, in `members`: of the `lanes` that execute `i`, those in
/// `waiting` lack members, and the others have done what it says.
const Instruction* wait_for_members(Warp& warp, const Instruction* i, Mask lanes, Mask waiting,
                                    const uint32_t* members);

/// The same for an instruction that all 32 threads of a warp have to execute together, some but not all of which are
/// among `lanes`. A fault if the others have left the kernel.
const Instruction* gather_warp(Warp& warp, const Instruction* i, Mask lanes);

/// The running fragment is at the label `i` and others are ready at or below it, or its budget is used up. Returns
/// `i` to enter the label, or what to execute instead.
const Instruction* meet_at_label(Warp& warp, const Instruction* i);

}  // namespace kiln::emulator
