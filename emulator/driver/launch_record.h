// Record of a launch, with its counters and its modelled time: the material of kiln_emulator_last_launch_json().
#pragma once

#include <optional>
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

  /// Nothing if no clock tells the time: not_timed() says why.
  std::optional<double> seconds() const {
    if (machine.time) return machine.time->seconds;
    return counters.tensor == 0 ? std::optional(time.seconds) : std::nullopt;
  }
  std::string not_timed() const;
};

/// One JSON object; its fields are listed in docs/emulator.md. `process`: of its trace, if it has one.
std::string to_json(const LaunchRecord& record, uint32_t process = 1);

}  // namespace kiln::emulator
