// Definitions of operations, on cases small enough to be worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/base/error.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::oracle_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsNan;
using testing::NanSensitiveDoubleEq;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

/// 1x1 convolution of 1 x 1 x 1 x 4: y = 2 * x, then the blend and epilogue of `rest`.
Call doubling(const std::string& rest, const std::vector<double>& x) {
  Call call("conv_forward x=f32:1x1x1x4:nchw w=f32:1x1x1x1:nchw " + rest);
  return call.set("x", x).set("w", {2});
}

TEST(ConvOracle, CorrelatesAndConvolvesWithTheFilterMirrored) {
  const std::string operands = "conv_forward x=f32:1x1x1x3:nchw w=f32:1x1x1x2:nchw ";
  EXPECT_THAT(Call(operands).set("x", {1, 2, 3}).set("w", {10, 1}).results(), ElementsAre(12, 23));
  EXPECT_THAT(Call(operands + "mode=convolution").set("x", {1, 2, 3}).set("w", {10, 1}).results(), ElementsAre(21, 32));
}

TEST(ConvOracle, MirrorsBothDimensions) {
  Call call("conv_forward x=f32:1x1x2x2:nchw w=f32:1x1x2x2:nchw mode=convolution");
  EXPECT_THAT(call.set("x", {1, 2, 3, 4}).set("w", {1000, 100, 10, 1}).results(), ElementsAre(4321));
}

TEST(ConvOracle, GivesEachGroupItsOwnChannels) {
  Call call("conv_forward x=f32:1x4x1x1:nchw w=f32:2x2x1x1:nchw groups=2");
  EXPECT_THAT(call.set("x", {1, 2, 3, 4}).set("w", {1, 10, 100, 1000}).results(), ElementsAre(21, 4300));
}

TEST(ConvOracle, ReadsOperandsByTheirStrides) {
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8}, w{1, 10};
  Call nchw("conv_forward x=f32:1x2x2x2:nchw w=f32:1x2x1x1:nchw");
  Call nhwc("conv_forward x=f16:1x2x2x2:nhwc w=f16:1x2x1x1:nhwc");
  Call region("conv_forward x=f32:1x2x2x2:1000,1,50,7 w=f32:1x2x1x1:9,3,1,1 y=f32:1x1x2x2:nchw");
  for (Call* call : {&nchw, &nhwc, &region}) {
    EXPECT_THAT(call->set("x", x).set("w", w).results(), ElementsAre(51, 62, 73, 84)) << call->request.key();
  }
}

TEST(ConvOracle, SumsToZeroWhereTheFilterSeesOnlyPadding) {
  Call call("conv_forward x=f32:1x1x1x1:nchw w=f32:1x1x1x1:nchw pad=1,1");
  EXPECT_THAT(call.set("x", {5}).set("w", {3}).results(), ElementsAre(0, 0, 0, 0, 15, 0, 0, 0, 0));
}

TEST(ConvOracle, KeepsNanAndInfinities) {
  EXPECT_THAT(doubling("", {nan, infinity, -infinity, -0.0}).results(), ElementsAre(IsNan(), infinity, -infinity, 0));
  Call cancelling("conv_forward x=f32:1x2x1x1:nchw w=f32:1x2x1x1:nchw");
  EXPECT_THAT(cancelling.set("x", {infinity, infinity}).set("w", {1, -1}).results(), ElementsAre(IsNan()));
}

TEST(ConvOracle, LeavesInfiniteWeightsOnPaddingOpen) {
  Call call("conv_forward x=f32:1x1x1x2:nchw w=f32:1x1x1x3:nchw pad=0,1");
  call.set("x", {1, 1}).set("w", {infinity, 1, 1});
  const Oracle oracle(call.request, call.bindings());
  EXPECT_TRUE(oracle.at(Coordinate{0, 0, 0, 0}).unspecified);
  EXPECT_FALSE(oracle.at(Coordinate{0, 0, 0, 1}).unspecified);
  EXPECT_EQ(oracle.at(Coordinate{0, 0, 0, 1}).value, infinity);
}

TEST(ConvOracle, ComputesNothingForAlphaZero) {
  EXPECT_THAT(doubling("alpha=0", {nan, infinity, 1, 2}).results(), ElementsAre(0, 0, 0, 0));
}

TEST(ConvOracle, AcceptsNanWhereF32OverflowsAgainstAnInfinity) {
  // 2e38 * 4 overflows to +inf in f32; the definition adds it to -inf in full.
  Call call("conv_forward x=f32:1x2x1x1:nchw w=f32:1x2x1x1:nchw");
  call.set("x", {2e38, -infinity}).set("w", {4, 1});
  const Expected expected = Oracle(call.request, call.bindings()).at(Coordinate{0, 0, 0, 0});
  EXPECT_EQ(expected.value, -infinity);
  EXPECT_TRUE(is_right(call.request, expected, nan));
  EXPECT_TRUE(is_right(call.request, expected, -infinity));
  EXPECT_FALSE(is_right(call.request, expected, infinity));
  call.set("x", {1, -infinity});
  EXPECT_FALSE(is_right(call.request, Oracle(call.request, call.bindings()).at(Coordinate{0, 0, 0, 0}), nan));
}

TEST(ConvOracle, BlendsBeforeTheEpilogue) {
  Call call = doubling("alpha=any beta=any epilogue=bias+relu", {1, 2, 3, -4});
  call.alpha = 0.5;
  call.beta = 10;
  call.set("y", {1, 1, -1, 0}).set("bias", {0.25});
  EXPECT_THAT(call.results(), ElementsAre(11.25, 12.25, 0, 0));
}

TEST(ConvOracle, AppliesStagesInTheOrderWritten) {
  Call add_first = doubling("epilogue=add+relu", {1, 2, -3, 4}),
       relu_first = doubling("epilogue=relu+add", {1, 2, -3, 4});
  for (Call* call : {&add_first, &relu_first}) {
    call->set("residual", {1, -9, 4, 0});
  }
  EXPECT_THAT(add_first.results(), ElementsAre(3, 0, 0, 8));
  EXPECT_THAT(relu_first.results(), ElementsAre(3, -5, 4, 8));
}

TEST(ConvOracle, ClipsBetweenTheBoundsOfTheCall) {
  Call call = doubling("epilogue=clip", {-5, 0.25, 1, 9});
  call.clip_lo = -1;
  call.clip_hi = 6;
  EXPECT_THAT(call.results(), ElementsAre(-1, 0.5, 2, 6));
}

TEST(ConvOracle, KeepsNanThroughReluAndClipAndBoundsInfinities) {
  EXPECT_THAT(doubling("epilogue=relu", {nan, infinity, -infinity, -1}).results(),
              ElementsAre(IsNan(), infinity, 0, 0));
  Call call = doubling("epilogue=clip", {nan, infinity, -infinity, 1});
  call.clip_hi = 6;
  EXPECT_THAT(call.results(), ElementsAre(IsNan(), 6, -1, 2));
}

TEST(ConvOracle, NeverReadsYWhenBetaIsZero) {
  Call call = doubling("", {1, 2, 3, 4});
  call.beta = 1;
  call.set("y", {nan, nan, nan, nan});
  EXPECT_THAT(call.results(), ElementsAre(2, 4, 6, 8));
  call.memory.erase("y");
  EXPECT_THAT(call.results(), ElementsAre(2, 4, 6, 8));
}

TEST(ConvOracle, ReadsYWhenBetaMayBeAnythingEvenIfItsValueIsZero) {
  Call call = doubling("beta=any", {1, 2, 3, 4});
  call.set("y", {nan, 1, infinity, 0});
  EXPECT_THAT(call.results(), ElementsAre(IsNan(), 4, IsNan(), 8));
}

TEST(ConvOracle, AddsYOnceWhenBetaIsOne) {
  Call call = doubling("beta=1", {1, 2, 3, 4});
  call.beta = 77;
  call.set("y", {10, 20, 30, 40});
  EXPECT_THAT(call.results(), ElementsAre(12, 24, 36, 48));
}

TEST(ConvOracle, ServesEveryBatchOfADynamicRequest) {
  Call call("conv_forward x=f32:4x1x1x1:nchw w=f32:1x1x1x1:nchw n=?");
  call.set("x", {1, 2, 3, 4}).set("w", {10});
  EXPECT_THAT(call.results(), ElementsAre(10, 20, 30, 40));
  call.n = 3;
  EXPECT_THAT(call.results(), ElementsAre(10, 20, 30));
  call.n = 0;
  EXPECT_THAT(call.results(), ElementsAre());
  call.n = 5;
  EXPECT_THROW(call.results(), Error);
}

TEST(ConvOracle, GivesNothingForAnEmptyBatch) {
  EXPECT_THAT(Call("conv_forward x=f32:0x3x4x4:nchw w=f32:2x3x3x3:nchw").results(), ElementsAre());
}

TEST(PoolOracle, TakesTheLargestElementAndKeepsNan) {
  Call call("pool_forward x=f32:1x1x1x5:nchw mode=max window=1,2 stride=1,1");
  EXPECT_THAT(call.set("x", {-infinity, -infinity, nan, 3, infinity}).results(),
              ElementsAre(-infinity, IsNan(), IsNan(), infinity));
}

TEST(PoolOracle, GivesMinusInfinityWhereAMaximumHasNoElements) {
  Call call("pool_forward x=f32:1x1x1x1:nchw mode=max window=1,1 pad=0,1");
  EXPECT_THAT(call.set("x", {2}).results(), ElementsAre(-infinity, 2, -infinity));
}

TEST(PoolOracle, AveragesOverTheElementsInside) {
  Call call("pool_forward x=f32:1x1x1x3:nchw mode=avg window=1,3 pad=0,1");
  EXPECT_THAT(call.set("x", {1, 2, 6}).results(), ElementsAre(1.5, 3, 4));
}

TEST(PoolOracle, AveragesOverTheWindowWithItsPadding) {
  Call call("pool_forward x=f32:1x1x1x3:nchw mode=avg_padded window=1,3 pad=0,1");
  EXPECT_THAT(call.set("x", {1, 2, 6}).results(), ElementsAre(1, 3, 8.0 / 3));
}

TEST(PoolOracle, GivesZeroWhereAnAverageHasNoElements) {
  Call call("pool_forward x=f32:1x1x1x1:nchw mode=avg window=1,1 pad=0,1");
  EXPECT_THAT(call.set("x", {2}).results(), ElementsAre(0, 2, 0));
}

TEST(PoolOracle, RoundsUpInCeilModeAndClipsTheLastWindow) {
  // torch.nn.functional.max_pool2d and avg_pool2d(ceil_mode=True) of 1..6, window 3, stride 2 give these values.
  const std::string rest = " x=f32:1x1x1x6:nchw window=1,3 stride=1,2 ceil=1";
  const std::vector<double> x{1, 2, 3, 4, 5, 6};
  EXPECT_THAT(Call("pool_forward mode=max" + rest).set("x", x).results(), ElementsAre(3, 5, 6));
  EXPECT_THAT(Call("pool_forward mode=avg" + rest).set("x", x).results(), ElementsAre(2, 4, 5.5));
  EXPECT_THAT(Call("pool_forward mode=avg_padded" + rest).set("x", x).results(), ElementsAre(2, 4, 5.5));
}

TEST(PoolOracle, CountsPaddingButNotWhatCeilModeAddsBeyondIt) {
  // torch's avg_pool2d(window 4, stride 3, padding 1, ceil_mode=True, count_include_pad=True): the last window holds 6
  // and one element of padding; its other two lie beyond the padding.
  Call call("pool_forward mode=avg_padded x=f32:1x1x1x6:nchw window=1,4 stride=1,3 pad=0,1 ceil=1");
  EXPECT_THAT(call.set("x", {1, 2, 3, 4, 5, 6}).results(), ElementsAre(1.5, 4.5, 3));
}

TEST(PoolOracle, DropsTheLastWindowThatWouldStartInThePadding) {
  Call call("pool_forward mode=max x=f32:1x1x1x3:nchw window=1,1 stride=1,3 pad=0,1 ceil=1");
  EXPECT_EQ(call.request.at("y").extents[3], 2);
  EXPECT_THAT(call.set("x", {1, 2, 3}).results(), ElementsAre(-infinity, 3));
}

TEST(PoolOracle, SkipsElementsByDilation) {
  Call call("pool_forward mode=avg x=f32:1x1x1x5:nchw window=1,2 dilation=1,3");
  EXPECT_THAT(call.set("x", {1, 2, 3, 4, 8}).results(), ElementsAre(2.5, 5));
}

TEST(PoolOracle, BlendsWithWhatYHeld) {
  Call call("pool_forward mode=max x=f32:1x1x1x2:nchw window=1,1 alpha=any beta=1");
  call.alpha = -2;
  EXPECT_THAT(call.set("x", {1, 2}).set("y", {10, 20}).results(), ElementsAre(8, 16));
}

TEST(SoftmaxOracle, NormalisesEachRow) {
  Call call("softmax_forward x=f32:2x2:nc axis=1");
  const double e = std::exp(1);
  EXPECT_THAT(call.set("x", {0, 1, 5, 5}).results(),
              ElementsAre(DoubleNear(1 / (1 + e), 1e-15), DoubleNear(e / (1 + e), 1e-15), 0.5, 0.5));
}

TEST(SoftmaxOracle, StaysFiniteForLargeInputs) {
  EXPECT_THAT(Call("softmax_forward x=f32:1x2:nc axis=1").set("x", {1e30, 1e30}).results(), ElementsAre(0.5, 0.5));
  EXPECT_THAT(Call("softmax_forward x=f32:1x2:nc axis=1 mode=log").set("x", {0, -1e4}).results(), ElementsAre(0, -1e4));
}

TEST(SoftmaxOracle, MakesRowsWithNanOrInfinityNanThroughout) {
  for (const char* mode : {"accurate", "log"}) {
    Call call(std::string("softmax_forward x=f32:3x2:nc axis=1 mode=") + mode);
    EXPECT_THAT(call.set("x", {nan, 1, infinity, 1, -infinity, -infinity}).results(), testing::Each(IsNan())) << mode;
  }
}

TEST(SoftmaxOracle, GivesMinusInfinityNoShare) {
  EXPECT_THAT(Call("softmax_forward x=f32:1x2:nc axis=1").set("x", {-infinity, 3}).results(), ElementsAre(0, 1));
  EXPECT_THAT(Call("softmax_forward x=f32:1x2:nc axis=1 mode=log").set("x", {-infinity, 3}).results(),
              ElementsAre(-infinity, 0));
}

TEST(Oracle, GivesTheSameOneByOneAsAllTogether) {
  for (const char* line :
       {"softmax_forward x=f16:3x5x2x2:nhwc axis=1 alpha=any beta=any", "softmax_forward x=f32:4x3:nc axis=0 mode=log",
        "pool_forward x=bf16:2x3x5x4:nhwc mode=avg window=3,3 pad=1,1",
        "conv_forward x=f16:2x4x5x3:nhwc w=f16:6x2x3x2:nchw groups=2 pad=1,1 epilogue=bias+add+clip"}) {
    const Call call(line, Values::specials);
    const Oracle oracle(call.request, call.bindings());
    const std::vector<Expected> all = oracle.all();
    size_t i = 0;
    for_each_coordinate(oracle.output(), [&](std::span<const int64_t> at) {
      const Expected one = oracle.at(at);
      EXPECT_THAT(one.value, NanSensitiveDoubleEq(all[i].value)) << line;
      EXPECT_THAT(one.magnitude, NanSensitiveDoubleEq(all[i].magnitude)) << line;
      ++i;
    });
    EXPECT_EQ(i, all.size());
  }
}

TEST(Oracle, NamesTheOperandThatIsMissingOrTooSmall) {
  Call call("conv_forward x=f32:1x1x2x2:nchw w=f32:1x1x1x1:nchw epilogue=bias");
  call.memory["x"].pop_back();
  try {
    call.results();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.message(), testing::HasSubstr("operand 'x'"));
    EXPECT_THAT(error.message(), testing::HasSubstr("needs 16 bytes, but 15"));
  }
  Call without_bias("conv_forward x=f32:1x1x2x2:nchw w=f32:1x1x1x1:nchw epilogue=bias");
  without_bias.memory.erase("bias");
  EXPECT_THROW(without_bias.results(), Error);
}

TEST(SampleCoordinates, StartWithTheCornersAndNeverRepeat) {
  const TensorSpec spec = TensorSpec::packed(DType::f32, {3, 64, 100, 100}, "nchw");
  const auto sample = sample_coordinates(spec, 200, 5);
  EXPECT_EQ(sample.size(), 200u);
  EXPECT_EQ((std::set<Coordinate>(sample.begin(), sample.end()).size()), 200u);
  EXPECT_THAT(sample, testing::Contains(ElementsAre(0, 0, 0, 0)));
  EXPECT_THAT(sample, testing::Contains(ElementsAre(2, 63, 99, 99)));
  EXPECT_EQ(sample, sample_coordinates(spec, 200, 5));
  EXPECT_NE(sample, sample_coordinates(spec, 200, 6));
}

TEST(SampleCoordinates, AreAllOfASmallTensor) {
  const auto sample = sample_coordinates(TensorSpec::packed(DType::f32, {2, 2}, "nc"), 100, 5);
  EXPECT_THAT(sample, ElementsAre(ElementsAre(0, 0), ElementsAre(0, 1), ElementsAre(1, 0), ElementsAre(1, 1)));
  EXPECT_TRUE(sample_coordinates(TensorSpec::packed(DType::f32, {0, 2}, "nc"), 100, 5).empty());
}

}  // namespace
}  // namespace kiln::reference::oracle_test
