// From what the host threads counted to the counters of a launch.
#pragma once

#include <vector>

#include "machine/machine.h"
#include "scheduler/block_runner.h"

namespace kiln::emulator {

Counters total_counters(const LaunchRequest& request, const std::vector<const BlockRunner*>& runners);

}  // namespace kiln::emulator
