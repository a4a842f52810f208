// Conversions to, from and between the 16-bit and 8-bit formats, on every unit set, against the formats written out.
#include <functional>

#include "core_evaluate.h"
#include "core_small_floats.h"

namespace kiln::emulator::test::core_half_convert_test {
namespace {

struct Kind {
  const char* name;
  const SmallFormat* format;
};
const Kind kinds[] = {{"f16", &half_format}, {"bf16", &bfloat_format}};

std::vector<float> near_halves() {
  std::vector<float> pool = awkward<float>();
  pool.insert(pool.end(), {0x1p-25f, 0x1.000002p-25f, 0x1.8p-24f, 0x1.002p0f, 0x1.006p0f, 0x1.01p0f, 0x1.03p0f,
                           -0x1.010002p0f, 0x1.ffcp-15f, 0x1.ffep-15f, 1234.567f, -3.3895e38f, 0x1.fep127f, 0x1.ffp127f,
                           0x1p-133f, 0x1p-134f, 0x1.8p-134f});
  return pool;
}

auto same_bits_or_nan(const SmallFormat& format) {
  return [&format](uint16_t x, uint16_t y) { return x == y || (format.is_nan(x) && format.is_nan(y)); };
}

uint16_t without_negatives(const SmallFormat& f, uint16_t x) {
  return !f.is_nan(x) && (x & 0x8000) != 0 ? 0 : x;
}
TEST(HalfConversions, RoundInTheDirectionAsked) {
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    for (const bool nearest : {true, false}) {
      const std::string word = nearest ? "rn" : "rz";
      const auto plain = [&](float x) { return f.encode(x, nearest); };
      expect_instruction<uint16_t, float>("cvt." + word + "." + kind.name + ".f32 d, a;", plain, same_bits_or_nan(f),
                                          combinations(near_halves()));
      expect_instruction<uint16_t, float>(
          "cvt." + word + ".relu." + kind.name + ".f32 d, a;", [&](float x) { return without_negatives(f, plain(x)); },
          same_bits_or_nan(f), combinations(near_halves()));
    }
  }
}

TEST(HalfConversions, PairsShapeBothHalves) {
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    const auto expect = [&](const std::string& words, const std::function<uint16_t(float)>& one) {
      const auto pair = [&](float a, float b) { return uint32_t{one(a)} << 16 | one(b); };
      const auto same = [&](uint32_t x, uint32_t y) {
        const auto half = same_bits_or_nan(f);
        return half(static_cast<uint16_t>(x), static_cast<uint16_t>(y)) &&
               half(static_cast<uint16_t>(x >> 16), static_cast<uint16_t>(y >> 16));
      };
      expect_instruction<uint32_t, float, float>("cvt." + words + "." + kind.name + "x2.f32 d, a, b;", pair, same,
                                                 combinations(near_halves(), near_halves()));
    };
    expect("rn", [&](float x) { return f.encode(x); });
    expect("rz", [&](float x) { return f.encode(x, false); });
    expect("rn.relu", [&](float x) { return without_negatives(f, f.encode(x)); });
    expect("rz.relu", [&](float x) { return without_negatives(f, f.encode(x, false)); });
  }
}

TEST(HalfConversions, WidenExactly) {
  std::vector<uint16_t> all;
  for (uint32_t bits = 0; bits < 0x10000; bits += 7) all.push_back(static_cast<uint16_t>(bits));
  for (const Kind& kind : kinds) {
    const SmallFormat& f = *kind.format;
    expect_instruction<float, uint16_t>(
        std::string("cvt.f32.") + kind.name + " d, a;", [&](uint16_t a) { return static_cast<float>(f.value(a)); },
        [](float x, float y) { return to_bits(x) == to_bits(y) || (x != x && y != y); }, combinations(all));
  }
  expect_instruction<double, uint16_t>(
      "cvt.f64.f16 d, a;", [&](uint16_t a) { return half_format.value(a); },
      [](double x, double y) { return to_bits(x) == to_bits(y) || (x != x && y != y); }, combinations(all));
}

TEST(HalfConversions, IntegersAndIntegralValues) {
  const SmallFormat& f = half_format;
  const std::vector<uint16_t> pool = {0x0000, 0x8000, 0x3800, 0xB800, 0x3E00, 0x4100, 0xC100, 0x3C00, 0x7BFF,
                                      0xFBFF, 0x7C00, 0xFC00, 0x7E00, 0x0001, 0x8001, 0x5640, 0x5641, 0xD8FF};
  struct Mode {
    const char* word;
    double (*rounded)(double);
  };
  for (const Mode& mode :
       {Mode{"rni", [](double x) { return std::nearbyint(x); }}, Mode{"rzi", [](double x) { return std::trunc(x); }},
        Mode{"rmi", [](double x) { return std::floor(x); }}, Mode{"rpi", [](double x) { return std::ceil(x); }}}) {
    expect_instruction<uint16_t, uint16_t>(
        "cvt." + std::string(mode.word) + ".f16.f16 d, a;",
        [&](uint16_t a) {
          const double x = f.value(a), y = mode.rounded(x);
          return f.encode(y == 0 ? std::copysign(0.0, x) : y);
        },
        same_bits_or_nan(f), combinations(pool));
    expect_instruction<int32_t, uint16_t>(
        "cvt." + std::string(mode.word) + ".s32.f16 d, a;",
        [&](uint16_t a) {
          const double y = mode.rounded(f.value(a));
          if (std::isnan(y)) return 0;
          return std::isinf(y) ? (y < 0 ? INT32_MIN : INT32_MAX) : static_cast<int32_t>(y);
        },
        std::equal_to<int32_t>(), combinations(pool));
  }
  expect_instruction<uint16_t, int32_t>(
      "cvt.rn.f16.s32 d, a;", [&](int32_t a) { return f.encode(static_cast<double>(a)); }, same_bits_or_nan(f),
      combinations(std::vector<int32_t>{0, 1, -1, 2047, 2049, 2051, -4099, 65504, 65519, 65520, 70000, INT32_MIN}));
}

/// e4m3: no infinity, largest 448; e5m2: as IEEE.
struct ByteFormat {
  const char* name;
  SmallFormat shape;
  uint8_t largest;
  bool is_nan(uint8_t x) const { return (x & 0x7F) > (shape.mantissa == 3 ? 0x7E : 0x7C); }
  double value(uint8_t x) const {
    if (is_nan(x)) return NAN;
    if (shape.mantissa == 2 && (x & 0x7F) == 0x7C) return x >= 0x80 ? -INFINITY : INFINITY;
    const double m = shape.magnitude(x & 0x7F);
    return x >= 0x80 ? -m : m;
  }
  /// .rn.satfinite
  uint8_t encode(double x) const {
    if (std::isnan(x)) return 0x7F;
    const double size = std::abs(x);
    uint8_t best = std::isinf(size) ? largest : 0;
    for (int k = 0; k <= largest && std::isfinite(size); ++k) {
      const double gap = std::abs(shape.magnitude(static_cast<uint16_t>(k)) - size);
      const double least = std::abs(shape.magnitude(best) - size);
      if (gap < least || (gap == least && k % 2 == 0)) best = static_cast<uint8_t>(k);
    }
    return static_cast<uint8_t>(best | (std::signbit(x) ? 0x80 : 0));
  }
};
const ByteFormat byte_formats[] = {{"e4m3", {3, 7, 0x7F}, 0x7E}, {"e5m2", {2, 15, 0x7C}, 0x7B}};

TEST(ByteConversions, EveryCodeWidensToItsValue) {
  std::vector<uint16_t> all;
  for (uint32_t k = 0; k < 256; ++k) all.push_back(static_cast<uint16_t>(k << 8 | (255 - k)));
  for (const ByteFormat& f : byte_formats) {
    const auto half = [&](uint32_t code) { return half_format.encode(f.value(static_cast<uint8_t>(code))); };
    expect_instruction<uint32_t, uint16_t>(
        std::string("cvt.rn.f16x2.") + f.name + "x2 d, a;",
        [&](uint16_t a) { return uint32_t{half(a >> 8)} << 16 | half(a & 255u); }, std::equal_to<uint32_t>(),
        combinations(all));
  }
}

TEST(ByteConversions, NumbersGoToTheNearestCodeAndNeverToInfinity) {
  std::vector<float> pool = {0.0f,
                             -0.0f,
                             1.0f,
                             -1.0625f,
                             1.0625f,
                             1.1875f,
                             448.0f,
                             464.0f,
                             465.0f,
                             -1e9f,
                             57344.0f,
                             61440.0f,
                             0x1p-9f,
                             0x1p-10f,
                             0x1.8p-10f,
                             0x1p-16f,
                             0x1p-17f,
                             0x1.8p-17f,
                             0x1p-140f,
                             3.3f,
                             std::numeric_limits<float>::infinity(),
                             std::numeric_limits<float>::quiet_NaN()};
  for (const ByteFormat& f : byte_formats) {
    expect_instruction<uint16_t, float, float>(
        std::string("cvt.rn.satfinite.") + f.name + "x2.f32 d, a, b;",
        [&](float a, float b) { return static_cast<uint16_t>(f.encode(a) << 8 | f.encode(b)); },
        std::equal_to<uint16_t>(), combinations(pool, pool));
  }
}

TEST(HalfConversions, IntegersOfManyDigitsAreRoundedOnce) {
  // 2^60 + 2^52 lies halfway between two numbers of bf16; one unit more, which a double does not hold, decides.
  const int64_t tie = (int64_t{1} << 60) + (int64_t{1} << 52);
  const std::vector<int64_t> values = {tie - 1, tie, tie + 1, -tie + 1, -tie, -tie - 1};
  const auto oracle = [&](int64_t x) -> uint16_t {
    const uint16_t sign = x < 0 ? 0x8000 : 0;
    return static_cast<uint16_t>(sign | ((x < 0 ? -x : x) > tie ? 0x5D81 : 0x5D80));
  };
  expect_instruction<uint16_t, int64_t>("cvt.rn.bf16.s64 d, a;", oracle, std::equal_to<uint16_t>(),
                                        combinations(values));
}

}  // namespace
}  // namespace kiln::emulator::test::core_half_convert_test
