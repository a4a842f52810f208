#include "model/occupancy.h"

#include <algorithm>

namespace kiln::emulator {
namespace {

constexpr uint64_t register_unit = 256;  // registers, the granularity of a warp's allocation
constexpr uint64_t schedulers = 4;

constexpr uint64_t round_up(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

// Registers of one warp, rounded to allocation units, at most what lets one block run.
uint64_t registers_per_warp(uint64_t per_thread, uint64_t warps) {
  const uint64_t warps_per_scheduler = (warps + schedulers - 1) / schedulers;
  const uint64_t fair_share = registers_per_multiprocessor / schedulers / warps_per_scheduler;
  const uint64_t wanted = round_up(std::min<uint64_t>(per_thread, max_registers_per_thread) * warp_size, register_unit);
  return std::min(wanted, fair_share / register_unit * register_unit);
}

}  // namespace

Occupancy occupancy(const DeviceLimits& limits, const BlockResources& block) {
  const uint64_t warps = (uint64_t{block.threads} + warp_size - 1) / warp_size;
  if (warps == 0 || block.threads > max_block_threads) return {};

  Occupancy result;
  uint64_t blocks = limits.blocks_per_multiprocessor;
  const auto restrict_to = [&](uint64_t count, OccupancyLimit reason) {
    if (count >= blocks) return;
    blocks = count;
    result.limit = reason;
  };
  restrict_to(limits.threads_per_multiprocessor / warp_size / warps, OccupancyLimit::warps);
  if (block.registers_per_thread > 0) {
    const uint64_t quarter = registers_per_multiprocessor / schedulers;
    const uint64_t resident = quarter / registers_per_warp(block.registers_per_thread, warps) * schedulers;
    restrict_to(resident / warps, OccupancyLimit::registers);
  }
  const uint64_t shared_unit = limits.major < 8 ? 256 : 128;  // bytes, the granularity of a block's shared memory
  const uint64_t shared = round_up(block.shared_bytes + limits.shared_reserved_per_block, shared_unit);
  if (shared > 0) restrict_to(limits.shared_per_multiprocessor / shared, OccupancyLimit::shared_memory);

  result.blocks_per_multiprocessor = static_cast<int>(blocks);
  result.warps_per_multiprocessor = static_cast<int>(blocks * warps);
  return result;
}

}  // namespace kiln::emulator
