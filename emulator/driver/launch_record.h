// What a launch was, did and would have cost: the material of kiln_emulator_last_launch_json().
#pragma once

#include <string>

#include "machine/machine.h"
#include "model/occupancy.h"
#include "model/timing.h"

namespace kiln::emulator {

struct LaunchRecord {
  std::string device;  ///< DeviceModel::name
  std::string kernel;
  Dim3 grid, block;
  uint64_t shared_bytes = 0;  ///< static plus dynamic, per block
  uint32_t registers_per_thread = 0;
  Occupancy occupancy;
  Counters counters;
  LaunchTime time;
};

/// One JSON object; its fields are listed in docs/emulator.md.
std::string to_json(const LaunchRecord& record);

}  // namespace kiln::emulator
