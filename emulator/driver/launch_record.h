// Record of a launch, with its counters and its modelled time: the material of kiln_emulator_last_launch_json().
#pragma once

#include <string>

#include "machine/machine.h"
#include "machine_clock.h"
#include "model/occupancy.h"
#include "model/timing.h"

namespace kiln::emulator {

struct LaunchRecord {
  std::string device;  ///< Device::name
  std::string kernel;
  Dim3 grid, block;
  uint64_t shared_bytes = 0;  ///< static plus dynamic, per block
  uint32_t registers_per_thread = 0;
  Occupancy occupancy;
  Counters counters;
  LaunchTime time;      ///< by what was executed
  MachineTime machine;  ///< by machine code; with neither a time nor a refusal if the device's clock reads none

  double seconds() const { return machine.time ? machine.time->seconds : time.seconds; }
};

/// One JSON object; its fields are listed in docs/emulator.md. `process`: of its trace, if it has one.
std::string to_json(const LaunchRecord& record, uint32_t process = 1);

}  // namespace kiln::emulator
