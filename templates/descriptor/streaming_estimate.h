// Predicted time of kernels that are bound by memory: what pooling, softmax and depthwise descriptors share.
#pragma once

#include <vector>

#include "kiln/generator/algorithm.h"

namespace kiln::descriptor {

/// Work of a streaming kernel, summed over all of its launches.
struct StreamingWork {
  double dram_bytes = 0;               ///< Moved between device memory and the SMs, reuse in L2 taken off.
  double cache_bytes = 0;              ///< Requested from L1 and L2 by all threads.
  double threads = 1;                  ///< Threads that have work.
  double instructions_per_thread = 0;  ///< Arithmetic, addresses and accesses.
  double blocks = 1;
  double threads_per_block = 1;
  double registers_per_thread = 32;
  double shared_bytes_per_block = 0;
  double bytes_in_flight_per_thread = 16;  ///< Loads that a thread has under way at the same time.
  int launches = 1;
};

/// Bytes that a load of `bytes` costs a lane whose neighbour reads `pitch` bytes further on: whole 32-byte sectors
/// move.
double lane_bytes(double bytes, double pitch);

/// Seconds of launches of kernels that read device memory, however little they do: no estimate should be below it.
double launch_seconds(double launches, const DeviceFigures& device);

/// The larger of device memory, cache and issue time, stretched where the grid leaves SMs idle (waves of whole blocks)
/// or too few bytes are in flight to cover the latency of memory (Little's law), plus launches. Issue takes no less
/// than one thread's instructions one after the other, which is what bounds small grids.
Estimate streaming_estimate(const StreamingWork& work, const Arch& arch, const DeviceFigures& device);

/// The same of kernels that run one after the other, each with its own work.
Estimate streaming_estimate(const std::vector<StreamingWork>& steps, const Arch& arch, const DeviceFigures& device);

}  // namespace kiln::descriptor
