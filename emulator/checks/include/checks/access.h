// Checks and counts of memory accesses: bounds, alignment, sectors and bank conflicts.
#pragma once

#include <array>
#include <cstdint>

#include "ptx/type.h"
#include "warp/warp.h"

namespace kiln::emulator {

enum class AccessKind : uint8_t { load, store, atomic };

/// Details that only some kinds of access have.
struct AccessDetails {
  bool is_part = false;          ///< of an instruction whose other part counts as the access
  bool is_asynchronous = false;  ///< a store that happens later: cp.async
  bool is_unused = false;        ///< addresses that must be valid, and that nothing is done at
  /// A copy in bulk: it has checked its alignment itself, and goes through the asynchronous proxy.
  bool is_bulk = false;
  /// Copies to `to` the bytes that a lane is about to store. Null for loads, and where the bytes are not known.
  void (*value_of)(const Warp&, const Instruction*, int lane, std::byte* to) = nullptr;
};

/// The lowest and the highest address of an access's lanes.
struct Reach {
  uint64_t lowest = UINT64_MAX, highest = 0;
};

/// One warp's access: host addresses, `bytes` per lane.
struct AccessRequest : AccessDetails {
  ptx::Space space = ptx::Space::generic;
  AccessKind kind = AccessKind::load;
  uint32_t bytes = 4;
  Mask lanes = 0;              ///< may be none: the instruction was issued all the same
  bool is_known_good = false;  ///< bounds and alignment have been looked at
  Reach reach;                 ///< of all lanes
  alignas(64) std::array<uint64_t, warp_lanes> address;
};

/// Whether inspect_access() has nothing to do for weak loads of `bytes` a lane, a power of two, at addresses in one
/// line between those of `reach`, or all at one. False says nothing.
bool is_settled(const Block& block, const Reach& reach, uint32_t bytes);

/// Checks the access (in full, too) if the block checks, and records it if the block is counted. False if it must not
/// happen: the block's fault says which thread touched what.
bool inspect_access(Warp& warp, const Instruction* i, const AccessRequest& request);

}  // namespace kiln::emulator
