// Outputs whose input is known to an interval alone: the judge allows as much besides, and no more.
#include "judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace kiln::checking::judge_test {
namespace {

using Floats = std::vector<float>;
constexpr float infinity = std::numeric_limits<float>::infinity();

std::span<const std::byte> bytes_of(const Floats& values) {
  return std::as_bytes(std::span(values));
}

// The sums of 4 rows, exact: 3, 7, 11 and NaN.
Judge sums(bool full, Floats slack = {}) {
  static const Request request = Request::parse("reduce x=f32:4x2 axes=1 mode=add");
  static const Floats x = {1, 2, 3, 4, 5, 6, std::numeric_limits<float>::quiet_NaN(), 8};
  const reference::Bindings bindings{.operands = {{"x", bytes_of(x)}}};
  return {request, "y", bindings, full, 4, 1, std::move(slack)};
}

TEST(Judge, TellsAnErrorFromTheOneThatIsAllowed) {
  EXPECT_EQ(text_of_errors(0, 0), "largest error 0 of 0 allowed");
  EXPECT_EQ(text_of_errors(1.234e-7, 3.4e-6), "largest error 1.23e-07 of 3.4e-06 allowed");
  EXPECT_EQ(text_of_errors(0.00079704, 0.00079713), "largest error 0.000797 of 0.0007971 allowed");
  EXPECT_EQ(text_of_errors(0.3, 0.3), "largest error 0.3 of 0.3 allowed");
  EXPECT_EQ(text_of_errors(1, 1 + 1e-9), "largest error 1 of 1.000000001 allowed");
}

TEST(Judge, AllowsSlackAndNoMore) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const bool full : {true, false}) {
    EXPECT_EQ(sums(full).with_reference(bytes_of({3, 7, 11, nan}), 4).wrong, "");
    EXPECT_NE(sums(full).with_reference(bytes_of({3, 7.25F, 11, nan}), 4).wrong, "");
    const Judge judge = sums(full, {0, 0.5F, infinity, 0.5F});
    EXPECT_EQ(judge.with_reference(bytes_of({3, 7.5F, infinity, nan}), 4).wrong, "");
    EXPECT_EQ(judge.with_reference(bytes_of({3, 6.5F, nan, nan}), 4).wrong, "");
    EXPECT_NE(judge.with_reference(bytes_of({3.25F, 7, 11, nan}), 4).wrong, "");
    EXPECT_NE(judge.with_reference(bytes_of({3, 7.625F, 11, nan}), 4).wrong, "");
    EXPECT_NE(judge.with_reference(bytes_of({3, 7, 11, 15}), 4).wrong, "") << "a move of 0.5 makes no number of NaN";
    EXPECT_EQ(judge.with_reference(bytes_of({3, 0, 0, 0}), 1).wrong, "") << "of one image";
    const Judge open = sums(full, {0, 0, 0, infinity});
    EXPECT_EQ(open.with_reference(bytes_of({3, 7, 11, 15}), 4).wrong, "") << "anything may come in place of NaN";
  }
}

TEST(Judge, SaysHowFarOffFiniteValuesAre) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Judge judge = sums(true, {0, 0.5F, infinity, 0.5F});
  EXPECT_EQ(judge.with_reference(bytes_of({3, 7.25F, 11, nan}), 4).max_error, 0.25);
  EXPECT_EQ(judge.with_reference(bytes_of({3, 7, 19, nan}), 4).max_error, 0) << "where anything is allowed";
  EXPECT_EQ(judge.with_reference(bytes_of({3, infinity, 11, 15}), 4).max_error, 0);

  static const Floats infinite = {infinity, 1};
  const Judge of_infinity(Request::parse("reduce x=f32:1x2 axes=1 mode=add"), "y",
                          {.operands = {{"x", bytes_of(infinite)}}}, true, 4, 1, {});
  const Finding finding = of_infinity.with_reference(bytes_of({5}), 1);
  EXPECT_NE(finding.wrong, "");
  EXPECT_EQ(finding.max_error, 0);
}

TEST(Judge, AllowsSlackBesideTheTrustedVariant) {
  const Judge judge = sums(false, {0, 0.5F, infinity, 0});
  const Floats trusted = {3, 7, 11, 2};
  EXPECT_EQ(judge.with_trusted(bytes_of({3, 7.5F, infinity, 2}), bytes_of(trusted), 4).wrong, "");
  EXPECT_NE(judge.with_trusted(bytes_of({3, 7.625F, 11, 2}), bytes_of(trusted), 4).wrong, "");
  EXPECT_NE(judge.with_trusted(bytes_of({3.125F, 7, 11, 2}), bytes_of(trusted), 4).wrong, "");
  EXPECT_THAT(judge.with_trusted(bytes_of({3, 9, 11, 5}), bytes_of(trusted), 4).wrong, testing::HasSubstr("at (1,0)"))
      << "the first of two";
}

TEST(Judge, TakesNoNumberForNaNOrForAnInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Judge judge = sums(false, {0, 0.5F, 0, 0});
  const Floats kinds = {7, nan, infinity, -infinity};
  for (const float trusted : kinds) {
    for (const float got : kinds) {
      const bool same = got == trusted || (std::isnan(got) && std::isnan(trusted));
      const Finding finding = judge.with_trusted(bytes_of({3, got, 11, 2}), bytes_of({3, trusted, 11, 2}), 4);
      EXPECT_EQ(finding.wrong.empty(), same) << got << " for " << trusted;
    }
  }
}

// An infinite sum has an infinite error of arithmetic, which is no element's but its own.
TEST(Judge, GrantsFiniteElementsNothingForAnInfiniteOne) {
  static const Floats x = {1, 2, infinity, 4};
  const Judge judge(Request::parse("reduce x=f32:2x2 axes=1 mode=add"), "y", {.operands = {{"x", bytes_of(x)}}}, true,
                    4, 1);
  EXPECT_EQ(judge.with_trusted(bytes_of({3, infinity}), bytes_of({3, infinity}), 2).wrong, "");
  EXPECT_NE(judge.with_trusted(bytes_of({3.125F, infinity}), bytes_of({3, infinity}), 2).wrong, "");
}

// An error where none is allowed is further off than the same error within its bound.
TEST(Judge, ReportsTheErrorThatIsFurthestBeyondItsBound) {
  static const Floats x = {1, 2, 3, 4};
  const Request exact = Request::parse("reduce x=f32:2x2 axes=1 mode=max");
  for (const Floats& slack : {Floats{0, 1}, Floats{1, 0}}) {
    const Judge judge(exact, "y", {.operands = {{"x", bytes_of(x)}}}, true, 4, 1, slack);
    const Finding finding = judge.with_trusted(bytes_of({2.5F, 4.5F}), bytes_of({2, 4}), 2);
    EXPECT_EQ(finding.max_error, 0.5);
    EXPECT_EQ(finding.bound, 0);
  }
}

// Whether `got` passes beside the trusted variant's result, where both may be `slack` off before they round.
template <class T>
bool passes(const std::string& dtype, T got, T trusted, float slack) {
  static const Floats x = {1, 2};
  const Judge judge(Request::parse("reduce x=f32:1x2 y=" + dtype + ":1x1 axes=1 mode=add"), "y",
                    {.operands = {{"x", bytes_of(x)}}}, true, 4, 1, {slack});
  return judge.with_trusted(std::as_bytes(std::span(&got, 1)), std::as_bytes(std::span(&trusted, 1)), 1).wrong.empty();
}

// Rounded results may be a step of storage apart, on both sides of a power of two that of the larger one.
TEST(Judge, GrantsAStepOfStorageBesideTheTrustedVariant) {
  using Pair = std::pair<uint16_t, uint16_t>;  // of f16
  for (const auto& [got, trusted] : {Pair(0x6800, 0x67fe), Pair(0x67fe, 0x6800), Pair(0x6801, 0x6800)}) {
    EXPECT_TRUE(passes("f16", got, trusted, 0.25F)) << got << ": 2048 and 2046, 2050 and 2048";
  }
  for (const auto& [got, trusted] : {Pair(0x67fe, 0x67fc), Pair(0x6801, 0x67fe), Pair(0x6802, 0x6800)}) {
    EXPECT_FALSE(passes("f16", got, trusted, 0.25F)) << got << ": 2046 and 2044, 2050 and 2046, 2052 and 2048";
  }
  for (const uint16_t trusted : {0x0000, 0x0002, 0x03ff, 0x0400, 0x07fc}) {  // subnormal, and the smallest normal ones
    EXPECT_TRUE(passes("f16", static_cast<uint16_t>(trusted + 1), trusted, 0x1p-26F)) << trusted;
    EXPECT_FALSE(passes("f16", static_cast<uint16_t>(trusted + 2), trusted, 0x1p-26F)) << trusted;
  }
  EXPECT_TRUE(passes("i32", 8, 7, 0.25F));
  EXPECT_FALSE(passes("i32", 9, 7, 0.25F));
  EXPECT_FALSE(passes("f16", uint16_t{0x3c01}, uint16_t{0x3c00}, 0)) << "what is exact does not round";
}

// Products with a vector of ones, which are sums of three.
Judge products(const Floats& a, bool full, Floats slack = {}) {
  static const Floats ones(3, 1);
  const std::string rows = std::to_string(a.size() / 3);
  return {Request::parse("gemm a=f32:" + rows + "x3 b=f32:3x1"),
          "c",
          {.operands = {{"a", bytes_of(a)}, {"b", bytes_of(ones)}}},
          full,
          2,
          1,
          std::move(slack)};
}

// Two right variants may be apart by the error of each: of every element's own sum, or the largest of those sampled.
TEST(Judge, KnowsHowFarRightVariantsMayBeApart) {
  constexpr float third = 1.0F / 3, huge = 3e38F, nan = std::numeric_limits<float>::quiet_NaN();
  const Floats a = {third, third, third, infinity, 1, 1, nan, 1, 1, infinity, huge, huge, 1, 1, 1, 8, 8, 8};
  const std::vector<float> own = products(a, true, {0, 0, 0, 0, infinity, 0}).margins();
  ASSERT_EQ(own.size(), 6U);
  EXPECT_GT(own[0], 0x1p-24F);
  EXPECT_LT(own[0], 0x1p-20F);
  EXPECT_EQ(own[1], 0) << "a certain infinity";
  EXPECT_EQ(own[2], 0) << "NaN for certain";
  EXPECT_EQ(own[3], infinity) << "the finite terms may overflow to the other infinity";
  EXPECT_EQ(own[4], infinity) << "anything is right";
  EXPECT_EQ(own[5], 0) << "exact sums";

  Floats many(3 * 100, third);
  std::fill_n(many.begin(), 3, 1000 * third);  // the corners are always sampled
  const std::vector<float> all = products(many, true).margins();
  EXPECT_GT(all[0], 900 * all[1]);
  EXPECT_EQ(products(many, false).margins(), std::vector<float>(100, 2 * all[0]));
}

// Winograd's transforms spread infinities and NaN over their tiles, each as either.
TEST(Judge, LeavesOpenWhatTransformsMakeOfInfinities) {
  const Request request = Request::parse("conv_forward x=f32:1x1x12x12 w=f32:1x1x3x3 pad=1 fast");
  for (const float special : {infinity, std::numeric_limits<float>::quiet_NaN()}) {
    Floats x(144, 1);
    x[0] = special;
    const Floats w(9, 0.25F);
    const reference::Bindings bindings{.operands = {{"x", bytes_of(x)}, {"w", bytes_of(w)}}};
    const std::vector<float> margins = Judge(request, "y", bindings, true, 4, 1).margins();
    const std::vector<reference::Expected> expected = reference::Oracle(request, bindings, "y").all();
    ASSERT_EQ(margins.size(), expected.size());
    int open = 0;
    for (size_t i = 0; i < margins.size(); ++i) {
      open += expected[i].any_not_finite ? 1 : 0;
      EXPECT_EQ(std::isinf(margins[i]), expected[i].any_not_finite) << i;
    }
    EXPECT_GT(open, 4);
    EXPECT_LT(open, 144);
  }
}

TEST(Judge, GrantsTheArithmeticOfBothBesideTheTrustedVariant) {
  constexpr float third = 1.0F / 3;
  Floats a(3 * 10, third);
  std::fill_n(a.begin(), 3, 1000 * third);
  const Judge judge = products(a, false);
  const float apart = judge.margins()[0];
  Floats trusted(10, 1);
  trusted[0] = 1000;
  for (const size_t place : {0, 4, 9}) {
    Floats got = trusted;
    got[place] += apart;
    EXPECT_EQ(judge.with_trusted(bytes_of(got), bytes_of(trusted), 10).wrong, "") << place;
    got[place] = trusted[place] + 2 * apart;
    EXPECT_NE(judge.with_trusted(bytes_of(got), bytes_of(trusted), 10).wrong, "") << place;
  }
}

// Large outputs are compared in parts on several threads: the outcome is that of going through them in order.
TEST(Judge, NamesTheFirstElementOfManyThatIsWrong) {
  constexpr size_t rows = 40000;
  const Floats x(2 * rows, 1);
  const Judge judge(Request::parse("reduce x=f32:40000x2 axes=1 mode=add"), "y", {.operands = {{"x", bytes_of(x)}}},
                    false, 16, 1);
  const Floats trusted(rows, 2);
  Floats got = trusted;
  got[rows - 1] = 3;
  EXPECT_THAT(judge.with_trusted(bytes_of(got), bytes_of(trusted), rows).wrong, testing::HasSubstr("at (39999,0)"));
  EXPECT_EQ(judge.with_trusted(bytes_of(got), bytes_of(trusted), rows - 1).wrong, "") << "beyond what was compared";
  got[20001] = got[31000] = 5;
  const Finding finding = judge.with_trusted(bytes_of(got), bytes_of(trusted), rows);
  EXPECT_THAT(finding.wrong, testing::HasSubstr("at (20001,0): got 5, the trusted variant has 2"));
  EXPECT_EQ(finding.max_error, 3);
  EXPECT_EQ(finding.checked, int64_t{rows});
}

TEST(FirstDifference, IsFoundAcrossParts) {
  std::vector<std::byte> before(300'001, std::byte{7}), after = before;
  EXPECT_EQ(first_difference(before, after), std::nullopt);
  after[300'000] = std::byte{8};
  EXPECT_EQ(first_difference(before, after), 300'000U);
  after[131'072] = after[65'535] = std::byte{8};
  EXPECT_EQ(first_difference(before, after), 65'535U);
  EXPECT_EQ(first_difference({}, after), std::nullopt);
}

}  // namespace
}  // namespace kiln::checking::judge_test
