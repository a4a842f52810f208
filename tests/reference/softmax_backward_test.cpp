// The reference of softmax's gradient: by hand, and by central differences of the forward one.
#include "kiln/generator/operations/softmax_backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::softmax_backward_test {
namespace {

using testing::DoubleNear;
using testing::Each;
using testing::ElementsAre;
using testing::IsNan;

TEST(SoftmaxBackwardOracle, IsTheFormulaOfEachMode) {
  Call accurate("softmax_backward y=f32:2x2");
  accurate.set("y", {0.25, 0.75, 2, 3}).set("dy", {4, 8, 1, -1});
  EXPECT_THAT(accurate.results(), ElementsAre(0.25 * (4 - 7), 0.75 * (8 - 7), 2.0 * (1 + 1), 3.0 * (-1 + 1)));
  Call log("softmax_backward y=f32:1x2 mode=log");
  log.set("y", {0, -std::numeric_limits<double>::infinity()}).set("dy", {4, 8});
  EXPECT_THAT(log.results(), ElementsAre(4 - 12, 8));
}

TEST(SoftmaxBackwardOracle, BlendsWithDx) {
  Call call("softmax_backward y=f32:1x1 alpha=any beta=any");
  call.set("y", {2}).set("dy", {3}).set("dx", {100});
  call.alpha = 2;
  call.beta = 0.5;
  EXPECT_THAT(call.results(), ElementsAre(2 * 2 * (3 - 6) + 50));
}

TEST(SoftmaxBackwardOracle, ANanMakesItsRowNanAndNoOther) {
  Call call("softmax_backward y=f32:2x3");
  call.set("y", {0.5, std::nan(""), 0.5, 1, 0, 0}).set("dy", {1, 2, 3, 4, 5, 6});
  const std::vector<double> dx = call.results();
  EXPECT_THAT(std::vector(dx.begin(), dx.begin() + 3), Each(IsNan()));
  EXPECT_THAT(std::vector(dx.begin() + 3, dx.end()), ElementsAre(0, 0, 0));
}

// A factor of nearly 0 does not hide a sum that f32 cannot hold.
TEST(SoftmaxBackwardOracle, GrantsWhatOverflowsOnTheWay) {
  Call call("softmax_backward y=f32:1x3");
  call.set("y", {1e-30, 3e38, 1}).set("dy", {1, 3e38, 1});
  const Expected expected = at(call.request, call.bindings(), Coordinate{0, 0});
  EXPECT_TRUE(std::isfinite(expected.value));
  EXPECT_TRUE(is_right(call.request, expected, -std::numeric_limits<double>::infinity()));
}

// An error of the sum counts as often as y takes it.
TEST(SoftmaxBackwardOracle, AllowsLittleWhereYIsSmall) {
  Call call("softmax_backward y=f32:1x3");
  call.set("y", {0x1p-20, 0.3, 0.7}).set("dy", {0.3, 0.7, 0.9});
  const auto allowed = [&](int64_t i) {
    return bound(call.request, at(call.request, call.bindings(), Coordinate{0, i}));
  };
  EXPECT_LT(allowed(0), 16 * 0x1p-24 * 0x1p-20);
  EXPECT_GT(allowed(0), 0);
  EXPECT_LT(allowed(2), 16 * 0x1p-24);
}

class SoftmaxBackwardDifferences : public testing::TestWithParam<const char*> {};

// d(sum of dy * y) / dx by moving one element of x after the other, in double.
TEST_P(SoftmaxBackwardDifferences, AgreeWithTheReference) {
  Call call(GetParam());
  const SoftmaxBackward softmax = SoftmaxBackward::of(call.request);
  SoftmaxForward forward;
  forward.x = TensorSpec::packed(DType::f32, softmax.y.extents, "nchw");
  forward.axis = softmax.axis;
  forward.mode = softmax.mode;
  Call inner(forward.request().key());
  const std::vector<double> dy = read_all(softmax.dy, call.memory["dy"]), x = read_all(forward.x, inner.memory["x"]);
  call.set("y", inner.results());
  const std::vector<double> got = call.results();
  for (size_t i = 0; i < x.size(); ++i) {
    constexpr double step = 0x1p-10;  // x stays exact in f32: only its first 24 bits are kept
    const auto loss_at = [&](double moved_by) {
      std::vector<double> moved = x;
      moved[i] = static_cast<float>(x[i]) + moved_by;
      const std::vector<double> y = inner.set("x", moved).results();
      double loss = 0;
      for (size_t j = 0; j < y.size(); ++j) loss += dy[j] * y[j];
      return loss;
    };
    ASSERT_THAT(got[i], DoubleNear((loss_at(step) - loss_at(-step)) / (2 * step), 2e-5)) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, SoftmaxBackwardDifferences,
                         testing::Values("softmax_backward y=f32:2x3x2x2 axis=1",
                                         "softmax_backward y=f32:2x3x2x2 axis=3",
                                         "softmax_backward y=f32:2x5x1x3 axis=1 mode=log",
                                         "softmax_backward y=f32:3x2x2x1:nhwc dy=f32:3x2x2x1:nchw axis=0 mode=log"));

}  // namespace
}  // namespace kiln::reference::softmax_backward_test
