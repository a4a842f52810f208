#include "descriptor/streaming_estimate.h"

#include <algorithm>
#include <cmath>

#include "descriptor/occupancy.h"

namespace kiln::descriptor {
namespace {

constexpr double memory_latency_seconds = 6e-7;  // device memory, loaded
constexpr double l1_bytes_per_clock = 64;        // per SM, at mixed hit rates
constexpr double issue_per_clock = 4;            // warp instructions per SM
constexpr double dependent_issue_clocks = 3;     // between instructions of a warp, of which some wait for each other

}  // namespace

double lane_bytes(double bytes, double pitch) {
  return std::max(bytes, std::min(pitch, 32.0));
}

double launch_seconds(double launches, const DeviceFigures& device) {
  return launches * (device.calibration.launch_seconds + 2 * memory_latency_seconds);
}

Estimate streaming_estimate(const StreamingWork& work, const Arch& arch, const DeviceFigures& device) {
  const double blocks = std::max(work.blocks, 1.0);
  const double sms = std::max(device.sms, 1);
  const double at_once =
      resident_blocks({work.threads_per_block, work.registers_per_thread, work.shared_bytes_per_block}, arch) * sms;
  // Below one wave whole SMs idle; above, only the last wave does.
  const double waves = blocks / at_once;
  const double busy = waves < 1 ? std::min(1.0, blocks / sms) : waves / std::ceil(waves);

  // Bytes under way, over what the latency asks for to keep the bus full.
  const double concurrent_threads =
      std::clamp(work.threads, 1.0, std::max(1.0, std::min(blocks, at_once) * work.threads_per_block));
  const double in_flight = concurrent_threads * work.bytes_in_flight_per_thread;
  const Calibration& reached = device.calibration;
  const double bandwidth =
      std::min(device.dram_bytes_per_second * reached.copy_efficiency, in_flight / memory_latency_seconds);

  Estimate estimate;
  estimate.memory = work.dram_bytes / bandwidth;
  estimate.on_chip = work.cache_bytes / (l1_bytes_per_clock * sms * device.clock_hz * busy);
  const double issue = work.threads * work.instructions_per_thread / 32 / (issue_per_clock * sms * busy);
  const double one_after_the_other = std::ceil(waves) * work.instructions_per_thread * dependent_issue_clocks;
  estimate.math = std::max(issue, one_after_the_other) / device.clock_hz;
  estimate.overhead = launch_seconds(work.launches, device);
  // Terms overlap only in part: what is not the longest still costs a little, which orders near ties sensibly.
  const double longest = std::max({estimate.memory, estimate.on_chip, estimate.math});
  const double rest = estimate.memory + estimate.on_chip + estimate.math - longest;
  estimate.seconds = longest + 0.1 * rest + estimate.overhead;
  return estimate;
}

Estimate streaming_estimate(const std::vector<StreamingWork>& steps, const Arch& arch, const DeviceFigures& device) {
  Estimate sum;
  for (const StreamingWork& step : steps) {
    const Estimate estimate = streaming_estimate(step, arch, device);
    sum.seconds += estimate.seconds;
    sum.math += estimate.math;
    sum.memory += estimate.memory;
    sum.on_chip += estimate.on_chip;
    sum.overhead += estimate.overhead;
  }
  return sum;
}

}  // namespace kiln::descriptor
