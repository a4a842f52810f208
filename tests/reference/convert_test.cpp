#include "kiln/reference/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

namespace kiln::reference::convert_test {
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
template <class Bits>
void expect_nearest_even(double (*from)(Bits), Bits (*to)(double), Bits largest) {
  for (Bits low = 0; low < largest; ++low) {
    const auto high = static_cast<Bits>(low + 1);
    const double middle = (from(low) + from(high)) / 2;  // exact: one bit more than either
    const Bits even = (low & 1) == 0 ? low : high;
    for (const Bits sign : {Bits{0}, static_cast<Bits>(1u << (8 * sizeof(Bits) - 1))}) {
      const double s = sign == 0 ? 1 : -1;
      ASSERT_EQ(to(s * middle), even | sign) << low;
      ASSERT_EQ(to(s * std::nextafter(middle, 0)), low | sign) << low;
      ASSERT_EQ(to(s * std::nextafter(middle, infinity)), high | sign) << low;
    }
  }
}

TEST(Conversion, RoundsToTheNearestF16TiesToEven) {
  expect_nearest_even<uint16_t>(from_f16, to_f16, 0x7bff);
}
TEST(Conversion, RoundsToTheNearestBf16TiesToEven) {
  expect_nearest_even<uint16_t>(from_bf16, to_bf16, 0x7f7f);
}

TEST(Conversion, RoundsToTheNearestFp8TiesToEven) {
  expect_nearest_even<uint8_t>(from_f8e4m3, to_f8e4m3, 0x7e);
  expect_nearest_even<uint8_t>(from_f8e5m2, to_f8e5m2, 0x7b);
}

TEST(Conversion, DecodesEveryFp8AsMlDtypesDoes) {
  std::ifstream table(KILN_TABLES "/fp8_ml_dtypes.txt");
  uint32_t codes = 0, bits = 0;
  for (std::string e4m3, e5m2; table >> bits >> e4m3 >> e5m2; ++codes) {
    expect_same(from_f8e4m3(static_cast<uint8_t>(bits)), std::strtod(e4m3.c_str(), nullptr), bits);
    expect_same(from_f8e5m2(static_cast<uint8_t>(bits)), std::strtod(e5m2.c_str(), nullptr), bits);
  }
  EXPECT_EQ(codes, 256u);
}

TEST(Conversion, EncodesEveryFiniteFp8AsItself) {
  for (uint32_t b = 0; b < 0x100; ++b) {
    const auto bits = static_cast<uint8_t>(b);
    if (std::isfinite(from_f8e4m3(bits))) {
      EXPECT_EQ(to_f8e4m3(from_f8e4m3(bits)), bits);
    }
    if (std::isfinite(from_f8e5m2(bits))) {
      EXPECT_EQ(to_f8e5m2(from_f8e5m2(bits)), bits);
    }
  }
}

// The OCP document calls this saturating mode; cvt.satfinite does it.
TEST(Conversion, SaturatesToTheLargestFp8) {
  for (const double beyond : {449.0, 464.0, 465.0, 480.0, 57344.0, 1e300, infinity}) {
    EXPECT_EQ(to_f8e4m3(beyond), 0x7e) << beyond;
    EXPECT_EQ(to_f8e4m3(-beyond), 0xfe) << beyond;
  }
  for (const double beyond : {57345.0, 61440.0, 65536.0, 1e300, infinity}) {
    EXPECT_EQ(to_f8e5m2(beyond), 0x7b) << beyond;
    EXPECT_EQ(to_f8e5m2(-beyond), 0xfb) << beyond;
  }
  for (const double nan : {std::nan(""), -std::nan("")}) {
    EXPECT_EQ(to_f8e4m3(nan), 0x7f);
    EXPECT_EQ(to_f8e5m2(nan), 0x7f);
  }
}

// An application may have infinities in memory, though no kernel stores them.
TEST(Conversion, PutsInfinitiesWhereThereAreSome) {
  const auto put_as = [](DType dtype, double value) {
    std::byte memory{};
    put(dtype, &memory, value);
    return load(dtype, &memory);
  };
  EXPECT_EQ(put_as(DType::f8e5m2, infinity), infinity);
  EXPECT_EQ(put_as(DType::f8e5m2, -infinity), -infinity);
  EXPECT_EQ(put_as(DType::f8e5m2, 1e6), 57344);
  EXPECT_EQ(put_as(DType::f8e4m3, -infinity), -448);
}

TEST(Conversion, RoundsToTheRowsOfTheTable) {
  for (const DTypeTraits& row : dtype_rows) {
    EXPECT_EQ(round_to(row.dtype, row.largest), row.largest) << row.name;
    EXPECT_EQ(round_to(row.dtype, row.least), row.least) << row.name;
    EXPECT_EQ(round_to(row.dtype, infinity), row.saturates ? row.largest : infinity) << row.name;
    if (!row.floating) continue;
    const double smallest = std::ldexp(1.0, row.least_exponent - row.digits + 1);
    EXPECT_EQ(round_to(row.dtype, smallest), smallest) << row.name;
    EXPECT_EQ(round_to(row.dtype, smallest / 2), 0) << row.name;
    EXPECT_EQ(round_to(row.dtype, 1 + std::ldexp(1.0, -row.digits)), 1) << row.name;
  }
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
}  // namespace kiln::reference::convert_test
