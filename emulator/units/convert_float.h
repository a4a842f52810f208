// Narrowing to the 16-bit formats in any rounding mode.
#pragma once

#include "numerics.h"
#include "units/unit_table.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

template <class Format>
inline float widened(uint16_t h) {
  if constexpr (Format::one == F16::one) return half_to_float(h);
  return bfloat_to_float(h);
}

/// x, exact in its double, rounded once to the 16-bit format.
template <class Format>
inline uint16_t narrowed(double x, Rounding rounding) {
  const float odd = to_float_odd(x);
  uint16_t near;
  if constexpr (Format::one == F16::one) {
    near = float_to_half(odd);
  } else {
    near = float_to_bfloat(odd);
  }
  const double back = widened<Format>(near);
  const bool above = back > x, below = back < x, negative = (near & 0x8000u) != 0;
  const bool too_big = negative ? below : above, too_small = negative ? above : below;
  bool shrink = false, grow = false;
  switch (rounding) {
    case Rounding::zero:
      shrink = too_big;
      break;
    case Rounding::down:
      shrink = above && !negative, grow = above && negative;
      break;
    case Rounding::up:
      shrink = below && negative, grow = below && !negative;
      break;
    default:
      break;
  }
  // A tiny value that rounded to a zero of the wrong side's sign still has its own sign, so grow moves away from it.
  if (shrink && too_big) return static_cast<uint16_t>(near - 1);
  if (grow && too_small) return static_cast<uint16_t>(near + 1);
  return near;
}

/// Conversions between floating-point formats.
Handler convert_float(const Conversion& conversion);

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
