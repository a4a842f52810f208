// Integer, bit, floating-point and comparison instructions, lane by lane, against host arithmetic.
#include <algorithm>
#include <functional>

#include "core_lanes.h"

namespace kiln::emulator::test::core_instructions_test {
namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

template <class T>
using Bits = std::make_unsigned_t<T>;

/// The arithmetic of one integer type, without overflow: computed in 128 bits and cut.
template <class T>
void expect_arithmetic(const std::string& type, const std::vector<T>& pool) {
  constexpr int width = sizeof(T) * 8;
  const auto cut = [](auto f) {
    return [f](T a, T b) { return static_cast<T>(f(static_cast<Wide>(a), static_cast<Wide>(b))); };
  };
  const std::string operands = " %d, %a, %b;";
  expect_lanes("add." + type + operands, cut([](Wide a, Wide b) { return a + b; }), pool, pool);
  expect_lanes("sub." + type + operands, cut([](Wide a, Wide b) { return a - b; }), pool, pool);
  const auto product = [](Wide a, Wide b) { return static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b); };
  expect_lanes("mul.lo." + type + operands, cut(product), pool, pool);
  expect_lanes("mul.hi." + type + operands, cut([&](Wide a, Wide b) { return product(a, b) >> width; }), pool, pool);
  expect_lanes("mad.lo." + type + " %d, %a, %b, 5;", cut([&](Wide a, Wide b) { return product(a, b) + 5; }), pool,
               pool);
  expect_lanes("min." + type + operands, cut([](Wide a, Wide b) { return std::min(a, b); }), pool, pool);
  expect_lanes("max." + type + operands, cut([](Wide a, Wide b) { return std::max(a, b); }), pool, pool);
  std::vector<T> divisors = pool;
  std::erase(divisors, T{0});  // what a division by zero gives is not specified
  expect_lanes("div." + type + operands, cut([](Wide a, Wide b) { return a / b; }), pool, divisors);
  expect_lanes("rem." + type + operands, cut([](Wide a, Wide b) { return a % b; }), pool, divisors);
}

TEST(IntegerInstructions, ArithmeticMatchesTheHostForEveryWidth) {
  expect_arithmetic<int32_t>("s32", awkward_s32);
  expect_arithmetic<uint32_t>("u32", awkward_u32);
  expect_arithmetic<int64_t>("s64", awkward_s64);
  expect_arithmetic<uint64_t>("u64", awkward_u64);
  expect_arithmetic<int16_t>("s16", {0, 1, -1, 7, -300, INT16_MAX, INT16_MIN});
  expect_arithmetic<uint16_t>("u16", {0, 1, 7, 300, 0x7FFF, 0x8000, 0xFFFF});
}

TEST(IntegerInstructions, WideProductsKeepEveryBit) {
  expect_lanes(
      "mul.wide.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return int64_t{a} * b; }, awkward_s32, awkward_s32);
  expect_lanes(
      "mul.wide.u32 %d, %a, %b;", [](uint32_t a, uint32_t b) { return uint64_t{a} * b; }, awkward_u32, awkward_u32);
  expect_lanes(
      "mad.wide.s32 %d, %a, %b, -9;", [](int32_t a, int32_t b) { return int64_t{a} * b - 9; }, awkward_s32,
      awkward_s32);
  expect_lanes(
      "mul.wide.s16 %d, %a, %b;", [](int16_t a, int16_t b) { return int32_t{a} * b; },
      std::vector<int16_t>{0, -1, INT16_MIN, INT16_MAX}, std::vector<int16_t>{3, -1, INT16_MIN, INT16_MAX});
}

TEST(IntegerInstructions, SaturatingSumsStayInRange) {
  const auto clamp = [](int64_t x) { return static_cast<int32_t>(std::clamp<int64_t>(x, INT_MIN, INT_MAX)); };
  expect_lanes(
      "add.sat.s32 %d, %a, %b;", [&](int32_t a, int32_t b) { return clamp(int64_t{a} + b); }, awkward_s32, awkward_s32);
  expect_lanes(
      "sub.sat.s32 %d, %a, %b;", [&](int32_t a, int32_t b) { return clamp(int64_t{a} - b); }, awkward_s32, awkward_s32);
}

TEST(IntegerInstructions, TheSmallestIntegerIsItsOwnNegative) {
  const auto negated = [](int32_t a) { return static_cast<int32_t>(0u - static_cast<uint32_t>(a)); };
  expect_lanes("neg.s32 %d, %a;", negated, awkward_s32);
  expect_lanes(
      "abs.s32 %d, %a;", [&](int32_t a) { return a < 0 ? negated(a) : a; }, awkward_s32);
  expect_lanes(
      "neg.s64 %d, %a;", [](int64_t a) { return static_cast<int64_t>(0u - static_cast<uint64_t>(a)); }, awkward_s64);
}

TEST(IntegerInstructions, ShiftsByTheWidthOrMoreClampInsteadOfWrapping) {
  const std::vector<uint32_t> counts = {0, 1, 31, 32, 33, 63, 64, 65, 1000, ~0u};
  expect_lanes(
      "shl.b32 %d, %a, %b;", [](uint32_t a, uint32_t n) { return n > 31 ? 0u : a << n; }, awkward_u32, counts);
  expect_lanes(
      "shr.u32 %d, %a, %b;", [](uint32_t a, uint32_t n) { return n > 31 ? 0u : a >> n; }, awkward_u32, counts);
  expect_lanes(
      "shr.s32 %d, %a, %b;", [](int32_t a, uint32_t n) { return a >> std::min(n, 31u); }, awkward_s32, counts);
  expect_lanes(
      "shl.b64 %d, %a, %b;", [](uint64_t a, uint32_t n) { return n > 63 ? 0u : a << n; }, awkward_u64, counts);
  expect_lanes(
      "shr.u64 %d, %a, %b;", [](uint64_t a, uint32_t n) { return n > 63 ? 0u : a >> n; }, awkward_u64, counts);
  expect_lanes(
      "shr.s64 %d, %a, %b;", [](int64_t a, uint32_t n) { return a >> std::min(n, 63u); }, awkward_s64, counts);
  const auto funnel = [](uint32_t low, uint32_t high, uint32_t n) { return (uint64_t{high} << 32 | low) >> n; };
  expect_lanes(
      "shf.r.wrap.b32 %d, %a, 0x12345678, %b;",
      [&](uint32_t a, uint32_t n) { return static_cast<uint32_t>(funnel(a, 0x12345678, n & 31)); }, awkward_u32,
      counts);
  expect_lanes(
      "shf.l.clamp.b32 %d, %a, 0x12345678, %b;",
      [&](uint32_t a, uint32_t n) { return static_cast<uint32_t>(funnel(a, 0x12345678, 32 - std::min(n, 32u))); },
      awkward_u32, counts);
}

TEST(IntegerInstructions, LogicWorksOnEveryBit) {
  expect_lanes("and.b32 %d, %a, %b;", std::bit_and<uint32_t>(), awkward_u32, awkward_u32);
  expect_lanes("or.b64 %d, %a, %b;", std::bit_or<uint64_t>(), awkward_u64, awkward_u64);
  expect_lanes("xor.b32 %d, %a, %b;", std::bit_xor<uint32_t>(), awkward_u32, awkward_u32);
  expect_lanes("not.b64 %d, %a;", std::bit_not<uint64_t>(), awkward_u64);
  expect_lanes(
      "cnot.b32 %d, %a;", [](uint32_t a) { return a == 0 ? 1u : 0u; }, awkward_u32);
  expect_lanes(
      "lop3.b32 %d, %a, %b, 0x0F0F00FF, 0xE8;",
      [](uint32_t a, uint32_t b) {
        const uint32_t c = 0x0F0F00FF;
        return (a & b) | (a & c) | (b & c);
      },
      awkward_u32, awkward_u32);
}

TEST(IntegerInstructions, BitsAreCountedAndReversed) {
  const auto reversed = [](uint32_t a) {
    uint32_t d = 0;
    for (int k = 0; k < 32; ++k) d |= (a >> k & 1) << (31 - k);
    return d;
  };
  expect_lanes(
      "popc.b32 %d, %a;", [](uint32_t a) { return std::popcount(a); }, awkward_u32);
  expect_lanes(
      "popc.b64 %d, %a;", [](uint64_t a) { return std::popcount(a); }, awkward_u64);
  expect_lanes(
      "clz.b32 %d, %a;", [](uint32_t a) { return std::countl_zero(a); }, awkward_u32);
  expect_lanes(
      "clz.b64 %d, %a;", [](uint64_t a) { return std::countl_zero(a); }, awkward_u64);
  expect_lanes("brev.b32 %d, %a;", reversed, awkward_u32);
  expect_lanes(
      "bfind.u32 %d, %a;", [](uint32_t a) { return 31 - std::countl_zero(a); }, awkward_u32);
  expect_lanes(
      "bfind.s32 %d, %a;", [](int32_t a) { return 31 - std::countl_zero(Bits<int32_t>(a < 0 ? ~a : a)); }, awkward_s32);
}

/// Bit fields as the ISA's pseudocode has them: position and length are bytes, bits past the top repeat the sign.
template <class T>
T extracted(T a, uint32_t position, uint32_t length) {
  const uint32_t top = sizeof(T) * 8 - 1, from = position & 255, count = length & 255;
  const auto bit = [&](uint32_t k) { return static_cast<Bits<T>>(a) >> k & 1; };
  const Bits<T> sign = std::is_unsigned_v<T> || count == 0 ? 0 : bit(std::min(from + count - 1, top));
  Bits<T> d = 0;
  for (uint32_t k = 0; k <= top; ++k) d |= (k < count && from + k <= top ? bit(from + k) : sign) << k;
  return static_cast<T>(d);
}

template <class T>
T inserted(T a, uint32_t position, uint32_t length) {
  T d = static_cast<T>(0x123456789ABCDEF0);
  for (uint32_t k = 0; k < length && position + k < sizeof(T) * 8; ++k) {
    d = static_cast<T>((d & ~(T{1} << (position + k))) | ((a >> k & 1) << (position + k)));
  }
  return d;
}

TEST(IntegerInstructions, BitFieldsMayReachPastTheTop) {
  const std::vector<uint32_t> places = {0, 1, 8, 31, 32, 40, 64, 255};
  expect_lanes("bfe.u32 %d, %a, %b, %c;", extracted<uint32_t>, awkward_u32, places, places);
  expect_lanes("bfe.s32 %d, %a, %b, %c;", extracted<int32_t>, awkward_s32, places, places);
  expect_lanes("bfe.u64 %d, %a, %b, %c;", extracted<uint64_t>, awkward_u64, places, places);
  expect_lanes("bfe.s64 %d, %a, %b, %c;", extracted<int64_t>, awkward_s64, places, places);
  expect_lanes("bfi.b32 %d, %a, 0x9ABCDEF0, %b, %c;", inserted<uint32_t>, awkward_u32, places, places);
  expect_lanes("bfi.b64 %d, %a, 0x123456789ABCDEF0, %b, %c;", inserted<uint64_t>, awkward_u64, places, places);
}

TEST(IntegerInstructions, PermutePicksBytesAndRepeatsSigns) {
  const auto permuted = [](uint32_t a, uint32_t b, uint32_t selector) {
    uint32_t d = 0;
    for (int k = 0; k < 4; ++k) {
      const uint32_t pick = selector >> (4 * k) & 15;
      const uint32_t byte = static_cast<uint32_t>((uint64_t{b} << 32 | a) >> (8 * (pick & 7))) & 255;
      d |= ((pick & 8) != 0 ? (byte >= 128 ? 255u : 0u) : byte) << (8 * k);
    }
    return d;
  };
  const std::vector<uint32_t> words = {0, 0x80FF7F01, 0x12345678, ~0u};
  expect_lanes("prmt.b32 %d, %a, %b, %c;", permuted, words, words,
               std::vector<uint32_t>{0x3210, 0x7654, 0x5410, 0xFEDC, 0x0123, 0x89AB, 0xFFFF4321});
}

TEST(IntegerInstructions, CarriesTravelBetweenWords) {
  const std::string split = "mov.b64 {%r1, %r2}, %a;\nmov.b64 {%r3, %r4}, %b;\n";
  expect_lanes(split + "add.cc.u32 %r1, %r1, %r3;\naddc.u32 %r2, %r2, %r4;\nmov.b64 %d, {%r1, %r2};",
               std::plus<uint64_t>(), awkward_u64, awkward_u64);
  expect_lanes(split + "sub.cc.u32 %r1, %r1, %r3;\nsubc.u32 %r2, %r2, %r4;\nmov.b64 %d, {%r1, %r2};",
               std::minus<uint64_t>(), awkward_u64, awkward_u64);
  expect_lanes(
      "add.cc.u64 %rd2, %a, %b;\naddc.u64 %d, 0, 0;", [](uint64_t a, uint64_t b) { return uint64_t{a + b < a}; },
      awkward_u64, awkward_u64);
  expect_lanes(
      split +
          "mul.hi.u32 %r5, %r1, %r3;\nmad.lo.cc.u32 %r5, %r1, %r4, %r5;\nmadc.hi.u32 %r6, %r1, %r4, 0;\n"
          "mad.lo.cc.u32 %r5, %r2, %r3, %r5;\nmadc.hi.cc.u32 %r6, %r2, %r3, %r6;\naddc.u32 %r7, 0, 0;\n"
          "mad.lo.cc.u32 %r6, %r2, %r4, %r6;\nmadc.hi.u32 %r7, %r2, %r4, %r7;\nmov.b64 %d, {%r6, %r7};",
      [](uint64_t a, uint64_t b) { return static_cast<uint64_t>(UnsignedWide{a} * b >> 64); }, awkward_u64,
      awkward_u64);
}

template <class T>
T smaller(T a, T b) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  return a == b ? (std::signbit(a) ? a : b) : std::min(a, b);
}
template <class T>
T greater_of(T a, T b) {
  return std::isnan(a) || std::isnan(b) ? smaller(a, b) : -smaller(-a, -b);
}

template <class T>
void expect_float_arithmetic(const std::string& type) {
  const std::vector<T> pool = awkward_floats<T>(), addends = {T(0), -T(0), T(1), -std::numeric_limits<T>::infinity()};
  expect_lanes("add.rn." + type + " %d, %a, %b;", std::plus<T>(), pool, pool);
  expect_lanes("sub." + type + " %d, %a, %b;", std::minus<T>(), pool, pool);
  expect_lanes("mul." + type + " %d, %a, %b;", std::multiplies<T>(), pool, pool);
  expect_lanes(
      "fma.rn." + type + " %d, %a, %b, %c;", [](T a, T b, T c) { return std::fma(a, b, c); }, pool, pool, addends);
  expect_lanes("div.rn." + type + " %d, %a, %b;", std::divides<T>(), pool, pool);
  expect_lanes(
      "sqrt.rn." + type + " %d, %a;", [](T a) { return std::sqrt(a); }, pool);
  expect_lanes(
      "rcp.rn." + type + " %d, %a;", [](T a) { return T(1) / a; }, pool);
  expect_lanes("min." + type + " %d, %a, %b;", smaller<T>, pool, pool);
  expect_lanes("max." + type + " %d, %a, %b;", greater_of<T>, pool, pool);
  expect_lanes(
      "abs." + type + " %d, %a;", [](T a) { return std::abs(a); }, pool);
  expect_lanes("neg." + type + " %d, %a;", std::negate<T>(), pool);
}

TEST(FloatInstructions, ArithmeticIsCorrectlyRoundedWithSubnormalsKept) {
  expect_float_arithmetic<float>("f32");
  expect_float_arithmetic<double>("f64");
}

TEST(FloatInstructions, MinAndMaxWithNanPassItOn) {
  const auto pool = awkward_floats<float>();
  const auto or_nan = [](float a, float b, float d) { return std::isnan(a) || std::isnan(b) ? NAN : d; };
  expect_lanes(
      "min.NaN.f32 %d, %a, %b;", [&](float a, float b) { return or_nan(a, b, smaller(a, b)); }, pool, pool);
  expect_lanes(
      "max.NaN.f32 %d, %a, %b;", [&](float a, float b) { return or_nan(a, b, greater_of(a, b)); }, pool, pool);
}

float flushed(float x) {
  return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}
float saturated(float x) {
  return x > 1 ? 1.0f : x > 0 ? x : 0.0f;
}

TEST(FloatInstructions, FtzFlushesSubnormalSourcesAndResults) {
  const auto pool = awkward_floats<float>();
  const auto binary = [](auto f) { return [f](float a, float b) { return flushed(f(flushed(a), flushed(b))); }; };
  expect_lanes("add.ftz.f32 %d, %a, %b;", binary(std::plus<float>()), pool, pool);
  expect_lanes("mul.ftz.f32 %d, %a, %b;", binary(std::multiplies<float>()), pool, pool);
  expect_lanes(
      "fma.rn.ftz.f32 %d, %a, %b, %a;",
      [](float a, float b) { return flushed(std::fma(flushed(a), flushed(b), flushed(a))); }, pool, pool);
  expect_lanes("min.ftz.f32 %d, %a, %b;", binary(smaller<float>), pool, pool);
  expect_lanes(
      "abs.ftz.f32 %d, %a;", [](float a) { return std::abs(flushed(a)); }, pool);
}

TEST(FloatInstructions, SatClampsToTheUnitIntervalAndNanToZero) {
  const std::vector<float> pool = {0.25f, -0.5f, 0.875f, -INFINITY, INFINITY, NAN, 1e-40f, 3.0f, -2.0f};
  expect_lanes(
      "add.sat.f32 %d, %a, %b;", [](float a, float b) { return saturated(a + b); }, pool, pool);
  expect_lanes(
      "mul.sat.f32 %d, %a, %b;", [](float a, float b) { return saturated(a * b); }, pool, pool);
  expect_lanes(
      "fma.rn.sat.f32 %d, %a, %b, %c;", [](float a, float b, float c) { return saturated(std::fma(a, b, c)); }, pool,
      pool, pool);
}

constexpr size_t edge = 4, factors = 4 * edge;  // of a square of sums; two steps of row factors and column factors

/// Places of the factors that sum `k` of the square multiplies in a step.
std::pair<size_t, size_t> factors_of(size_t k, size_t step) {
  const size_t first = 2 * edge * (step % 2);
  return {first + k / edge, first + edge + k % edge};
}

/// Sums of a square, of so many steps each, whose multiply-adds stand step by step in one run.
std::vector<float> sums_of_square(const std::vector<size_t>& steps, Buffer<float>& values) {
  std::string body = "ld.param.u64 %rd0, [p0];\nld.param.u64 %rd1, [p1];\n";
  const auto name = [](size_t place) { return "%f" + std::to_string(place); };
  for (size_t k = 0; k < factors; ++k) {
    body += "ld.global.f32 " + name(k) + ", [%rd0+" + std::to_string(4 * k) + "];\n";
    body += "mov.f32 " + name(factors + k) + ", 0f3F800000;\n";
  }
  for (size_t step = 0; step < *std::max_element(steps.begin(), steps.end()); ++step) {
    for (size_t k = 0; k < steps.size(); ++k) {
      const auto [row, column] = factors_of(k, step);
      const std::string sum = name(factors + k);
      if (step < steps[k]) body += "fma.rn.f32 " + sum + ", " + name(row) + ", " + name(column) + ", " + sum + ";\n";
    }
  }
  for (size_t k = 0; k < steps.size(); ++k) {
    body += "st.global.f32 [%rd1+" + std::to_string(4 * k) + "], " + name(factors + k) + ";\n";
  }
  Module module(ptx_kernel(body));
  Buffer<float> sums(steps.size());
  module.allow(values).allow(sums);
  module.launch("k", {1}, {1}, Arguments(values.address(), sums.address(), uint64_t{0}, uint64_t{0}));
  return sums.values();
}

// An outer product of equal steps runs as one tile: a sum with other steps is left out of it, with all of its own.
TEST(FloatInstructions, SumsOfAnOuterProductMayHaveStepsMoreOrLess) {
  Buffer<float> values(factors);
  for (size_t k = 0; k < factors; ++k) values[k] = 1 / (static_cast<float>(k) + 1.5f);
  for (const size_t other : {1, 2, 3, 4}) {
    for (size_t odd = 0; odd < edge * edge; ++odd) {
      std::vector<size_t> steps(edge * edge, 2);
      steps[odd] = other;
      const std::vector<float> sums = sums_of_square(steps, values);
      for (size_t k = 0; k < sums.size(); ++k) {
        float expected = 1;
        for (size_t step = 0; step < steps[k]; ++step) {
          const auto [row, column] = factors_of(k, step);
          expected = std::fma(values[row], values[column], expected);
        }
        EXPECT_TRUE(same_lane(sums[k], expected)) << other << " steps of sum " << odd << ": sum " << k;
      }
    }
  }
}

template <class T>
struct Comparison {
  std::string name;
  bool (*holds)(T, T);
};

template <class T>
void expect_comparisons(const std::string& type, const std::vector<T>& pool,
                        const std::vector<Comparison<T>>& comparisons) {
  for (const auto& [name, holds] : comparisons) {
    expect_lanes(
        "setp." + name + "." + type + " %p1, %a, %b;\nselp.b32 %d, 11, -7, %p1;",
        [holds = holds](T a, T b) { return holds(a, b) ? 11 : -7; }, pool, pool);
  }
}

template <class T>
std::vector<Comparison<T>> ordered_comparisons() {
  return {{"eq", [](T a, T b) { return a == b; }}, {"ne", [](T a, T b) { return a < b || a > b; }},
          {"lt", [](T a, T b) { return a < b; }},  {"le", [](T a, T b) { return a <= b; }},
          {"gt", [](T a, T b) { return a > b; }},  {"ge", [](T a, T b) { return a >= b; }}};
}

template <class T>
std::vector<Comparison<T>> float_comparisons() {
  auto all = ordered_comparisons<T>();
  all.insert(all.end(), {{"equ", [](T a, T b) { return !(a < b || a > b); }},
                         {"neu", [](T a, T b) { return !(a == b); }},
                         {"ltu", [](T a, T b) { return !(a >= b); }},
                         {"leu", [](T a, T b) { return !(a > b); }},
                         {"gtu", [](T a, T b) { return !(a <= b); }},
                         {"geu", [](T a, T b) { return !(a < b); }},
                         {"num", [](T a, T b) { return !std::isnan(a) && !std::isnan(b); }},
                         {"nan", [](T a, T b) { return std::isnan(a) || std::isnan(b); }}});
  return all;
}

TEST(CompareInstructions, EveryComparisonOfIntegersKnowsTheSign) {
  expect_comparisons("s32", awkward_s32, ordered_comparisons<int32_t>());
  expect_comparisons("u32", awkward_u32, ordered_comparisons<uint32_t>());
  expect_comparisons("s64", awkward_s64, ordered_comparisons<int64_t>());
  expect_comparisons("u64", awkward_u64, ordered_comparisons<uint64_t>());
  expect_comparisons<uint32_t>("u32", awkward_u32,
                               {{"lo", [](uint32_t a, uint32_t b) { return a < b; }},
                                {"ls", [](uint32_t a, uint32_t b) { return a <= b; }},
                                {"hi", [](uint32_t a, uint32_t b) { return a > b; }},
                                {"hs", [](uint32_t a, uint32_t b) { return a >= b; }}});
}

TEST(CompareInstructions, UnorderedComparisonsHoldForNan) {
  expect_comparisons("f32", awkward_floats<float>(), float_comparisons<float>());
  expect_comparisons("f64", awkward_floats<double>(), float_comparisons<double>());
}

TEST(CompareInstructions, ThePairOfPredicatesHoldsTheJoinedTestAndItsNegation) {
  const std::string text =
      "setp.gt.s32 %p3, %a, 0;\nsetp.lt.and.s32 %p1|%p2, %a, %b, %p3;\nselp.b32 %r1, 1, 0, %p1;\n"
      "selp.b32 %r2, 2, 0, %p2;\nor.b32 %d, %r1, %r2;";
  expect_lanes(
      text, [](int32_t a, int32_t b) { return a <= 0  ? 0
                                              : a < b ? 1
                                                      : 2; }, awkward_s32, awkward_s32);
}

TEST(CompareInstructions, SetWritesAllOnesOrOne) {
  const auto pool = awkward_floats<float>();
  expect_lanes(
      "set.ltu.u32.f32 %d, %a, %b;", [](float a, float b) { return !(a >= b) ? ~0u : 0u; }, pool, pool);
  expect_lanes(
      "set.ge.f32.s32 %d, %a, %b;", [](int32_t a, int32_t b) { return a >= b ? 1.0f : 0.0f; }, awkward_s32,
      awkward_s32);
}

TEST(Loading, AnUnknownInstructionIsNamedWithItsLine) {
  const std::string ptx = ptx_kernel("mov.u32 %r0, 1;\nfrobnicate.u32 %r0, %r1;");
  const auto line = std::count(ptx.begin(), ptx.begin() + static_cast<ptrdiff_t>(ptx.find("frobnicate")), '\n') + 1;
  const std::string message = load_error(ptx);
  EXPECT_THAT(message, testing::HasSubstr("line " + std::to_string(line)));
  EXPECT_THAT(message, testing::HasSubstr("frobnicate"));
}

TEST(Loading, AnUnknownModifierIsNamedWithItsInstruction) {
  EXPECT_THAT(load_error(ptx_kernel("add.purple.u32 %r0, %r1, %r2;")),
              testing::AllOf(testing::HasSubstr("line "), testing::HasSubstr("add.purple.u32")));
}

TEST(FloatingInstructions, ApproximateQuotientsOfLargeDenominatorsAreZero) {
  // "For 2^126 < |b| < 2^128, if a is infinity, div.approx.f32 delivers NaN, otherwise it delivers 0."
  const std::vector<float> numerators = {0.0f, 1.0f, -3e38f, 0x1p127f, HUGE_VALF, -HUGE_VALF};
  const std::vector<float> large = {0x1.8p126f, -0x1.000002p126f, 0x1p127f, std::numeric_limits<float>::max()};
  const std::vector<float> others = {0x1p126f, -0x1p126f, HUGE_VALF, 1.0f, 0x1p-126f};
  expect_lanes(
      "div.approx.f32 %d, %a, %b;",
      [](float a, float b) { return std::isinf(a)                        ? NAN
                                    : std::signbit(a) != std::signbit(b) ? -0.0f
                                                                         : 0.0f; },
      numerators, large);
  expect_lanes(
      "div.approx.f32 %d, %a, %b;", [](float a, float b) { return a / b; }, numerators, others);
  expect_lanes(
      "div.full.f32 %d, %a, %b;", [](float a, float b) { return a / b; }, numerators, large);
}

TEST(FloatingInstructions, DecimalLiteralsMayHaveAnExponent) {
  const std::vector<float> one = {1.0f};
  const auto literal = [&](const std::string& text, float value) {
    expect_lanes(
        "fma.rn.f32 %d, %a, " + text + ", 0f00000000;", [=](float) { return value; }, one);
  };
  literal("1.0e-5", 1.0e-5f);
  literal("-2.5E+3", -2500.0f);
  literal("1e3", 1000.0f);
  expect_lanes(
      "add.u32 %d, %a, 0x1e;", [](uint32_t a) { return a + 0x1e; }, std::vector<uint32_t>{5});
  expect_lanes(
      "ld.param.u32 %d, [p3+4];\nadd.u32 %d, %d, %a;", [](uint32_t a) { return a; }, std::vector<uint32_t>{5});
}

TEST(IntegerInstructions, NamesOfRegistersNeedNoPercentSign) {
  // As inline assembly declares them; a source may be wider than what is stored or converted of it.
  expect_lanes(
      "{\n.reg .b32 wide;\n.reg .b64 sum;\nmov.b32 wide, %a;\ncvt.u32.u8 wide, wide;\ncvt.u64.u16 sum, wide;\n"
      "cvt.u32.u64 %d, sum;\n}",
      [](uint32_t a) { return a & 0xFF; }, awkward_u32);
  expect_lanes(
      "{\n.reg .b32 wide;\n.local .align 4 .b8 own[4];\nst.local.u32 [own], 0;\nmov.b32 wide, %a;\n"
      "st.local.u8 [own], wide;\nld.local.u32 %d, [own];\n}",
      [](uint32_t a) { return a & 0xFF; }, awkward_u32);
  expect_lanes(
      "{\n.local .align 4 .b8 own[4];\nst.local.u32 [own], %smid;\nld.local.u32 %r1, [own];\ncvt.u64.u32 %rd2, %smid;\n"
      "cvt.u32.u64 %r2, %rd2;\nst.local.u32 [own], %clock;\ncvt.u16.u32 %h1, %warpid;\nadd.u32 %d, %r1, %r2;\n}",
      [](uint32_t) { return 0u; }, std::vector<uint32_t>{5});
}

template <class T>
void expect_classes(const std::string& type) {
  const auto test = [&](const std::string& word, bool (*holds)(T)) {
    expect_lanes(
        "testp." + word + "." + type + " %p1, %a;\nselp.b32 %d, 1, 0, %p1;",
        [=](T a) { return static_cast<uint32_t>(holds(a)); }, awkward_floats<T>());
  };
  test("finite", [](T a) { return bool{std::isfinite(a)}; });
  test("infinite", [](T a) { return bool{std::isinf(a)}; });
  test("number", [](T a) { return !std::isnan(a); });
  test("notanumber", [](T a) { return bool{std::isnan(a)}; });
  // "As a special case, positive and negative zero are considered normal numbers."
  test("normal", [](T a) { return a == 0 || std::isnormal(a); });
  test("subnormal", [](T a) { return std::fpclassify(a) == FP_SUBNORMAL; });
}

TEST(FloatingInstructions, TestsOfPropertiesTakeZerosForNormal) {
  expect_classes<float>("f32");
  expect_classes<double>("f64");
}

}  // namespace
}  // namespace kiln::emulator::test::core_instructions_test
