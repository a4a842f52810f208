#include "kiln/reference/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace kiln::reference {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// IEEE 754: sign, 5 bits of exponent with bias 15, 10 bits of fraction.
double f16_by_definition(uint16_t bits) {
  const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
  const double magnitude = exponent == 31  ? (fraction == 0 ? infinity : std::numeric_limits<double>::quiet_NaN())
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(1024 + fraction, exponent - 25);
  return bits >> 15 == 0 ? magnitude : -magnitude;
}
/// By definition, bfloat16 is the upper half of a binary32.
double bf16_by_definition(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

void expect_same(double got, double expected, uint32_t bits) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << std::hex << bits;
  } else {
    EXPECT_EQ(got, expected) << std::hex << bits;
    EXPECT_EQ(std::signbit(got), std::signbit(expected)) << std::hex << bits;
  }
}

TEST(Conversion, DecodesEveryF16AsTheCompilerDoes) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    expect_same(from_f16(static_cast<uint16_t>(bits)), f16_by_definition(static_cast<uint16_t>(bits)), bits);
  }
}

TEST(Conversion, DecodesEveryBf16AsTheUpperHalfOfAnF32) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    expect_same(from_bf16(static_cast<uint16_t>(bits)), bf16_by_definition(static_cast<uint16_t>(bits)), bits);
  }
}

TEST(Conversion, EncodesEveryDecodedNumberAsItself) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const auto bits = static_cast<uint16_t>(b);
    if (!std::isnan(from_f16(bits))) {
      EXPECT_EQ(to_f16(from_f16(bits)), bits);
    }
    if (!std::isnan(from_bf16(bits))) {
      EXPECT_EQ(to_bf16(from_bf16(bits)), bits);
    }
  }
}

/// Between neighbours, the nearer one wins, and the even one half-way; for all neighbours of a format.
void expect_nearest_even(double (*from)(uint16_t), uint16_t (*to)(double), uint16_t largest) {
  for (uint16_t low = 0; low < largest; ++low) {
    const auto high = static_cast<uint16_t>(low + 1);
    const double middle = (from(low) + from(high)) / 2;  // exact: one bit more than either
    const uint16_t even = (low & 1) == 0 ? low : high;
    for (const uint16_t sign : {uint16_t{0}, uint16_t{0x8000}}) {
      const double s = sign == 0 ? 1 : -1;
      ASSERT_EQ(to(s * middle), even | sign) << low;
      ASSERT_EQ(to(s * std::nextafter(middle, 0)), low | sign) << low;
      ASSERT_EQ(to(s * std::nextafter(middle, infinity)), high | sign) << low;
    }
  }
}

TEST(Conversion, RoundsToTheNearestF16TiesToEven) {
  expect_nearest_even(from_f16, to_f16, 0x7bff);
}
TEST(Conversion, RoundsToTheNearestBf16TiesToEven) {
  expect_nearest_even(from_bf16, to_bf16, 0x7f7f);
}

TEST(Conversion, OverflowsToInfinityFromHalfAnUlpAboveTheLargest) {
  EXPECT_EQ(to_f16(std::nextafter(65520.0, 0)), 0x7bff);
  EXPECT_EQ(to_f16(65520.0), 0x7c00);
  EXPECT_EQ(to_f16(-1e300), 0xfc00);
  EXPECT_EQ(to_bf16(std::nextafter(0x1.ffp127, 0)), 0x7f7f);
  EXPECT_EQ(to_bf16(0x1.ffp127), 0x7f80);
  EXPECT_EQ(to_bf16(-infinity), 0xff80);
}

TEST(Conversion, RoundsOnceFromDouble) {
  // Just above the middle of two f16 neighbours, by less than f32 can tell: through f32 it would fall to the even one.
  EXPECT_EQ(to_f16(1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
  EXPECT_EQ(to_bf16(1.0 + 0x1p-8 + 0x1p-40), 0x3f81);
}

TEST(Conversion, KeepsNanAndTheSignOfZero) {
  EXPECT_EQ(to_f16(std::nan("")), 0x7fff);
  EXPECT_EQ(to_bf16(-std::nan("")), 0x7fff);
  EXPECT_EQ(to_f16(-0.0), 0x8000);
  EXPECT_EQ(to_bf16(-1e-300), 0x8000);
}

TEST(Conversion, ToIntegersSaturatesAndRoundsToNearestEven) {
  EXPECT_EQ(round_to(DType::i8, 2.5), 2);
  EXPECT_EQ(round_to(DType::i8, -3.5), -4);
  EXPECT_EQ(round_to(DType::i8, 127.5), 127);
  EXPECT_EQ(round_to(DType::i8, -1e300), -128);
  EXPECT_EQ(round_to(DType::u8, -0.6), 0);
  EXPECT_EQ(round_to(DType::u8, infinity), 255);
  EXPECT_EQ(round_to(DType::i32, 3e9), 2147483647);
  EXPECT_EQ(round_to(DType::i32, -infinity), -2147483648.0);
  for (const DType dtype : {DType::i32, DType::i8, DType::u8}) EXPECT_EQ(round_to(dtype, std::nan("")), 0);
}

TEST(Conversion, StoresAndLoadsIntegersAtUnalignedAddresses) {
  std::array<std::byte, 9> memory{};
  for (const double value : {-128.0, -1.0, 0.0, 127.0}) {
    store(DType::i8, memory.data() + 1, value);
    EXPECT_EQ(load(DType::i8, memory.data() + 1), value);
  }
  store(DType::u8, memory.data() + 1, 255);
  EXPECT_EQ(load(DType::u8, memory.data() + 1), 255);
  store(DType::i32, memory.data() + 1, -2147483648.0);
  EXPECT_EQ(load(DType::i32, memory.data() + 1), -2147483648.0);
}

TEST(Conversion, StoresAndLoadsAtUnalignedAddresses) {
  std::array<std::byte, 9> memory{};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    store(dtype, memory.data() + 1, 0.3);
    EXPECT_EQ(load(dtype, memory.data() + 1), round_to(dtype, 0.3));
    EXPECT_NE(round_to(dtype, 0.3), 0.3);
  }
  EXPECT_EQ(round_to(DType::f32, 0.3), static_cast<double>(0.3F));
}

}  // namespace
}  // namespace kiln::reference
