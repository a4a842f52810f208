// Arithmetic of instructions, lane by lane.
#pragma once

#include <bit>
#include <cstdint>

#include "machine.h"

namespace kiln::timing {

/// compute(lane) of every lane; those in `unknown` have no value.
template <class Compute>
Lanes each(uint32_t unknown, const Compute& compute) {
  Lanes result;
  result.unknown = unknown;
  if (unknown == all_lanes) return result;
  for (uint32_t lane = 0; lane < 32; ++lane) result.v[lane] = compute(lane);
  return result;
}

inline uint64_t pair(const Lanes& low, const Lanes& high, uint32_t lane) {
  return uint64_t{high.v[lane]} << 32 | low.v[lane];
}

inline float as_float(uint32_t bits) {
  return std::bit_cast<float>(bits);
}

}  // namespace kiln::timing
