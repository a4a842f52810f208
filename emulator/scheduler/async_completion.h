// Waiting for cp.async: carries out the copies that a warp's lanes wait for.
#pragma once

#include "warp/warp.h"

namespace kiln::emulator {

/// Completes all but the `pending` latest committed groups of each lane.
void complete_copies(Warp& warp, Mask lanes, uint32_t pending);

/// Completes everything, committed or not.
void complete_all_copies(Warp& warp, Mask lanes);

}  // namespace kiln::emulator
