// The reference of pooling's gradient: by hand where the definition decides, and by central differences of the forward
// one.
#include "kiln/generator/operations/pool_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/generator/operations/pool_forward.h"

namespace kiln::reference::pool_backward_test {
namespace {

using testing::ElementsAre;

const double nan = std::nan("");
constexpr double infinity = std::numeric_limits<double>::infinity();

TEST(PoolBackwardOracle, GivesTheGradientToTheFirstOfEqualMaxima) {
  Call call("pool_backward dy=f32:1x1x1x1 x=f32:1x1x2x2 window=2");
  EXPECT_THAT(call.set("dy", {5}).set("x", {1, 3, 3, 2}).results(), ElementsAre(0, 5, 0, 0));
  EXPECT_THAT(call.set("x", {-infinity, -infinity, -infinity, -infinity}).results(), ElementsAre(5, 0, 0, 0));
}

TEST(PoolBackwardOracle, GivesTheGradientToTheLastNan) {
  Call call("pool_backward dy=f32:1x1x1x1 x=f32:1x1x1x4 window=1,4");
  EXPECT_THAT(call.set("dy", {5}).set("x", {1, nan, nan, infinity}).results(), ElementsAre(0, 0, 5, 0));
}

TEST(PoolBackwardOracle, AddsUpWhatOverlappingWindowsGive) {
  Call call("pool_backward dy=f32:1x1x1x3 x=f32:1x1x1x5 window=1,3");
  EXPECT_THAT(call.set("dy", {1, 10, 100}).set("x", {0, 1, 7, 2, 3}).results(), ElementsAre(0, 0, 111, 0, 0));
}

TEST(PoolBackwardOracle, SharesAnAverageAmongTheElementsThatItCounts) {
  const std::string operands = "pool_backward dy=f32:1x1x1x2 dx=f32:1x1x1x3 window=1,2 stride=1,2 pad=0,1,0,0 mode=";
  EXPECT_THAT(Call(operands + "avg").set("dy", {4, 8}).results(), ElementsAre(4, 4, 4));
  EXPECT_THAT(Call(operands + "avg_padded").set("dy", {4, 8}).results(), ElementsAre(2, 4, 4));
}

TEST(PoolBackwardOracle, PassesNothingOnFromWindowsInThePadding) {
  Call call("pool_backward dy=f32:1x1x1x3 x=f32:1x1x1x1 window=1 pad=0,1");
  EXPECT_THAT(call.set("dy", {3, 4, 5}).set("x", {7}).results(), ElementsAre(4));
}

TEST(PoolBackwardOracle, TakesIndicesInThePlaceOfX) {
  Call call("pool_backward dy=f32:1x1x1x3 indices=i32:1x1x1x3 dx=f32:1x1x2x4 window=2,2");
  // Window 0 names the last position of its own, window 1 one that is not its own, window 2 none.
  EXPECT_THAT(call.set("dy", {3, 4, 5}).set("indices", {5, 0, -1}).results(), ElementsAre(0, 0, 0, 0, 0, 3, 0, 0));
  // Two windows name one position.
  EXPECT_THAT(call.set("indices", {1, 1, 7}).results(), ElementsAre(0, 7, 0, 0, 0, 0, 0, 5));
}

TEST(UnpoolBackwardOracle, IsDyWhereIndicesOfTheWindowPoint) {
  Call call("unpool_backward dy=f32:1x1x2x4 indices=i32:1x1x1x3 window=2,2 alpha=any beta=any");
  call.set("dy", {1, 2, nan, infinity, 5, 6, 7, 8}).set("dx", {10, 20, 30});
  call.alpha = 2;
  call.beta = 1;
  EXPECT_THAT(call.set("indices", {5, 0, -1}).results(), ElementsAre(22, 20, 30));  // 0 is not of window 1
  EXPECT_THAT(call.set("indices", {1, 1, 3}).results(), ElementsAre(14, 24, infinity));
  EXPECT_THAT(call.set("indices", {8, -7, 2}).results(), ElementsAre(10, 20, testing::IsNan()));
}

TEST(PoolForwardOracle, GivesThePositionOfTheFirstMaximumOrTheLastNan) {
  Call call("pool_forward x=f32:1x1x2x4 indices=i32:1x1x1x3 window=2,2");
  call.set("x", {1, 3, nan, 0, 3, 2, nan, -infinity});
  EXPECT_THAT(evaluate(call.request, call.bindings(), "indices"), ElementsAre(1, 6, 6));
  call.set("x", {-infinity, -infinity, 5, 5, -infinity, -infinity, 5, 5});
  EXPECT_THAT(evaluate(call.request, call.bindings(), "indices"), ElementsAre(0, 2, 2));
}

TEST(PoolForwardOracle, GivesNoPositionWhereNothingIsInside) {
  Call call("pool_forward x=f32:1x1x1x1 indices=i32:1x1x1x3 window=1 pad=0,1");
  EXPECT_THAT(evaluate(call.request, call.bindings(), "indices"), ElementsAre(-1, 0, -1));
}

TEST(PoolBackwardOracle, AddsToWhatDxHeld) {
  Call call("pool_backward dy=f32:1x1x1x1 x=f32:1x1x1x2 window=1,2 alpha=any beta=any");
  call.set("dy", {5}).set("x", {1, 2}).set("dx", {100, 200});
  call.alpha = 2;
  call.beta = 0.5;
  EXPECT_THAT(call.results(), ElementsAre(50, 110));
}

class PoolBackwardDifferences : public testing::TestWithParam<const char*> {};

// d(sum of dy * y) / dx by moving one element of x after the other, in double.
TEST_P(PoolBackwardDifferences, AgreeWithTheReference) {
  Call call(GetParam());
  const PoolBackward pool = PoolBackward::of(call.request);
  PoolForward forward;
  static_cast<Pooling&>(forward) = pool;
  const std::string_view letters = pool.dx.rank() == 3 ? "ncw" : pool.dx.rank() == 4 ? "nchw" : "ncdhw";
  forward.x = TensorSpec::packed(DType::f32, pool.dx.extents, letters);
  forward.y = TensorSpec::packed(DType::f32, pool.dy.extents, letters);
  Call inner(forward.request().key());
  const std::vector<double> dy = read_all(pool.dy, call.memory["dy"]);
  // Whole numbers that differ from one another: no step changes which one is the maximum.
  std::vector<double> x(static_cast<size_t>(pool.dx.elements()));
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 37 % 1009);
  if (pool.mode == PoolMode::max) call.set("x", x);
  const std::vector<double> got = call.results();
  for (size_t i = 0; i < x.size(); ++i) {
    const auto loss_at = [&](double step) {
      std::vector<double> moved = x;
      moved[i] += step;
      const std::vector<double> y = inner.set("x", moved).results();
      double loss = 0;
      for (size_t j = 0; j < y.size(); ++j) loss += dy[j] * y[j];
      return loss;
    };
    ASSERT_NEAR(got[i], (loss_at(0.25) - loss_at(-0.25)) / 0.5, 1e-9) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, PoolBackwardDifferences,
    testing::Values("pool_backward dy=f32:2x3x3x4 x=f32:2x3x6x7 mode=max window=3,3 pad=1,1 stride=2,2",
                    "pool_backward dy=f32:1x2x4x6 dx=f32:1x2x5x8 mode=avg window=3,2 pad=1,0,0,0 dilation=1,2",
                    "pool_backward dy=f32:1x3x4x4 dx=f32:1x3x6x6 mode=avg_padded window=3 pad=1 stride=2",
                    "pool_backward dy=f32:2x3x5 x=f32:2x3x9 mode=max window=3 pad=1 stride=2",
                    "pool_backward dy=f32:2x3x7 dx=f32:2x3x9 mode=avg window=3",
                    "pool_backward dy=f32:1x2x2x3x2 x=f32:1x2x4x5x3 mode=max window=2,3,2 pad=0,1,0 stride=2,2,1",
                    "pool_backward dy=f32:1x2x3x2x3 dx=f32:1x2x4x3x4 mode=avg_padded window=2 stride=1",
                    "pool_backward dy=f32:2x3x1x1 dx=f32:2x3x3x5 mode=avg window=global",
                    "pool_backward dy=f32:2x3x1x1 x=f32:2x3x3x5 mode=max window=global"));

}  // namespace
}  // namespace kiln::reference::pool_backward_test
