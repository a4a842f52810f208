// How many blocks of a kernel one SM holds at a time.
#pragma once

#include <cstdint>

#include "model/device_table.h"

namespace kiln::emulator {

/// Resources that one block of a launch takes from an SM.
struct BlockResources {
  uint32_t threads = 1;
  uint32_t registers_per_thread = 0;  ///< 0: unknown, not a limit
  uint64_t shared_bytes = 0;          ///< static plus dynamic
};

enum class OccupancyLimit { blocks, warps, registers, shared_memory };

struct Occupancy {
  int blocks_per_multiprocessor = 0;  ///< 0 when not even one block fits
  int warps_per_multiprocessor = 0;
  OccupancyLimit limit = OccupancyLimit::blocks;  ///< the tightest; the first of the enumeration when several are equal
};

/// Blocks resident on one SM, by the rules of NVIDIA's occupancy calculator for compute capability 7.5 and above: warps
/// are whole; registers go to warps in units of 256 and each of the four schedulers has a quarter of the file; shared
/// memory goes to blocks in units of 128 bytes (256 on 7.5) after the per-block reserve is added.
///
/// The registers per thread of an emulated kernel are an estimate, so a count above what the block could have at all
/// (registers of an SM over threads of the block) is cut to that: a compiler would have spilled.
Occupancy occupancy(const DeviceLimits& limits, const BlockResources& block);

}  // namespace kiln::emulator
