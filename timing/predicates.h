// Comparisons, and how their results are joined with predicates.
#pragma once

#include "machine.h"

namespace kiln::timing {

inline bool ordered(Compare compare, bool less, bool equal) {
  switch (compare) {
    case Compare::f:
      return false;
    case Compare::lt:
      return less;
    case Compare::eq:
      return equal;
    case Compare::le:
      return less || equal;
    case Compare::gt:
      return !less && !equal;
    case Compare::ne:
      return !equal;
    case Compare::ge:
      return !less;
    default:
      return true;
  }
}

/// Joins predicates bit by bit. A known bit of either operand can decide the result.
inline Bits combined(Combine combine, const Bits& a, const Bits& b) {
  Bits result;
  if (combine == Combine::conjunction) {
    const uint32_t is_false = (~a.unknown & ~a.value) | (~b.unknown & ~b.value);
    result = {a.value & b.value & ~is_false, (a.unknown | b.unknown) & ~is_false};
  } else if (combine == Combine::disjunction) {
    const uint32_t is_true = (~a.unknown & a.value) | (~b.unknown & b.value);
    result = {a.value | b.value | is_true, (a.unknown | b.unknown) & ~is_true};
  } else {
    result = {a.value ^ b.value, a.unknown | b.unknown};
  }
  return result;
}

}  // namespace kiln::timing
