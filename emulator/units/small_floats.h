// The 8-bit formats e4m3 (no infinity, largest 448) and e5m2 (IEEE-like, largest 57344).
#pragma once

#include <cmath>

#include "numerics.h"

namespace kiln::emulator::KILN_EMULATOR_ISA {

struct E4M3 {
  static constexpr int fraction_bits = 3, bias = 7;
  static constexpr uint8_t largest = 0x7E, nan = 0x7F;
  static bool is_special(uint8_t magnitude) { return magnitude == 0x7F; }
};
struct E5M2 {
  static constexpr int fraction_bits = 2, bias = 15;
  static constexpr uint8_t largest = 0x7B, nan = 0x7F;
  static bool is_special(uint8_t magnitude) { return magnitude >= 0x7C; }
};

template <class Format>
inline float float_from_small(uint8_t x) {
  const uint8_t magnitude = x & 0x7F;
  const int exponent = magnitude >> Format::fraction_bits;
  const int fraction = magnitude & ((1 << Format::fraction_bits) - 1);
  float value;
  if (Format::is_special(magnitude)) {
    value = fraction != 0 ? float_of(canonical_nan) : HUGE_VALF;
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<float>(fraction), 1 - Format::bias - Format::fraction_bits);
  } else {
    value = std::ldexp(static_cast<float>(fraction | 1 << Format::fraction_bits),
                       exponent - Format::bias - Format::fraction_bits);
  }
  return (x & 0x80) != 0 ? -value : value;
}

/// To nearest even; values beyond the range become the largest finite one (.satfinite).
template <class Format>
inline uint8_t small_from_float(float x, bool relu) {
  if (is_nan(x)) return Format::nan;
  if (relu && x < 0) x = 0.0f;
  const uint8_t sign = std::signbit(x) ? 0x80 : 0;
  const float magnitude = std::abs(x);
  if (magnitude == 0.0f) return relu ? 0 : sign;
  if (std::isinf(magnitude)) return sign | Format::largest;
  const int exponent = std::max(std::ilogb(magnitude), 1 - Format::bias);
  // Units of the last place; exact, then rounded by rint.
  const auto units = static_cast<int>(std::rint(std::ldexp(magnitude, Format::fraction_bits - exponent)));
  const int biased = exponent + Format::bias - 1;
  const int encoded = (biased << Format::fraction_bits) + units;  // a carry moves into the exponent
  return sign | static_cast<uint8_t>(std::min<int>(encoded, Format::largest));
}

}  // namespace kiln::emulator::KILN_EMULATOR_ISA
