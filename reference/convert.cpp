#include "kiln/reference/convert.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace kiln::reference {
namespace {

/// A binary format of 8 or 16 bits: sign, exponent, and `digits - 1` stored bits of the significand. Behind the largest
/// number stands infinity, if there is one; all larger bits are NaN.
struct Format {
  int digits;          ///< of the significand, the implicit one included
  int least_exponent;  ///< of a normal number 2^e * 1.f
  bool has_infinity, saturates;
  uint16_t sign;     ///< bit
  uint16_t largest;  ///< bits of the largest finite number

  uint16_t infinity() const { return largest + 1; }
  uint16_t canonical_nan() const { return sign - 1; }
};

constexpr Format format_of(DType dtype) {
  const DTypeTraits& row = traits(dtype);
  const auto sign = static_cast<uint16_t>(1u << (8 * row.bytes - 1));
  // IEEE keeps the largest exponent for infinity and NaN; without infinities, NaN has one number of it.
  const unsigned special = row.has_infinity ? 1u << (row.digits - 1) : 1u;
  return {
      row.digits, row.least_exponent, row.has_infinity, row.saturates, sign, static_cast<uint16_t>(sign - special - 1)};
}
constexpr Format binary16 = format_of(DType::f16);
constexpr Format bfloat16 = format_of(DType::bf16);
constexpr Format e4m3 = format_of(DType::f8e4m3);
constexpr Format e5m2 = format_of(DType::f8e5m2);

/// The bits of a number are its significand as an integer, plus its exponent's distance from the least one in the
/// exponent field. Subnormals, the carry into the next exponent and the overflow to infinity need no cases of their
/// own.
uint16_t encode(const Format& format, double value) {
  if (std::isnan(value)) {
    return format.canonical_nan();
  }
  const uint16_t sign = std::signbit(value) ? format.sign : 0;
  const uint16_t most = format.saturates ? format.largest : format.infinity();
  const double size = std::fabs(value);
  if (std::isinf(size)) {
    return sign | most;
  }
  const int exponent = size == 0 ? format.least_exponent : std::max(std::ilogb(size), format.least_exponent);
  // Scaling by a power of two is exact here, so nearbyint() is the only rounding: to nearest, ties to even.
  const double significand = std::nearbyint(std::ldexp(size, format.digits - 1 - exponent));
  const double bits = std::ldexp(exponent - format.least_exponent, format.digits - 1) + significand;
  return sign | (bits < most ? static_cast<uint16_t>(bits) : most);
}

/// A double whose exponent field is `exponent` and whose significand starts with the `bits` lowest bits of `fraction`.
double assemble(int exponent, uint16_t fraction, int bits) {
  return std::bit_cast<double>((static_cast<uint64_t>(exponent) << 52) |
                               (static_cast<uint64_t>(fraction) << (52 - bits)));
}

double decode(const Format& format, uint16_t bits) {
  constexpr int double_bias = 1023;
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const int stored = format.digits - 1;
  const uint16_t unsigned_bits = bits & (format.sign - 1);
  const auto fraction = static_cast<uint16_t>(unsigned_bits & ((1u << stored) - 1));
  const int exponent = unsigned_bits >> stored;
  double size = 0;
  if (unsigned_bits > format.largest) {
    size = format.has_infinity && unsigned_bits == format.infinity() ? std::numeric_limits<double>::infinity() : nan;
  } else if (exponent == 0) {
    size = fraction * assemble(format.least_exponent - stored + double_bias, 0, stored);
  } else {
    size = assemble(exponent - 1 + format.least_exponent + double_bias, fraction, stored);
  }
  return (bits & format.sign) != 0 ? -size : size;
}

// The nearest integer of T, ties to even; 0 for NaN: as CUDA's conversions do.
template <typename T>
T to_integer(double value) {
  if (std::isnan(value)) {
    return 0;
  }
  const double nearest = std::nearbyint(value);
  constexpr double least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  return static_cast<T>(std::clamp(nearest, least, most));
}

template <typename T>
T load_as(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

}  // namespace

double from_f16(uint16_t bits) {
  return decode(binary16, bits);
}
double from_bf16(uint16_t bits) {
  return decode(bfloat16, bits);
}
uint16_t to_f16(double value) {
  return encode(binary16, value);
}
uint16_t to_bf16(double value) {
  return encode(bfloat16, value);
}
double from_f8e4m3(uint8_t bits) {
  return decode(e4m3, bits);
}
double from_f8e5m2(uint8_t bits) {
  return decode(e5m2, bits);
}
uint8_t to_f8e4m3(double value) {
  return static_cast<uint8_t>(encode(e4m3, value));
}
uint8_t to_f8e5m2(double value) {
  return static_cast<uint8_t>(encode(e5m2, value));
}

double round_to(DType dtype, double value) {
  switch (dtype) {
    case DType::f32:
      return static_cast<float>(value);
    case DType::f16:
      return from_f16(to_f16(value));
    case DType::bf16:
      return from_bf16(to_bf16(value));
    case DType::i32:
      return to_integer<int32_t>(value);
    case DType::i8:
      return to_integer<int8_t>(value);
    case DType::u8:
      return to_integer<uint8_t>(value);
    case DType::f8e4m3:
      return from_f8e4m3(to_f8e4m3(value));
    case DType::f8e5m2:
      return from_f8e5m2(to_f8e5m2(value));
  }
  return value;
}

double load(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::f32:
      return load_as<float>(address);
    case DType::f16:
      return from_f16(load_as<uint16_t>(address));
    case DType::bf16:
      return from_bf16(load_as<uint16_t>(address));
    case DType::i32:
      return load_as<int32_t>(address);
    case DType::i8:
      return load_as<int8_t>(address);
    case DType::u8:
      return load_as<uint8_t>(address);
    case DType::f8e4m3:
      return from_f8e4m3(load_as<uint8_t>(address));
    case DType::f8e5m2:
      return from_f8e5m2(load_as<uint8_t>(address));
  }
  return 0;
}

void store(DType dtype, std::byte* address, double value) {
  const auto put = [address](auto element) { std::memcpy(address, &element, sizeof element); };
  switch (dtype) {
    case DType::f32:
      return put(static_cast<float>(value));
    case DType::f16:
      return put(to_f16(value));
    case DType::bf16:
      return put(to_bf16(value));
    case DType::i32:
      return put(to_integer<int32_t>(value));
    case DType::i8:
      return put(to_integer<int8_t>(value));
    case DType::u8:
      return put(to_integer<uint8_t>(value));
    case DType::f8e4m3:
      return put(to_f8e4m3(value));
    case DType::f8e5m2:
      return put(to_f8e5m2(value));
  }
}

void put(DType dtype, std::byte* address, double value) {
  store(dtype, address, value);
  const DTypeTraits& row = traits(dtype);
  if (!row.saturates || !row.has_infinity || !std::isinf(value)) {
    return;
  }
  const Format format = format_of(dtype);
  const auto bits = static_cast<uint16_t>(format.infinity() | (value < 0 ? format.sign : 0));
  std::memcpy(address, &bits, static_cast<size_t>(row.bytes));  // little-endian, as all devices are
}

}  // namespace kiln::reference
