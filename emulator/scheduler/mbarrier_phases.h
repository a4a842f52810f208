// Phases of a block's mbarriers: how they end, and with them the waits for them.
#pragma once

#include "warp/mbarriers.h"
#include "warp/warp.h"

namespace kiln::emulator {

/// Ends the phase of the mbarrier at `offset` if it is complete, and lets those go on that wait for that. If nothing
/// but bytes is missing and `awaited`, or somebody waits, copies that have been issued are carried out first.
void settle_mbarrier(Block& block, uint64_t offset, bool awaited);

/// No warp of the block can go on: the waits of those that wait for mbarriers have lasted too long, and end in vain.
/// False if there are none, or if this has happened too often without anything else.
bool let_waits_run_out(Block& block);

}  // namespace kiln::emulator
