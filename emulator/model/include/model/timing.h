// Modelled device time of a launch. Uncalibrated: no term was fitted to a GPU. Formulas and sources: docs/emulator.md.
#pragma once

#include <string_view>

#include "kernel/counters.h"
#include "model/device_table.h"
#include "model/occupancy.h"

namespace kiln::emulator {

/// Facts of a launch that the model needs besides its counters.
struct LaunchShape {
  uint64_t blocks = 1;
  uint32_t threads_per_block = 1;
  Occupancy occupancy;
};

/// Modelled seconds of one launch and the terms behind them. Each term is the time the launch would take if it were the
/// only limit.
struct LaunchTime {
  double seconds = 0;      ///< launch + the largest term + a part of the others
  double launch = 0;       ///< fixed cost between kernels of a stream
  double issue = 0;        ///< warp schedulers of the busiest SM
  double arithmetic = 0;   ///< the busiest arithmetic pipe of the busiest SM
  double l1 = 0;           ///< shared-memory and L1 data path of the busiest SM
  double l2 = 0;           ///< traffic between SMs and L2
  double dram = 0;         ///< traffic between L2 and memory
  double latency = 0;      ///< waves of blocks, each as long as one warp's chain of dependent work
  std::string_view bound;  ///< the name of the largest term, e.g. "dram"
};

/// Deterministic: equal arguments give bit-equal results. `counters` are of the whole launch.
LaunchTime model_launch(const DeviceModel& device, const LaunchShape& shape, const Counters& counters);

/// Modelled seconds of a copy over the host link.
double model_host_transfer(const DeviceModel& device, uint64_t bytes);
/// Modelled seconds of a copy or fill in device memory; `bytes` counts those read and those written.
double model_device_transfer(const DeviceModel& device, uint64_t bytes);

}  // namespace kiln::emulator
