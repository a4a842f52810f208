// Named barriers of a block: arrival, completion, and what happens to them when threads exit.
#pragma once

#include "warp/warp.h"

namespace kiln::emulator {

/// Releases every barrier that has all the threads it waits for, as after an exit.
void release_complete_barriers(Block& block);

}  // namespace kiln::emulator
