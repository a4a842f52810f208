#include "kiln/reference/tolerance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/base/error.h"

namespace kiln::reference::tolerance_test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

const char* const large_conv = "conv_forward x=f32:1x256x4x4:nchw w=f32:2x256x3x3:nchw pad=1,1";

/// Sums the products of one output in f32, in the order that `step` makes, as a kernel may.
float sum_in_f32(const Call& call, size_t step) {
  const auto x = read_all(call.request.at("x"), call.memory.at("x"));
  const auto w = read_all(call.request.at("w"), call.memory.at("w"));
  float sum = 0;
  for (size_t i = 0, j = 0; i < x.size(); ++i, j = (j + step) % x.size()) {
    sum += static_cast<float>(x[j]) * static_cast<float>(w[j]);
  }
  return sum;
}

TEST(Tolerance, AcceptsF32SumsInAnyOrder) {
  // 4099 products, added up forwards and in two scattered orders (4099 is prime, so every step visits all).
  for (const Values values : {Values::uniform, Values::wide, Values::integers}) {
    Call call("conv_forward x=f32:1x4099x1x1:nchw w=f32:1x4099x1x1:nchw", values);
    const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
    for (const size_t step : {1u, 1000u, 3571u}) {
      EXPECT_TRUE(is_right(call.request, expected, sum_in_f32(call, step)));
    }
  }
}

TEST(Tolerance, DemandsExactSumsOfIntegers) {
  const Call call(large_conv, Values::integers);
  const Oracle oracle(call.request, call.bindings());
  for (const Expected& expected : oracle.all()) {
    EXPECT_EQ(arithmetic_error(call.request, expected), 0);
    EXPECT_TRUE(is_right(call.request, expected, expected.value));
    EXPECT_FALSE(is_right(call.request, expected, expected.value + 1));
  }
}

// f8e5m2 has infinities, but a store makes none; bits that are copied stay as they are.
TEST(Tolerance, SaturatesInfinitiesWhereStoresDo) {
  const Request request = Request::parse("tensor_transform x=f32:4 y=f8e5m2:4");
  Expected expected{.value = infinity, .magnitude = infinity, .storage = DType::f8e5m2};
  EXPECT_TRUE(is_right(request, expected, 57344));
  EXPECT_FALSE(is_right(request, expected, infinity));
  EXPECT_FALSE(is_right(request, expected, -57344));
  expected.copied = true;
  EXPECT_TRUE(is_right(request, expected, infinity));
  EXPECT_FALSE(is_right(request, expected, 57344));
  expected = {.value = nan, .storage = DType::f8e5m2};
  EXPECT_TRUE(is_right(request, expected, nan));
  EXPECT_FALSE(is_right(request, expected, 57344));
  expected = {.value = 500, .magnitude = 500, .storage = DType::f8e4m3};
  EXPECT_TRUE(is_right(request, expected, 448));
  EXPECT_FALSE(is_right(request, expected, 416));
}

// Finite terms may make infinities of both signs, and these NaN, which storing in 8 bits does not hide.
TEST(Tolerance, AcceptsNanInFp8WhereSumsMayOverflow) {
  const Request request = Request::parse("gemm a=f32:2x2 b=f32:2x2 c=f8e4m3:2x2");
  Expected expected{.value = 1, .magnitude = 1e39, .finite_magnitude = 1e39, .roundings = 2, .storage = DType::f8e4m3};
  EXPECT_TRUE(is_right(request, expected, nan));
  EXPECT_TRUE(is_right(request, expected, -448));
  expected.magnitude = expected.finite_magnitude = 1e37;
  EXPECT_FALSE(is_right(request, expected, nan));
}

TEST(Tolerance, IsTheDerivedBoundForOtherValues) {
  const Call call(large_conv, Values::uniform);
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 1, 2, 2});
  EXPECT_EQ(expected.roundings, 256 * 9);
  EXPECT_NEAR(arithmetic_error(call.request, expected), 256 * 9 * 0x1p-24 * expected.magnitude, 1e-12);
  const double error = arithmetic_error(call.request, expected);
  EXPECT_TRUE(is_right(call.request, expected, expected.value + 0.99 * error));
  EXPECT_FALSE(is_right(call.request, expected, expected.value + 1.02 * error));
}

TEST(Tolerance, LeavesNothingToMaximaAndRoundingToStorage) {
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    const Call call(std::string("pool_forward mode=max window=3,3 pad=1,1 x=") + dtype + ":1x2x5x5:nchw");
    for (const Expected& expected : Oracle(call.request, call.bindings()).all()) {
      EXPECT_EQ(bound(call.request, expected), 0);
      EXPECT_FALSE(is_right(call.request, expected, expected.value * (1 + 0x1p-20)));
    }
  }
}

TEST(Tolerance, AcceptsOnlyNeighboursInStorage) {
  // 1 + 2^-11 is half-way between two f16 numbers; the exact sum is rounded to even, once.
  Call call("conv_forward x=f16:1x2x1x1:nchw w=f16:1x2x1x1:nchw");
  call.set("x", {1, 0x1p-11}).set("w", {1, 1});
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
  EXPECT_TRUE(is_right(call.request, expected, 1));
  EXPECT_FALSE(is_right(call.request, expected, 1 + 0x1p-10));
}

TEST(Tolerance, DividesExactSumsWithTwoRoundings) {
  const Call call("pool_forward mode=avg window=3,3 x=f32:1x1x3x3:nchw", Values::integers);
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
  EXPECT_NEAR(arithmetic_error(call.request, expected), 2 * 0x1p-24 * expected.magnitude, 1e-20);
  const Call by_four("pool_forward mode=avg window=2,2 x=f32:1x1x2x2:nchw", Values::integers);
  EXPECT_EQ(bound(by_four.request, at(by_four.request, by_four.bindings(), Coordinate{0, 0, 0, 0})), 0);
}

TEST(Tolerance, GrantsMoreToLooserArithmetic) {
  const auto error_with = [](const std::string& arithmetic, const std::string& dtype = "bf16") {
    const Call call("conv_forward x=" + dtype + ":1x64x1x1:nchw w=" + dtype + ":1x64x1x1:nchw " + arithmetic);
    return arithmetic_error(call.request, at(call.request, call.bindings(), Coordinate{0, 0, 0, 0}));
  };
  EXPECT_LT(error_with(""), 2e-4);
  EXPECT_GT(error_with("tf32"), 100 * error_with(""));
  EXPECT_GT(error_with("fast"), 10000 * error_with(""));
  EXPECT_EQ(error_with("fast", "f8e4m3"), error_with("", "f8e4m3")) << "sums of fp8 are in f32 whatever is permitted";
}

TEST(Tolerance, WantsTheSameKindOfSpecialValue) {
  Call call("pool_forward mode=max window=1,1 x=f32:1x1x1x4:nchw");
  call.set("x", {nan, infinity, -infinity, -0.0});
  const auto all = Oracle(call.request, call.bindings()).all();
  const auto right = [&](size_t i, double got) { return is_right(call.request, all[i], got); };
  EXPECT_TRUE(right(0, nan));
  EXPECT_FALSE(right(0, 0));
  EXPECT_TRUE(right(1, infinity));
  EXPECT_FALSE(right(1, -infinity));
  EXPECT_FALSE(right(1, std::numeric_limits<float>::max()));
  EXPECT_FALSE(right(2, nan));
  EXPECT_TRUE(right(3, 0.0));
  EXPECT_FALSE(right(3, nan));
}

TEST(Tolerance, LetsStorageOverflowWhereTheBoundReachesBeyondIt) {
  Call call("conv_forward x=f16:1x1x1x3:nchw w=f16:1x1x1x1:nchw");
  call.set("x", {65504, 32768, 32752}).set("w", {2});
  const auto all = Oracle(call.request, call.bindings()).all();
  EXPECT_TRUE(is_right(call.request, all[0], infinity));
  EXPECT_FALSE(is_right(call.request, all[0], 65504));
  EXPECT_TRUE(is_right(call.request, all[1], infinity));
  EXPECT_TRUE(is_right(call.request, all[2], 65504));
  EXPECT_FALSE(is_right(call.request, all[2], infinity));
}

TEST(Tolerance, IsOpenWhereSumsMayOverflowF32) {
  Call call("conv_forward x=f32:1x2x1x1:nchw w=f32:1x2x1x1:nchw");
  call.set("x", {3e38, 3e38}).set("w", {1, -1});
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0, 0, 0});
  EXPECT_EQ(arithmetic_error(call.request, expected), infinity);
  EXPECT_TRUE(is_right(call.request, expected, nan));
}

// (4095^2 + 90^2 + 9^2 + 3^2) 2^104 is the largest f32 number.
TEST(Tolerance, IsNotOpenWhereASumOfSquaresJustFits) {
  Call call("reduce x=f32:1x4 axes=1 mode=norm2");
  const auto may_overflow = [&](double last) {
    call.set("x", {4095 * 0x1p52, 90 * 0x1p52, 9 * 0x1p52, last * 0x1p52});
    return is_right(call.request, at(call.request, call.bindings(), Coordinate{0, 0}), infinity);
  };
  EXPECT_FALSE(may_overflow(3));
  EXPECT_TRUE(may_overflow(4));
}

// 2.85e38 + 1.69e38 is infinite in f32 although three quarters of it are not.
TEST(Tolerance, IsOpenWhereSumsMayOverflowBeforeTheyAreScaledDown) {
  Call call("conv_forward x=f32:1x3x1x1:nchw w=f32:1x3x1x1:nchw alpha=any");
  call.alpha = 0.75F;
  const auto is_right_for = [&](std::vector<double> x, double got) {
    call.set("x", std::move(x)).set("w", {1, 1, 1});
    return is_right(call.request, at(call.request, call.bindings(), Coordinate{0, 0, 0, 0}), got);
  };
  EXPECT_TRUE(is_right_for({2.85e38, 1.69e38, 0}, infinity));
  EXPECT_TRUE(is_right_for({2.85e38, 1.69e38, -infinity}, nan));
  EXPECT_TRUE(is_right_for({2.85e38, 1.69e38, -infinity}, -infinity));
  EXPECT_FALSE(is_right_for({2.85e38, 1.69e38, -infinity}, infinity));
  EXPECT_FALSE(is_right_for({1.69e38, 1.69e38, 0}, infinity));
  EXPECT_FALSE(is_right_for({1.69e38, 1.69e38, -infinity}, nan));
}

TEST(Tolerance, AcceptsSoftmaxInF32) {
  for (const bool log : {false, true}) {
    const Call call(std::string("softmax_forward x=f32:3x1000:nc axis=1 mode=") + (log ? "log" : "accurate"),
                    Values::wide);
    const auto x = read_all(call.request.at("x"), call.memory.at("x"));
    const auto expected = Oracle(call.request, call.bindings()).all();
    for (size_t row = 0; row < 3; ++row) {
      float largest = -std::numeric_limits<float>::infinity(), sum = 0;
      for (size_t i = 0; i < 1000; ++i) largest = std::max(largest, static_cast<float>(x[row * 1000 + i]));
      for (size_t i = 0; i < 1000; ++i) sum += std::exp(static_cast<float>(x[row * 1000 + i]) - largest);
      for (size_t i = row * 1000; i < (row + 1) * 1000; ++i) {
        const float distance = static_cast<float>(x[i]) - largest;
        const float got = log ? distance - std::log(sum) : std::exp(distance) / sum;
        EXPECT_TRUE(is_right(call.request, expected[i], got)) << i;
        if (std::fabs(got) > 1e-30F) {
          EXPECT_FALSE(is_right(call.request, expected[i], log ? got - 0.001F : 1.001F * got)) << i;
        }
      }
    }
  }
}

TEST(Compare, FindsNothingInAPerfectOutput) {
  for (const Values values : {Values::uniform, Values::specials, Values::integers}) {
    for (const char* dtype : {"f32", "f16", "bf16"}) {
      const Call call(std::string("conv_forward epilogue=bias+add+clip beta=1 pad=1,1 groups=2 x=") + dtype +
                          ":2x4x5x3:nhwc w=" + dtype + ":6x2x3x3:nhwc",
                      values);
      const auto mismatch = compare(call.request, call.bindings(), call.perfect_output());
      EXPECT_FALSE(mismatch) << mismatch->text();
    }
  }
}

TEST(Compare, CountsWrongOutputsAndShowsTheFirst) {
  Call call("conv_forward x=f32:1x1x4x8:nchw w=f32:2x1x1x1:nchw", Values::integers);
  call.set("w", {1, 1});
  auto output = call.perfect_output();
  const TensorSpec& y = call.request.at("y");
  for (const Coordinate& at : {Coordinate{0, 0, 3, 7}, Coordinate{0, 1, 0, 2}, Coordinate{0, 1, 1, 1}}) {
    write(y, output, at, read(y, output, at) + 1);
  }
  const auto mismatch = compare(call.request, call.bindings(), output);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->checked, 64);
  EXPECT_EQ(mismatch->wrong, 3);
  EXPECT_EQ(mismatch->coordinate, (Coordinate{0, 0, 3, 7}));
  EXPECT_EQ(mismatch->got, mismatch->expected.value + 1);
  EXPECT_THAT(mismatch->text(), testing::StartsWith("3 of 64 elements of y are wrong, first at (0,0,3,7): got "));
}

TEST(Compare, NoticesOneMissingTermOfALargeSum) {
  // Values::integers makes a tap that is left out show, where the bound for random values would hide it.
  Call call(large_conv, Values::integers);
  const auto output = call.perfect_output();
  const TensorSpec& w = call.request.at("w");
  const Coordinate tap{1, 200, 1, 1};
  write(w, call.memory["w"], tap, read(w, call.memory["w"], tap) + 1);
  EXPECT_TRUE(compare(call.request, call.bindings(), output));
}

TEST(Compare, LooksAtTheGivenCoordinatesOnly) {
  const Call call("softmax_forward x=f32:4x5:nc axis=1");
  auto output = call.perfect_output();
  write(call.request.at("y"), output, Coordinate{2, 3}, 7);
  const std::vector<Coordinate> elsewhere{{0, 0}, {2, 2}, {3, 4}}, there{{0, 0}, {2, 3}};
  EXPECT_FALSE(compare_at(call.request, call.bindings(), output, elsewhere));
  const auto mismatch = compare_at(call.request, call.bindings(), output, there);
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->checked, 2);
  EXPECT_EQ(mismatch->got, 7);
}

TEST(Compare, RefusesAnOutputThatIsTooSmall) {
  const Call call("softmax_forward x=f32:4x5:nc axis=1");
  EXPECT_THROW(compare(call.request, call.bindings(), std::vector<std::byte>(79)), Error);
}

TEST(Compare, TreatsAPoisonedOutputAsWrong) {
  const Call call("conv_forward x=f16:1x3x5x5:nchw w=f16:2x3x3x3:nchw");
  const auto mismatch = compare(call.request, call.bindings(), poisoned(call.request.at("y")));
  ASSERT_TRUE(mismatch);
  EXPECT_EQ(mismatch->wrong, mismatch->checked);
}

}  // namespace
}  // namespace kiln::reference::tolerance_test
