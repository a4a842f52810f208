// Indices along a dimension, as checks fill them.
#pragma once

#include <cstdint>
#include <limits>

#include "evaluator.h"

namespace kiln::reference {

/// A position, from the front or from the end; now and then one just outside, and among special values the farthest.
inline int64_t draw_index(int64_t positions, Values values, uint64_t bits) {
  constexpr uint64_t seldom = 8;
  const uint64_t draw = bits / seldom;
  if (positions == 0 || bits % seldom == 0) return draw % 2 == 0 ? positions : -positions - 1;
  if (values == Values::specials && bits % seldom == 1) {
    return draw % 2 == 0 ? std::numeric_limits<int32_t>::min() : std::numeric_limits<int32_t>::max();
  }
  return static_cast<int64_t>(draw % (2 * static_cast<uint64_t>(positions))) - positions;
}

}  // namespace kiln::reference
