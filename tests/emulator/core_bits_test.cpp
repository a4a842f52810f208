// Logic, bit fields and permutations against bit-by-bit oracles.
#include <bit>
#include <string>
#include <type_traits>

#include "core_evaluate.h"

namespace kiln::emulator::test::core_bits_test {
namespace {

using U = uint32_t;

template <class T>
class Logic : public testing::Test {};
using Widths = testing::Types<uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Logic, Widths);

TYPED_TEST(Logic, WorksOnEveryBit) {
  using T = TypeParam;
  const std::string b = ".b" + std::to_string(8 * sizeof(T));
  expect_exact<T, T, T>("and" + b + " d, a, b;", [](T x, T y) { return T(x & y); });
  expect_exact<T, T, T>("or" + b + " d, a, b;", [](T x, T y) { return T(x | y); });
  expect_exact<T, T, T>("xor" + b + " d, a, b;", [](T x, T y) { return T(x ^ y); });
  expect_exact<T, T>("not" + b + " d, a;", [](T x) { return T(~x); });
  expect_exact<T, T>("cnot" + b + " d, a;", [](T x) { return T(x == 0 ? 1 : 0); });
  expect_exact<T, T>("mov" + b + " d, a;", [](T x) { return x; });
}

TYPED_TEST(Logic, SelectsByPredicateAndBySign) {
  using T = TypeParam;
  const std::string b = ".b" + std::to_string(8 * sizeof(T));
  expect_exact<T, T, T, int32_t>("setp.lt.s32 q, c, 0;\n%Gselp" + b + " d, a, b, q;",
                                 [](T x, T y, int32_t c) { return c < 0 ? x : y; });
  expect_exact<T, T, T, int32_t>("setp.lt.s32 q, c, 0;\n%Gselp" + b + " d, a, b, !q;",
                                 [](T x, T y, int32_t c) { return c < 0 ? y : x; });
  expect_exact<T, T, T, int32_t>("slct" + b + ".s32 d, a, b, c;", [](T x, T y, int32_t c) { return c >= 0 ? x : y; });
}

TEST(Selection, ByFloatTakesMinusZeroAsZeroAndNanAsNegative) {
  const auto columns = combinations(std::vector<U>{1}, std::vector<U>{2}, awkward<float>());
  const auto same = [](U x, U y) { return x == y; };
  expect_instruction<U, U, U, float>(
      "slct.b32.f32 d, a, b, c;", [](U x, U y, float c) { return c >= 0 ? x : y; }, same, columns);
  expect_instruction<U, U, U, float>(
      "slct.ftz.b32.f32 d, a, b, c;", [](U x, U y, float c) { return c > -0x1p-126f ? x : y; }, same, columns);
}

TEST(Logic3, FollowsItsTable) {
  for (const int table : {0x00, 0x01, 0x80, 0x96, 0xE8, 0xCA, 0x5A, 0xFF}) {
    expect_exact<U, U, U, U>("lop3.b32 d, a, b, c, " + std::to_string(table) + ";", [=](U a, U b, U c) {
      U d = 0;
      for (int k = 0; k < 32; ++k) d |= U(table >> ((a >> k & 1) << 2 | (b >> k & 1) << 1 | (c >> k & 1)) & 1) << k;
      return d;
    });
  }
}

TEST(FunnelShifts, ClampOrWrapTheirAmount) {
  const auto pair = [](U a, U b) { return uint64_t{b} << 32 | a; };
  expect_exact<U, U, U, U>("shf.l.clamp.b32 d, a, b, c;",
                           [=](U a, U b, U c) { return c >= 32 ? a : U(pair(a, b) << c >> 32); });
  expect_exact<U, U, U, U>("shf.l.wrap.b32 d, a, b, c;",
                           [=](U a, U b, U c) { return U(pair(a, b) << (c % 32) >> 32); });
  expect_exact<U, U, U, U>("shf.r.clamp.b32 d, a, b, c;",
                           [=](U a, U b, U c) { return c >= 32 ? b : U(pair(a, b) >> c); });
  expect_exact<U, U, U, U>("shf.r.wrap.b32 d, a, b, c;", [=](U a, U b, U c) { return U(pair(a, b) >> (c % 32)); });
}

template <class T>
class Counts : public testing::Test {};
using CountTypes = testing::Types<uint32_t, int32_t, uint64_t, int64_t>;
TYPED_TEST_SUITE(Counts, CountTypes);

TYPED_TEST(Counts, FindBits) {
  using T = TypeParam;
  using W = std::make_unsigned_t<T>;
  constexpr U bits = 8 * sizeof(T);
  const std::string b = ".b" + std::to_string(bits);
  const std::string type = (std::is_signed_v<T> ? ".s" : ".u") + std::to_string(bits);
  expect_exact<U, T>("popc" + b + " d, a;", [](T a) { return U(std::popcount(W(a))); });
  expect_exact<U, T>("clz" + b + " d, a;", [](T a) { return U(std::countl_zero(W(a))); });
  const auto top = [](T a) -> U {
    for (U k = bits; k-- > 0;) {
      if ((W(a) >> k & 1) != (a < 0 ? 0u : 1u)) continue;
      return k;
    }
    return ~0u;
  };
  expect_exact<U, T>("bfind" + type + " d, a;", top);
  expect_exact<U, T>("bfind.shiftamt" + type + " d, a;", [=](T a) { return top(a) == ~0u ? ~0u : bits - 1 - top(a); });
  expect_exact<T, T>("brev" + b + " d, a;", [](T a) {
    W r = 0;
    for (U k = 0; k < bits; ++k) r |= W(W(a) >> k & 1) << (bits - 1 - k);
    return T(r);
  });
}

TYPED_TEST(Counts, ExtractFieldsWithTheirSign) {
  using T = TypeParam;
  using W = std::make_unsigned_t<T>;
  constexpr U bits = 8 * sizeof(T);
  const std::string type = (std::is_signed_v<T> ? ".s" : ".u") + std::to_string(bits);
  expect_exact<T, T, U, U>("bfe" + type + " d, a, b, c;", [](T a, U b, U c) {
    const U position = b & 0xFF, length = c & 0xFF;
    const auto bit = [&](U k) { return k < bits ? W(W(a) >> k & 1) : W(0); };
    W fill = 0;
    if (std::is_signed_v<T> && length != 0) fill = bit(std::min(position + length - 1, bits - 1));
    W d = 0;
    for (U k = 0; k < bits; ++k) d |= (k < length && position + k < bits ? bit(position + k) : fill) << k;
    return T(d);
  });
}

template <class T>
void expect_insert(const std::string& b) {
  constexpr U bits = 8 * sizeof(T);
  for (const U length : {0u, 1u, 5u, 31u, 32u, 63u, 64u, 255u}) {
    expect_exact<T, T, T, U>("bfi" + b + " d, a, b, c, " + std::to_string(length) + ";", [=](T a, T base, U c) {
      const U position = c & 0xFF;
      T d = base;
      for (U k = 0; k < length && position + k < bits; ++k) {
        d = T(d & ~(T(1) << (position + k))) | T(T(a >> k & 1) << (position + k));
      }
      return d;
    });
  }
}
TEST(Fields, AreInsertedWhereTheyFit) {
  expect_insert<uint32_t>(".b32");
  expect_insert<uint64_t>(".b64");
}

TEST(BitMasks, StartAndEndWhereAsked) {
  const auto mask = [](U first, U end) {
    U m = 0;
    for (U k = first; k < std::min(end, 32u); ++k) m |= 1u << k;
    return m;
  };
  expect_exact<U, U, U>("bmsk.wrap.b32 d, a, b;", [=](U a, U b) { return mask(a % 32, a % 32 + b % 32); });
  expect_exact<U, U, U>("bmsk.clamp.b32 d, a, b;",
                        [=](U a, U b) { return mask(std::min(a, 32u), std::min(a, 32u) + std::min(b, 32u)); });
}

TEST(Extension, FromAnyNumberOfBits) {
  const auto zero = [](U a, U n) { return n >= 32 ? a : a & ((1u << n) - 1); };
  const auto sign = [](U a, U n) { return n == 0 ? 0 : n >= 32 ? int32_t(a) : int32_t(a << (32 - n)) >> (32 - n); };
  expect_exact<U, U, U>("szext.clamp.u32 d, a, b;", [=](U a, U b) { return zero(a, b); });
  expect_exact<U, U, U>("szext.wrap.u32 d, a, b;", [=](U a, U b) { return zero(a, b % 32); });
  expect_exact<int32_t, U, U>("szext.clamp.s32 d, a, b;", [=](U a, U b) { return sign(a, b); });
  expect_exact<int32_t, U, U>("szext.wrap.s32 d, a, b;", [=](U a, U b) { return sign(a, b % 32); });
}

TEST(FindNthSet, WalksUpOrDownFromTheBase) {
  expect_exact<U, U, U, int32_t>("fns.b32 d, a, b, c;", [](U mask, U base, int32_t offset) -> U {
    if (offset == 0) return base < 32 && (mask >> base & 1) != 0 ? base : ~0u;
    int64_t left = std::abs(int64_t{offset});
    for (int64_t k = base; k >= 0 && k<32; k += offset> 0 ? 1 : -1) {
      if ((mask >> k & 1) != 0 && --left == 0) return U(k);
    }
    return ~0u;
  });
}

U byte_of(U a, U b, U k) {
  return U((uint64_t{b} << 32 | a) >> (8 * (k & 7))) & 0xFF;
}

TEST(Permutation, PicksBytesAndSigns) {
  expect_exact<U, U, U, U>("prmt.b32 d, a, b, c;", [](U a, U b, U c) {
    U d = 0;
    for (int k = 0; k < 4; ++k) {
      const U selector = c >> (4 * k) & 15;
      U byte = byte_of(a, b, selector);
      if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0;
      d |= byte << (8 * k);
    }
    return d;
  });
}

TEST(Permutation, HasItsSpecialModes) {
  // Source bytes of d's bytes 0 to 3 for selectors 0 to 3, from the PTX ISA's table.
  struct Mode {
    const char* name;
    U source[4][4];
  };
  const Mode modes[] = {
      {"f4e", {{0, 1, 2, 3}, {1, 2, 3, 4}, {2, 3, 4, 5}, {3, 4, 5, 6}}},
      {"b4e", {{0, 7, 6, 5}, {1, 0, 7, 6}, {2, 1, 0, 7}, {3, 2, 1, 0}}},
      {"rc8", {{0, 0, 0, 0}, {1, 1, 1, 1}, {2, 2, 2, 2}, {3, 3, 3, 3}}},
      {"ecl", {{0, 1, 2, 3}, {1, 1, 2, 3}, {2, 2, 2, 3}, {3, 3, 3, 3}}},
      {"ecr", {{0, 0, 0, 0}, {0, 1, 1, 1}, {0, 1, 2, 2}, {0, 1, 2, 3}}},
      {"rc16", {{0, 1, 0, 1}, {2, 3, 2, 3}, {0, 1, 0, 1}, {2, 3, 2, 3}}},
  };
  for (const Mode& mode : modes) {
    expect_exact<U, U, U, U>(std::string("prmt.b32.") + mode.name + " d, a, b, c;", [&](U a, U b, U c) {
      U d = 0;
      for (int k = 0; k < 4; ++k) d |= byte_of(a, b, mode.source[c & 3][k]) << (8 * k);
      return d;
    });
  }
}

TEST(Vectors, ArePackedLowestPartFirst) {
  expect_exact<uint64_t, U, U>("mov.b64 d, {a, b};", [](U a, U b) { return uint64_t{b} << 32 | a; });
  expect_exact<U, uint16_t, uint16_t>("mov.b32 d, {a, b};", [](uint16_t a, uint16_t b) { return U(b) << 16 | a; });
  expect_exact<U, uint64_t>("mov.b64 {_, w}, a;\n%Gmov.b32 d, w;", [](uint64_t a) { return U(a >> 32); });
  expect_exact<uint16_t, U>("mov.b32 {h, h2}, a;\n%Gadd.u16 d, h, h2;", [](U a) { return uint16_t(a + (a >> 16)); });
  expect_exact<uint64_t, uint64_t>(
      "{ .reg .b16 x, y, z;\nmov.b64 {x, y, z, h}, a;\n%Gmov.b64 d, {h, z, y, x}; }",
      [](uint64_t a) { return (a & 0xFFFF) << 48 | (a >> 16 & 0xFFFF) << 32 | (a >> 32 & 0xFFFF) << 16 | a >> 48; });
}

}  // namespace
}  // namespace kiln::emulator::test::core_bits_test
