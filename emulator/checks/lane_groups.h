// Which lanes of a warp's access are where, and what they store: for full checks.
#pragma once

#include <bit>
#include <cstring>

#include "checks/access.h"
#include "warp/warp.h"

namespace kiln::emulator {

inline constexpr uint32_t widest_stored = 32;  // bytes

inline uint32_t index_of(const Block& block, const Instruction* i) {
  return static_cast<uint32_t>(i - block.first);
}

inline uint32_t first_thread(const Warp& warp) {
  return warp.index * warp_lanes;
}

/// Whether the lanes, which are at one address, store what stands there already.
inline bool repeats(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  if (request.value_of == nullptr) return false;
  for (; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<uint32_t>(std::countr_zero(lanes));
    std::byte value[widest_stored];
    request.value_of(warp, i, static_cast<int>(lane), value);
    if (std::memcmp(value, reinterpret_cast<const void*>(request.address[lane]), request.bytes) != 0) return false;
  }
  return true;
}

/// The first of the lanes, which are at one address, that does not store what the one before them does; 0 if none.
inline Mask disagreeing(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes) {
  std::byte first[widest_stored], value[widest_stored];
  request.value_of(warp, i, std::countr_zero(lanes), first);
  for (lanes &= lanes - 1; lanes != 0; lanes &= lanes - 1) {
    request.value_of(warp, i, std::countr_zero(lanes), value);
    if (std::memcmp(value, first, request.bytes) != 0) return lanes & -lanes;
  }
  return 0;
}

/// Whether every lane is at a higher address than the one before it.
inline bool ascending(const AccessRequest& request, Mask lanes) {
  uint64_t last = 0;
  for (; lanes != 0; lanes &= lanes - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(lanes))];
    if (address <= last) return false;
    last = address;
  }
  return true;
}

/// Whether it is certain that no two lanes are at one address: they are near each other, at places of their own.
inline bool apart(const AccessRequest& request) {
  constexpr uint64_t most_places = 64;
  if (request.reach.highest - request.reach.lowest >= most_places * request.bytes) return false;
  uint64_t places = 0;
  for (Mask rest = request.lanes; rest != 0; rest &= rest - 1) {
    const uint64_t address = request.address[static_cast<size_t>(std::countr_zero(rest))];
    places |= uint64_t{1} << (address - request.reach.lowest) / request.bytes;
  }
  return std::popcount(places) == std::popcount(request.lanes);
}

/// The lanes at the first one's address.
inline Mask at_leaders_address(const AccessRequest& request, Mask lanes) {
  const uint64_t leader = request.address[static_cast<size_t>(std::countr_zero(lanes))];
  Mask same = 0;
  for (uint32_t lane = 0; lane < warp_lanes; ++lane) {
    same |= static_cast<Mask>(request.address[lane] == leader) << lane;
  }
  return same & lanes;
}

}  // namespace kiln::emulator
