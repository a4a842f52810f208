// Checks and counts of memory accesses: bounds, alignment, sectors and bank conflicts.
#pragma once

#include <array>
#include <cstdint>

#include "ptx/type.h"
#include "scheduler/warp.h"

namespace kiln::emulator {

enum class AccessKind : uint8_t { load, store, atomic };

/// One warp's access: host addresses, `bytes` per lane.
struct AccessRequest {
  ptx::Space space = ptx::Space::generic;
  AccessKind kind = AccessKind::load;
  uint32_t bytes = 4;
  Mask lanes = 0;        ///< may be none: the instruction was issued all the same
  bool is_part = false;  ///< of an instruction whose other part counts as the access
  alignas(64) std::array<uint64_t, warp_lanes> address;
};

/// Checks the access if the block checks, and records it if the block is counted. False if it must not happen: the
/// block's fault says which thread touched what.
bool inspect_access(Warp& warp, const Instruction* i, const AccessRequest& request);

}  // namespace kiln::emulator
