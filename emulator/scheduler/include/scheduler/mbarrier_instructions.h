// Handlers of mbarrier instructions. Register `a` holds the mbarrier's generic address.
//
// `checked` handlers look at the access first, as those of memory accesses do.
#pragma once

#include "kernel/instruction.h"
#include "warp/mbarriers.h"

namespace kiln::emulator {

/// With the arrivals of a phase in register `b`.
extern const HandlerPair mbarrier_init, mbarrier_invalidate;

/// Effects of an arrival beside arriving; in Instruction::immediate.
enum MbarrierArrival : int64_t {
  arrival_drops = 1,        ///< later phases expect as many arrivals less
  arrival_no_complete = 2,  ///< it must not end the phase
  arrival_releases = 4,
};
/// As often as register `b` says, after announcing the bytes in register `c` (0: none). The state before, with the
/// phase and the arrivals that it lacked, into register `d` (64 bits).
extern const HandlerPair mbarrier_arrive;

/// The bytes in register `b` are announced, or have come if the immediate is 1.
extern const HandlerPair mbarrier_transact;

/// Modifiers of a wait for an mbarrier; in Instruction::immediate.
enum MbarrierWait : int64_t {
  wait_by_parity = 1,  ///< register `b` has the phase's parity (32 bits), else the state that an arrival returned
  wait_acquires = 2,
};

/// Predicate `d`: whether the phase in register `b` has ended; MbarrierWait bits. Waits for that, for a while.
extern const HandlerPair mbarrier_wait;

/// The arrivals that the state in register `a` lacks, into register `d` (32 bits).
const Instruction* execute_mbarrier_pending_count(Warp& warp, const Instruction* i);

/// The lane's mbarrier at the generic address; null, and the block's fault, where there is none.
Mbarrier* find_mbarrier(Warp& warp, const Instruction* i, uint32_t lane, uint64_t address, uint64_t& offset);

}  // namespace kiln::emulator
