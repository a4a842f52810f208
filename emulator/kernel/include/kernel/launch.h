// One launch: the request, and its outcome.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "kernel/counters.h"
#include "kernel/dim3.h"
#include "memory/region_table.h"

namespace kiln::emulator {

class Kernel;

enum class CheckLevel {
  off,     ///< Trust the kernel: no address checks.
  bounds,  ///< Bounds and alignment of every global, shared, local, constant and parameter access.
  full,    ///< And races, reads of what was never written, and divergent barriers.
};

enum class FaultKind {
  illegal_address,
  misaligned_address,
  illegal_instruction,
  deadlock,
  timeout,
  assertion,           ///< trap, assert
  race,                ///< two accesses to shared or global memory that nothing orders
  uninitialised_read,  ///< of shared memory that the block, local memory that the thread, global memory that nobody
                       ///< has written
  divergent_barrier,   ///< a barrier of the whole block, met at different instructions
};

/// Why a launch stopped. `report` is complete and names kernel, block, thread, instruction and PTX line.
struct Fault {
  FaultKind kind = FaultKind::illegal_instruction;
  std::string report;
};

struct LaunchRequest {
  const Kernel* kernel = nullptr;
  Dim3 grid, block;
  uint32_t dynamic_shared_bytes = 0;
  std::span<const std::byte> parameters;      ///< laid out as KernelInfo::parameters says
  std::shared_ptr<const RegionTable> memory;  ///< valid global addresses; needed by CheckLevel::bounds
  CheckLevel check = CheckLevel::bounds;
  /// Per-launch id, from 1 to most_launches. Full checks need one that no previous launch with marks in `memory` had.
  uint32_t number = 1;
  unsigned host_threads = 1;
  uint64_t counted_blocks = 64;    ///< at most this many blocks, spread over the grid, record memory behaviour; 0: all
  uint64_t instruction_limit = 0;  ///< warp instructions per block before FaultKind::timeout; 0: no limit
  /// All blocks are there at once and progress together, so that they may wait for each other. Each takes the memory of
  /// its registers, shared and local memory until the launch has ended.
  bool cooperative = false;
};

struct LaunchOutcome {
  Counters counters;
  std::optional<Fault> fault;
};

}  // namespace kiln::emulator
