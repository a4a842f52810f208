// f16 and bf16 as IEEE 754 defines them, bit by bit and slowly: the oracle of the tests of 16-bit arithmetic.
#pragma once

#include <cmath>
#include <cstdint>

namespace kiln::emulator::test {

/// Wide enough for every product of two 16-bit floats; sums may need a remainder beside it.
using Quad = __float128;

/// A real number as a sum of which the second part is far smaller than the first: only its sign matters.
struct Exact {
  Quad value = 0;
  Quad rest = 0;
};

/// x + y without error (Knuth).
inline Exact exact_sum(Quad x, Quad y) {
  const Quad sum = x + y, part = sum - x;
  return {sum, (x - (sum - part)) + (y - part)};
}

/// A 16-bit format: sign, exponent, `mantissa` bits of fraction.
struct SmallFormat {
  int mantissa, bias;
  uint16_t infinity;

  bool is_nan(uint16_t x) const { return (x & 0x7FFF) > infinity; }
  bool is_infinite(uint16_t x) const { return (x & 0x7FFF) == infinity; }
  bool is_subnormal(uint16_t x) const { return (x & 0x7FFF) != 0 && (x & 0x7FFF) >> mantissa == 0; }

  /// The magnitude that `bits` (no sign) stands for; infinity as the next power of two.
  double magnitude(uint16_t bits) const {
    const int exponent = bits >> mantissa, fraction = bits & ((1 << mantissa) - 1);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                         : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  }
  double value(uint16_t x) const {
    const auto bits = static_cast<uint16_t>(x & 0x7FFF);
    const double m = is_nan(x) ? NAN : is_infinite(x) ? INFINITY : magnitude(bits);
    return x >= 0x8000 ? -m : m;
  }

  /// The nearest number of the format, ties to even, or the nearest toward zero. `x` is finite.
  uint16_t encode(const Exact& x, bool negative_zero, bool nearest = true) const {
    const bool zero = x.value == 0;
    const bool negative = zero ? negative_zero : x.value < 0;
    const Quad size = x.value < 0 ? -x.value : x.value, rest = x.value < 0 ? -x.rest : x.rest;
    const auto at_most = [&](Quad bound) { return bound < size || (bound == size && rest >= 0); };
    uint16_t low = 0;
    for (int step = 0x4000; step != 0; step /= 2) {
      const auto next = static_cast<uint16_t>(low + step);
      if (next < infinity && at_most(magnitude(next))) low = next;
    }
    const Quad middle = (Quad{magnitude(low)} + magnitude(static_cast<uint16_t>(low + 1))) / 2;
    const bool above = size > middle || (size == middle && rest > 0), tie = size == middle && rest == 0;
    const bool up = nearest && (above || (tie && (low & 1) != 0));
    return static_cast<uint16_t>((negative ? 0x8000 : 0) | (low + (up ? 1 : 0)));
  }
  /// Encodes any double, infinities and NaN included.
  uint16_t encode(double x, bool nearest = true) const {
    if (std::isnan(x)) return 0x7FFF;
    if (std::isinf(x)) return static_cast<uint16_t>((x < 0 ? 0x8000 : 0) | infinity);
    return encode(Exact{x, 0}, std::signbit(x), nearest);
  }

  /// a * b + c, rounded once.
  uint16_t fma(uint16_t a, uint16_t b, uint16_t c) const {
    const double x = value(a), y = value(b), z = value(c), special = x * y + z;
    if (std::isnan(x) || std::isnan(y) || std::isnan(z) || std::isinf(x) || std::isinf(y) || std::isinf(z)) {
      return encode(special);
    }
    const Quad product = Quad{x} * y;
    const bool negative_product = std::signbit(x) != std::signbit(y);
    return encode(exact_sum(product, z), negative_product && std::signbit(z));
  }
  uint16_t add(uint16_t a, uint16_t b) const { return fma(a, encode(1.0), b); }
  uint16_t sub(uint16_t a, uint16_t b) const {
    return is_nan(b) ? uint16_t{0x7FFF} : add(a, static_cast<uint16_t>(b ^ 0x8000));
  }
  uint16_t mul(uint16_t a, uint16_t b) const {
    const bool negative = ((a ^ b) & 0x8000) != 0;
    return fma(a, b, negative ? 0x8000 : 0);  // the zero of the product's sign leaves it alone
  }
};

inline constexpr SmallFormat half_format{10, 15, 0x7C00}, bfloat_format{7, 127, 0x7F80};

}  // namespace kiln::emulator::test
