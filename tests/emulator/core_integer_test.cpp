// Integer instructions against the host's integers.
#include <limits>
#include <string>
#include <type_traits>

#include "core_evaluate.h"

namespace kiln::emulator::test::core_integer_test {
namespace {

template <class T>
std::string type_name() {
  return (std::is_signed_v<T> ? "s" : "u") + std::to_string(8 * sizeof(T));
}

class InstructionTests : public testing::TestWithParam<UnitSet> {};

// Every test of an instruction runs all sets that can run; this one names the others, with the reason.
TEST_P(InstructionTests, CoverTheUnits) {
  if (GetParam().table == nullptr) GTEST_SKIP() << "no instruction is tested on these units: " << GetParam().missing;
}
INSTANTIATE_TEST_SUITE_P(All, InstructionTests, testing::ValuesIn(unit_sets()),
                         [](const auto& tested) { return std::string(tested.param.name); });

template <class T>
class Integers : public testing::Test {
 protected:
  using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;

  // "add" -> "add.s32 d, a, b;"
  static std::string binary(const std::string& op) { return op + "." + type_name<T>() + " d, a, b;"; }
};
using Types = testing::Types<uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(Integers, Types);

TYPED_TEST(Integers, AddSubtractAndMultiplyWrapAround) {
  using T = TypeParam;
  using W = typename TestFixture::Wide;
  expect_exact<T, T, T>(this->binary("add"), [](T a, T b) { return T(W(a) + W(b)); });
  expect_exact<T, T, T>(this->binary("sub"), [](T a, T b) { return T(W(a) - W(b)); });
  expect_exact<T, T, T>(this->binary("mul.lo"), [](T a, T b) { return T(W(a) * W(b)); });
  expect_exact<T, T, T>(this->binary("mul.hi"), [](T a, T b) { return T((W(a) * W(b)) >> (8 * sizeof(T))); });
}

TYPED_TEST(Integers, MultiplyAddsKeepEitherHalf) {
  using T = TypeParam;
  using W = typename TestFixture::Wide;
  const std::string type = type_name<T>();
  expect_exact<T, T, T, T>("mad.lo." + type + " d, a, b, c;", [](T a, T b, T c) { return T(W(a) * W(b) + W(c)); });
  expect_exact<T, T, T, T>("mad.hi." + type + " d, a, b, c;",
                           [](T a, T b, T c) { return T(((W(a) * W(b)) >> (8 * sizeof(T))) + W(c)); });
  expect_exact<T, T, T, T>("sad." + type + " d, a, b, c;",
                           [](T a, T b, T c) { return T((a < b ? W(b) - W(a) : W(a) - W(b)) + W(c)); });
}

TYPED_TEST(Integers, DivisionTruncatesAndSurvivesZeroAndOverflow) {
  using T = TypeParam;
  using W = typename TestFixture::Wide;
  expect_exact<T, T, T>(this->binary("div"), [](T a, T b) { return b == 0 ? T(~T(0)) : T(W(a) / W(b)); });
  expect_exact<T, T, T>(this->binary("rem"), [](T a, T b) { return b == 0 ? a : T(W(a) % W(b)); });
}

TYPED_TEST(Integers, MinimumMaximumAbsoluteAndNegation) {
  using T = TypeParam;
  using W = typename TestFixture::Wide;
  expect_exact<T, T, T>(this->binary("min"), [](T a, T b) { return a < b ? a : b; });
  expect_exact<T, T, T>(this->binary("max"), [](T a, T b) { return a > b ? a : b; });
  if constexpr (std::is_signed_v<T>) {
    expect_exact<T, T>("abs." + type_name<T>() + " d, a;", [](T a) { return a < 0 ? T(-W(a)) : a; });
    expect_exact<T, T>("neg." + type_name<T>() + " d, a;", [](T a) { return T(-W(a)); });
  }
}

TYPED_TEST(Integers, ShiftsClampBeyondTheWidth) {
  using T = TypeParam;
  constexpr uint32_t bits = 8 * sizeof(T);
  expect_exact<T, T, uint32_t>("shr." + type_name<T>() + " d, a, b;", [](T a, uint32_t n) {
    if (n < bits) return T(a >> n);
    return a < 0 ? T(-1) : T(0);
  });
  expect_exact<T, T, uint32_t>("shl.b" + std::to_string(bits) + " d, a, b;",
                               [](T a, uint32_t n) { return n < bits ? T(std::make_unsigned_t<T>(a) << n) : T(0); });
}

template <class T>
void expect_comparison(const std::string& op, const std::string& type, bool (*expected)(T, T)) {
  expect_exact<uint32_t, T, T>("%Gsetp." + op + "." + type + " q, a, b;\n%Gselp.u32 d, 1, 0, q;",
                               [=](T a, T b) { return uint32_t(expected(a, b)); });
  expect_exact<uint32_t, T, T>("set." + op + ".u32." + type + " d, a, b;",
                               [=](T a, T b) { return expected(a, b) ? 0xFFFFFFFFu : 0u; });
}

TYPED_TEST(Integers, ComparisonsHaveTheirOrder) {
  using T = TypeParam;
  const std::string type = type_name<T>();
  expect_comparison<T>("eq", type, [](T a, T b) { return a == b; });
  expect_comparison<T>("ne", type, [](T a, T b) { return a != b; });
  expect_comparison<T>("lt", type, [](T a, T b) { return a < b; });
  expect_comparison<T>("le", type, [](T a, T b) { return a <= b; });
  expect_comparison<T>("gt", type, [](T a, T b) { return a > b; });
  expect_comparison<T>("ge", type, [](T a, T b) { return a >= b; });
}

TEST(IntegerComparisons, JoinAnotherPredicateAndGiveTheComplement) {
  const auto text = [](const std::string& join, const std::string& third) {
    return "setp.gt.s32 q, b, 0;\n%Gsetp.lt." + join + ".s32 q|q2, a, b, " + third +
           ";\n%Gselp.u32 d, 1, 0, q;\n%Gselp.u32 w, 2, 0, q2;\n%Gor.b32 d, d, w;";
  };
  const auto check = [&](const std::string& join, auto combine) {
    for (const bool negated : {false, true}) {
      expect_exact<uint32_t, int32_t, int32_t>(text(join, negated ? "!q" : "q"), [=](int32_t a, int32_t b) {
        const bool third = (b > 0) != negated;
        return uint32_t(combine(a < b, third)) | uint32_t(combine(!(a < b), third)) << 1;
      });
    }
  };
  check("and", [](bool x, bool y) { return x && y; });
  check("or", [](bool x, bool y) { return x || y; });
  check("xor", [](bool x, bool y) { return x != y; });
}

template <class T, class W>
void expect_wide(const std::string& type) {
  expect_exact<W, T, T>("mul.wide." + type + " d, a, b;", [](T a, T b) { return W(W(a) * W(b)); });
  expect_exact<W, T, T, W>("mad.wide." + type + " d, a, b, c;", [](T a, T b, W c) {
    return W(std::make_unsigned_t<W>(W(a) * W(b)) + std::make_unsigned_t<W>(c));
  });
}

TEST(WideProducts, KeepAllBits) {
  expect_wide<uint16_t, uint32_t>("u16");
  expect_wide<int16_t, int32_t>("s16");
  expect_wide<uint32_t, uint64_t>("u32");
  expect_wide<int32_t, int64_t>("s32");
}

int32_t saturated(int64_t x) {
  return int32_t(std::clamp<int64_t>(x, INT32_MIN, INT32_MAX));
}

TEST(SaturatingIntegers, StopAtTheEndsOfTheRange) {
  using T = int32_t;
  expect_exact<T, T, T>("add.sat.s32 d, a, b;", [](T a, T b) { return saturated(int64_t{a} + b); });
  expect_exact<T, T, T>("sub.sat.s32 d, a, b;", [](T a, T b) { return saturated(int64_t{a} - b); });
  expect_exact<T, T, T, T>("mad.hi.sat.s32 d, a, b, c;",
                           [](T a, T b, T c) { return saturated((int64_t{a} * b >> 32) + c); });
  expect_exact<T, T, T>("min.relu.s32 d, a, b;", [](T a, T b) { return std::max(0, std::min(a, b)); });
  expect_exact<T, T, T>("max.relu.s32 d, a, b;", [](T a, T b) { return std::max(0, std::max(a, b)); });
}

int64_t low24(int32_t a) {
  return a << 8 >> 8;
}

TEST(Multiply24, UsesTheLowBitsOnly) {
  using U = uint32_t;
  using T = int32_t;
  expect_exact<U, U, U>("mul24.lo.u32 d, a, b;", [](U a, U b) { return U(uint64_t{a & 0xFFFFFF} * (b & 0xFFFFFF)); });
  expect_exact<U, U, U>("mul24.hi.u32 d, a, b;",
                        [](U a, U b) { return U(uint64_t{a & 0xFFFFFF} * (b & 0xFFFFFF) >> 16); });
  expect_exact<T, T, T, T>("mad24.lo.s32 d, a, b, c;", [](T a, T b, T c) { return T(U(low24(a) * low24(b)) + U(c)); });
  expect_exact<T, T, T, T>("mad24.hi.sat.s32 d, a, b, c;",
                           [](T a, T b, T c) { return saturated((low24(a) * low24(b) >> 16) + c); });
}

// add.cc and addc on the halves of 64-bit numbers must give what one 64-bit addition gives.
TEST(ExtendedPrecision, CarriesFromWordToWord) {
  const std::string split = "{ .reg .b32 x, y, u, v, r, s;\nmov.b64 {x, y}, a;\nmov.b64 {u, v}, b;\n";
  using T = uint64_t;
  expect_exact<T, T, T>(split + "add.cc.u32 r, x, u;\naddc.u32 s, y, v;\n%Gmov.b64 d, {r, s}; }",
                        [](T a, T b) { return a + b; });
  expect_exact<T, T, T>(split + "sub.cc.u32 r, x, u;\nsubc.u32 s, y, v;\n%Gmov.b64 d, {r, s}; }",
                        [](T a, T b) { return a - b; });
  expect_exact<T, T, T>(split + "mad.lo.cc.u32 r, x, u, y;\nmadc.hi.u32 s, x, u, v;\n%Gmov.b64 d, {r, s}; }",
                        [](T a, T b) { return (a & ~0u) * (b & ~0u) + ((a >> 32) | (b >> 32 << 32)); });
}

TEST(DotProducts, OfBytesMixSigns) {
  const auto byte = [](uint32_t x, int k, bool is_signed) {
    const auto b = uint8_t(x >> (8 * k));
    return is_signed ? int32_t(int8_t(b)) : int32_t(b);
  };
  using U = uint32_t;
  for (const bool a_signed : {false, true}) {
    for (const bool b_signed : {false, true}) {
      const std::string types = std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
      expect_exact<U, U, U, U>("dp4a" + types + " d, a, b, c;", [=](U a, U b, U c) {
        for (int k = 0; k < 4; ++k) c += U(byte(a, k, a_signed) * byte(b, k, b_signed));
        return c;
      });
      for (const int high : {0, 1}) {
        const std::string part = high != 0 ? "dp2a.hi" : "dp2a.lo";
        expect_exact<U, U, U, U>(part + types + " d, a, b, c;", [=](U a, U b, U c) {
          for (int k = 0; k < 2; ++k) {
            const auto half = uint16_t(a >> (16 * k));
            c += U((a_signed ? int32_t(int16_t(half)) : int32_t(half)) * byte(b, k + 2 * high, b_signed));
          }
          return c;
        });
      }
    }
  }
}

TEST(PackedHalves, AreIndependent) {
  using U = uint32_t;
  const auto both = [](U a, U b, auto op) {
    return U(uint16_t(op(uint16_t(a), uint16_t(b)))) | U(uint16_t(op(uint16_t(a >> 16), uint16_t(b >> 16)))) << 16;
  };
  expect_exact<U, U, U>("add.u16x2 d, a, b;",
                        [=](U a, U b) { return both(a, b, [](uint16_t x, uint16_t y) { return x + y; }); });
  expect_exact<U, U, U>("min.u16x2 d, a, b;",
                        [=](U a, U b) { return both(a, b, [](uint16_t x, uint16_t y) { return std::min(x, y); }); });
  expect_exact<U, U, U>("max.s16x2 d, a, b;", [=](U a, U b) {
    return both(a, b, [](uint16_t x, uint16_t y) { return std::max(int16_t(x), int16_t(y)); });
  });
}

}  // namespace
}  // namespace kiln::emulator::test::core_integer_test
