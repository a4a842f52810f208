// cvt between every kind of number, against the host.
#include <algorithm>
#include <utility>

#include "core_lanes.h"

namespace kiln::emulator::test::core_convert_test {
namespace {

template <class To, class From>
To clamped(From x) {
  if (std::cmp_less(x, std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  if (std::cmp_greater(x, std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
  return static_cast<To>(x);
}

TEST(Conversions, IntegersNarrowByTheirLowBitsAndWidenBySign) {
  expect_lanes(
      "cvt.s32.s8 %d, %a;", [](int32_t a) { return int32_t{static_cast<int8_t>(a)}; }, awkward_s32);
  expect_lanes(
      "cvt.u32.u8 %d, %a;", [](uint32_t a) { return a & 255; }, awkward_u32);
  expect_lanes(
      "cvt.s16.s32 %d, %a;", [](int32_t a) { return static_cast<int16_t>(a); }, awkward_s32);
  expect_lanes(
      "cvt.s64.s32 %d, %a;", [](int32_t a) { return int64_t{a}; }, awkward_s32);
  expect_lanes(
      "cvt.u64.u32 %d, %a;", [](uint32_t a) { return uint64_t{a}; }, awkward_u32);
  expect_lanes(
      "cvt.u32.u64 %d, %a;", [](uint64_t a) { return static_cast<uint32_t>(a); }, awkward_u64);
}

TEST(Conversions, SaturatingIntegersStopAtTheEnds) {
  expect_lanes(
      "cvt.sat.s8.s32 %d, %a;", [](int32_t a) { return int32_t{clamped<int8_t>(a)}; }, awkward_s32);
  expect_lanes(
      "cvt.sat.u8.s32 %d, %a;", [](int32_t a) { return uint32_t{clamped<uint8_t>(a)}; }, awkward_s32);
  expect_lanes("cvt.sat.u16.s32 %d, %a;", clamped<uint16_t, int32_t>, awkward_s32);
  expect_lanes("cvt.sat.s32.s64 %d, %a;", clamped<int32_t, int64_t>, awkward_s64);
  expect_lanes("cvt.sat.u32.s64 %d, %a;", clamped<uint32_t, int64_t>, awkward_s64);
  expect_lanes("cvt.sat.s32.u32 %d, %a;", clamped<int32_t, uint32_t>, awkward_u32);
  expect_lanes("cvt.sat.u64.s64 %d, %a;", clamped<uint64_t, int64_t>, awkward_s64);
}

struct ToInteger {
  const char* word;
  double (*rounded)(double);
};
const ToInteger integer_roundings[] = {{"rni", [](double x) { return std::nearbyint(x); }},
                                       {"rzi", [](double x) { return std::trunc(x); }},
                                       {"rmi", [](double x) { return std::floor(x); }},
                                       {"rpi", [](double x) { return std::ceil(x); }}};

/// `nan`: zero where neither side has 64 bits, else only the top bit, as the ISA says.
template <class To, class From>
void expect_to_integer(const std::string& types, To nan) {
  std::vector<From> pool = awkward_floats<From>();
  for (const double x : {0.5, -0.5, 1.5, 2.5, -2.5, 1e6 + 0.75, 2147483520.0, 2147483648.0, -2147483648.0, 4294967296.0,
                         9223372036854775808.0, 1e20, -1e20}) {
    pool.push_back(static_cast<From>(x));
  }
  for (const auto& [word, rounded] : integer_roundings) {
    const auto oracle = [nan, rounded = rounded](From x) {
      if (std::isnan(x)) return nan;
      const double y = rounded(x);
      if (y <= static_cast<double>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
      // The largest value of 64 bits rounds up to one that is out of range.
      if (y >= static_cast<double>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
      return static_cast<To>(y);
    };
    expect_lanes("cvt." + std::string(word) + "." + types + " %d, %a;", oracle, pool);
  }
}

TEST(Conversions, FloatsBecomeIntegersWithinRangeAndNanBecomesZeroOrTheTopBit) {
  expect_to_integer<int32_t, float>("s32.f32", 0);
  expect_to_integer<uint32_t, float>("u32.f32", 0);
  expect_to_integer<int16_t, float>("s16.f32", 0);
  expect_to_integer<int32_t, double>("s32.f64", INT_MIN);
  expect_to_integer<uint32_t, double>("u32.f64", 0x80000000u);
  expect_to_integer<int64_t, float>("s64.f32", INT64_MIN);
  expect_to_integer<uint64_t, double>("u64.f64", uint64_t{1} << 63);
}

TEST(Conversions, IntegersBecomeTheNearestFloat) {
  std::vector<int32_t> pool = awkward_s32;
  pool.insert(pool.end(), {16777217, 16777219, -16777217, 2147483583});
  expect_lanes(
      "cvt.rn.f32.s32 %d, %a;", [](int32_t a) { return static_cast<float>(a); }, pool);
  expect_lanes(
      "cvt.rn.f32.u64 %d, %a;", [](uint64_t a) { return static_cast<float>(a); }, awkward_u64);
  expect_lanes(
      "cvt.rn.f64.s64 %d, %a;", [](int64_t a) { return static_cast<double>(a); }, awkward_s64);
  expect_lanes(
      "cvt.rz.f32.s32 %d, %a;",
      [](int32_t a) {
        const float near = static_cast<float>(a);
        return std::abs(double{near}) > std::abs(double{static_cast<double>(a)}) ? std::nextafter(near, 0.0f) : near;
      },
      pool);
}

TEST(Conversions, DoublesBecomeFloatsInEveryDirection) {
  std::vector<double> pool = awkward_floats<double>();
  pool.insert(pool.end(), {1 + 0x1p-24, 1 + 0x1.8p-23, -1 - 0x1p-30, 0x1p-150, 0x1.8p-149, 3.5e38, -3.5e38, 1e-300});
  const auto near = [](double x) { return static_cast<float>(x); };
  const auto down = [=](double x) { return near(x) > x ? std::nextafter(near(x), -INFINITY) : near(x); };
  const auto up = [=](double x) { return near(x) < x ? std::nextafter(near(x), INFINITY) : near(x); };
  expect_lanes("cvt.rn.f32.f64 %d, %a;", near, pool);
  expect_lanes("cvt.rm.f32.f64 %d, %a;", down, pool);
  expect_lanes("cvt.rp.f32.f64 %d, %a;", up, pool);
  expect_lanes(
      "cvt.rz.f32.f64 %d, %a;", [=](double x) { return x < 0 ? up(x) : down(x); }, pool);
  expect_lanes(
      "cvt.f64.f32 %d, %a;", [](float x) { return double{x}; }, awkward_floats<float>());
}

/// A 16-bit format as the IEEE rules define it, slowly.
struct SmallFormat {
  int mantissa, bias;
  uint16_t infinity;
  /// The magnitude that `bits` (no sign) stands for; infinity as the next power of two.
  double value(uint16_t bits) const {
    const int exponent = bits >> mantissa, fraction = bits & ((1 << mantissa) - 1);
    return exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                         : std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  }
  uint16_t encode(float x, bool nearest) const {
    if (std::isnan(x)) return 0x7FFF;
    const auto sign = static_cast<uint16_t>(std::signbit(x) ? 0x8000 : 0);
    if (std::isinf(x)) return sign | infinity;
    const double magnitude = std::abs(double{x});
    uint16_t low = 0;
    for (int step = 0x4000; step != 0; step /= 2) {
      const auto next = static_cast<uint16_t>(low + step);
      if (next < infinity && value(next) <= magnitude) low = next;
    }
    const double below = magnitude - value(low), above = value(low + 1) - magnitude;
    const bool up = nearest && (below > above || (below == above && (low & 1) != 0));
    return static_cast<uint16_t>(sign | (low + up));
  }
};
constexpr SmallFormat half{10, 15, 0x7C00}, bfloat{7, 127, 0x7F80};

std::vector<float> near_small_floats() {
  std::vector<float> pool = awkward_floats<float>();
  pool.insert(pool.end(),
              {65504.0f, 65519.0f, 65520.0f, -65536.0f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.002p0f, 0x1.006p0f,
               0x1.01p0f, 0x1.03p0f, -0x1.010002p0f, 0x1.ffcp-15f, 1234.567f, -3.3895e38f, 0x1.ffp127f});
  return pool;
}

TEST(Conversions, SmallFloatsRoundToNearestEvenOrTowardZero) {
  for (const bool nearest : {true, false}) {
    const std::string word = nearest ? "rn" : "rz";
    expect_lanes(
        "cvt." + word + ".f16.f32 %d, %a;", [&](float x) { return half.encode(x, nearest); }, near_small_floats());
    expect_lanes(
        "cvt." + word + ".bf16.f32 %d, %a;", [&](float x) { return bfloat.encode(x, nearest); }, near_small_floats());
  }
}

TEST(Conversions, SmallFloatsWidenExactly) {
  const std::vector<uint16_t> pool = {0,      0x8000, 1,      0x83FF, 0x0400, 0x3C00,
                                      0xBC01, 0x7BFF, 0x7C00, 0xFC00, 0x3555, 0x7F7F};
  const auto widened = [](const SmallFormat& format, uint16_t x) {
    const uint16_t magnitude = x & 0x7FFF;
    const double value = magnitude > format.infinity    ? NAN
                         : magnitude == format.infinity ? INFINITY
                                                        : format.value(magnitude);
    return static_cast<float>(x >= 0x8000 ? -value : value);
  };
  expect_lanes(
      "cvt.f32.f16 %d, %a;", [&](uint16_t x) { return widened(half, x); }, pool);
  expect_lanes(
      "cvt.f32.bf16 %d, %a;", [&](uint16_t x) { return widened(bfloat, x); }, pool);
}

TEST(Conversions, PairsPutTheFirstSourceOnTop) {
  expect_lanes(
      "cvt.rn.f16x2.f32 %d, %a, %b;",
      [](float a, float b) { return uint32_t{half.encode(a, true)} << 16 | half.encode(b, true); }, near_small_floats(),
      near_small_floats());
}

}  // namespace
}  // namespace kiln::emulator::test::core_convert_test
