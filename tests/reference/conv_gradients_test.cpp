// The gradients of convolution against central differences of the reference's forward convolution, in double; by hand;
// what the definitions leave open.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "call.h"
#include "kiln/reference/tolerance.h"

namespace kiln::reference::conv_gradients_test {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

/// A convolution y = conv(x, w), and the loss sum(y * dy) of given dy.
struct Loss {
  Call forward;
  std::vector<double> x, w, dy;

  explicit Loss(const std::string& line) : forward(line) {
    x = numbers("x", 0.37);
    w = numbers("w", 0.71);
    dy = numbers("y", 1.3);
  }

  std::vector<double> numbers(const std::string& operand, double step) const {
    std::vector<double> values(static_cast<size_t>(forward.request.at(operand).elements()));
    // Multiples of 1/64, which f32 holds, as it does their sums and differences here.
    for (size_t i = 0; i < values.size(); ++i) values[i] = std::round(64 * std::sin(step * double(i + 1))) / 64;
    return values;
  }

  double operator()() {
    const std::vector<double> y = forward.set("x", x).set("w", w).results();
    double sum = 0;
    for (size_t i = 0; i < y.size(); ++i) sum += y[i] * dy[i];
    return sum;
  }

  /// By element `i` of `values`: x or w. The loss is linear in each, so the difference is exact.
  double derivative(std::vector<double>& values, size_t i) {
    const double before = values[i];
    values[i] = before + 1;
    const double above = (*this)();
    values[i] = before - 1;
    const double below = (*this)();
    values[i] = before;
    return (above - below) / 2;
  }
};

struct Gradients {
  const char *forward, *data, *filter;
};

class ConvGradients : public testing::TestWithParam<Gradients> {};

TEST_P(ConvGradients, AreTheDerivativesOfTheForwardConvolution) {
  Loss loss(GetParam().forward);
  const std::vector<double> dx = Call(GetParam().data).set("dy", loss.dy).set("w", loss.w).results();
  ASSERT_EQ(dx.size(), loss.x.size());
  for (size_t i = 0; i < dx.size(); ++i) EXPECT_THAT(dx[i], DoubleNear(loss.derivative(loss.x, i), 1e-9)) << i;
  const std::vector<double> dw = Call(GetParam().filter).set("x", loss.x).set("dy", loss.dy).results();
  ASSERT_EQ(dw.size(), loss.w.size());
  for (size_t i = 0; i < dw.size(); ++i) EXPECT_THAT(dw[i], DoubleNear(loss.derivative(loss.w, i), 1e-9)) << i;
}

INSTANTIATE_TEST_SUITE_P(
    AwkwardShapes, ConvGradients,
    testing::Values(
        Gradients{"conv_forward x=f32:2x3x5x6 w=f32:4x3x3x2 pad=1,0,2,1 stride=2,1",
                  "conv_backward_data dy=f32:2x4x3x6 w=f32:4x3x3x2 dx=f32:2x3x5x6 pad=1,0,2,1 stride=2,1",
                  "conv_backward_filter x=f32:2x3x5x6 dy=f32:2x4x3x6 dw=f32:4x3x3x2 pad=1,0,2,1 stride=2,1"},
        Gradients{"conv_forward x=f32:1x4x7x5 w=f32:6x2x2x3 groups=2 dilation=3,2 stride=2,3 mode=convolution",
                  "conv_backward_data dy=f32:1x6x2x1 w=f32:6x2x2x3 dx=f32:1x4x7x5 groups=2 dilation=3,2 stride=2,3 "
                  "mode=convolution",
                  "conv_backward_filter x=f32:1x4x7x5 dy=f32:1x6x2x1 dw=f32:6x2x2x3 groups=2 dilation=3,2 stride=2,3 "
                  "mode=convolution"},
        Gradients{"conv_forward x=f32:1x2x3x2x4 w=f32:3x2x2x2x2 pad=1 stride=1,2,2",
                  "conv_backward_data dy=f32:1x3x4x2x3 w=f32:3x2x2x2x2 dx=f32:1x2x3x2x4 pad=1 stride=1,2,2",
                  "conv_backward_filter x=f32:1x2x3x2x4 dy=f32:1x3x4x2x3 dw=f32:3x2x2x2x2 pad=1 stride=1,2,2"}));

// Filters for each output, for each region of an uneven grid, and in other dimensions.
INSTANTIATE_TEST_SUITE_P(
    LocalFilters, ConvGradients,
    testing::Values(
        Gradients{"local_conv_forward x=f32:2x3x4x3 w=f32:12x3x3x2 pad=1,0,2,0 stride=2,1",
                  "local_conv_backward_data dy=f32:2x2x3x2 w=f32:12x3x3x2 dx=f32:2x3x4x3 pad=1,0,2,0 stride=2,1",
                  "local_conv_backward_filter x=f32:2x3x4x3 dy=f32:2x2x3x2 dw=f32:12x3x3x2 pad=1,0,2,0 stride=2,1"},
        Gradients{"local_conv_forward x=f32:1x4x7x6 w=f32:24x2x2x3 groups=2 dilation=3,2 mode=convolution grid=3,2",
                  "local_conv_backward_data dy=f32:1x4x4x2 w=f32:24x2x2x3 dx=f32:1x4x7x6 groups=2 dilation=3,2 "
                  "mode=convolution grid=3,2",
                  "local_conv_backward_filter x=f32:1x4x7x6 dy=f32:1x4x4x2 dw=f32:24x2x2x3 groups=2 dilation=3,2 "
                  "mode=convolution grid=3,2"},
        Gradients{"local_conv_forward x=f32:2x2x9 w=f32:12x2x3 pad=1 grid=4",
                  "local_conv_backward_data dy=f32:2x3x9 w=f32:12x2x3 pad=1 grid=4",
                  "local_conv_backward_filter x=f32:2x2x9 dy=f32:2x3x9 dw=f32:12x2x3 pad=1 grid=4"},
        Gradients{"local_conv_forward x=f32:1x2x3x2x4 w=f32:24x2x2x2x2 pad=1 stride=1,2,2 grid=3,2,2",
                  "local_conv_backward_data dy=f32:1x2x4x2x3 w=f32:24x2x2x2x2 dx=f32:1x2x3x2x4 pad=1 stride=1,2,2 "
                  "grid=3,2,2",
                  "local_conv_backward_filter x=f32:1x2x3x2x4 dy=f32:1x2x4x2x3 dw=f32:24x2x2x2x2 pad=1 stride=1,2,2 "
                  "grid=3,2,2"}));

TEST(LocalConvOracle, GivesEachOutputTheFiltersOfItsRegion) {
  Call call("local_conv_forward x=f32:1x1x5 w=f32:4x1x1 grid=2");
  EXPECT_THAT(call.set("x", {1, 2, 3, 4, 5}).set("w", {1, 10, 100, 1000}).results(),
              ElementsAre(1, 2, 3, 400, 500, 10, 20, 30, 4000, 5000));
}

TEST(LocalConvOracle, IsTheConvolutionWhereThereIsOneRegion) {
  Call shared("conv_forward x=f32:2x4x5x6 w=f32:6x2x3x3 groups=2 pad=1"),
      local("local_conv_forward x=f32:2x4x5x6 w=f32:6x2x3x3 groups=2 pad=1 grid=1");
  EXPECT_EQ(local.results(), shared.results());
}

// Where the filters of regions stand changes nothing: as Keras has them, K innermost, or in a larger tensor.
TEST(LocalConvOracle, IsTheSameWhereRegionsAreADimension) {
  const auto expect_same = [](const std::string& line, const std::string& merged, const std::string& apart) {
    Call call(line + merged), other(line + apart);
    for (const Operand& operand : call.request.operands) {
      std::vector<double> elements;
      for_each_coordinate(operand.spec, [&](std::span<const int64_t> at) {
        elements.push_back(read(operand.spec, call.memory.at(operand.name), at));
      });
      other.set(operand.name, elements);
    }
    EXPECT_EQ(other.results(), call.results()) << line << apart;
  };
  const std::string
      forward = "local_conv_forward x=f32:2x4x5x6 groups=2 pad=1 mode=convolution grid=3,2 w=f32:",
      data = "local_conv_backward_data dy=f32:2x6x5x6 groups=2 pad=1 grid=3,2 w=f32:",
      filter = "local_conv_backward_filter x=f32:2x4x5x6 dy=f32:2x6x5x6 groups=2 pad=1 grid=3,2 beta=1 dw=f32:";
  for (const std::string& line : {forward, data, filter}) {
    expect_same(line, "36x2x3x3", "6x6x2x3x3");
    expect_same(line, "36x2x3x3", "6x6x2x3x3:108,1,6,36,12");
    expect_same(line, "36x2x3x3", "6x6x2x3x3:1001,20,10,3,1");
  }
  expect_same("local_conv_forward x=f32:1x2x9 w=f32:", "27x2x3 pad=1", "9x3x2x3:1,54,27,9 pad=1");
  expect_same("local_conv_backward_data dy=f32:1x3x2x3x4 grid=2,1,4 w=f32:", "24x2x2x1x2",
              "8x3x2x2x1x2:4,200,1,50,9,100");
  expect_same("local_conv_backward_filter x=f32:1x2x3x3x5 dy=f32:1x3x2x3x4 grid=2,1,4 dw=f32:", "24x2x2x1x2",
              "8x3x2x2x1x2:4,200,1,50,9,100");
}

TEST(LocalConvBackwardDataOracle, KnowsNoFilterForAnOutputThatDoesNotExist) {
  Call call("local_conv_backward_data dy=f32:1x1x1x2 w=f32:2x1x1x2 dx=f32:1x1x1x3");
  const double infinity = std::numeric_limits<double>::infinity();
  call.set("dy", {1, 1}).set("w", {1, infinity, infinity, 2});
  EXPECT_THAT(call.results(), ElementsAre(1, infinity, 2));
}

TEST(LocalConvBackwardFilterOracle, GivesAnEmptySumForAnEmptyBatch) {
  Call call("local_conv_backward_filter x=f32:0x1x1x2 dy=f32:0x1x1x2 dw=f32:2x1x1x1 beta=1");
  EXPECT_THAT(call.set("dw", {5, 6}).results(), ElementsAre(5, 6));
}

TEST(ConvBackwardDataOracle, SpreadsOutputsOverTheTapsThatMadeThem) {
  Call call("conv_backward_data dy=f32:1x1x1x2 w=f32:1x1x1x2 stride=1,2 output_pad=0,1 beta=any");
  call.beta = 10;
  EXPECT_THAT(call.set("dy", {1, 2}).set("w", {3, 4}).set("dx", {0, 0, 0, 0, 1}).results(),
              ElementsAre(3, 4, 6, 8, 10));
}

TEST(ConvBackwardDataOracle, LeavesInfiniteWeightsOpenWhereTheirOutputDoesNotExist) {
  Call call("conv_backward_data dy=f32:1x1x1x2 w=f32:1x1x1x2");
  call.set("dy", {1, 1}).set("w", {1, std::numeric_limits<double>::infinity()});
  const Oracle oracle(call.request, call.bindings());
  EXPECT_TRUE(oracle.at(Coordinate{0, 0, 0, 0}).unspecified);
  EXPECT_FALSE(oracle.at(Coordinate{0, 0, 0, 1}).unspecified);
}

TEST(ConvBackwardFilterOracle, LeavesInfiniteGradientsOpenWhereTheyMeetPadding) {
  Call call("conv_backward_filter x=f32:1x1x1x2 dy=f32:1x1x1x2 dw=f32:1x1x1x3 pad=0,1");
  call.set("x", {1, 1}).set("dy", {std::numeric_limits<double>::infinity(), 1});
  const Oracle oracle(call.request, call.bindings());
  EXPECT_TRUE(oracle.at(Coordinate{0, 0, 0, 0}).unspecified);
  EXPECT_FALSE(oracle.at(Coordinate{0, 0, 0, 1}).unspecified);
}

TEST(ConvBackwardFilterOracle, GivesAnEmptySumForAnEmptyBatch) {
  Call call("conv_backward_filter x=f32:0x1x1x2 dy=f32:0x1x1x2 dw=f32:1x1x1x1 beta=1");
  EXPECT_THAT(call.set("dw", {5}).results(), ElementsAre(5));
}

// A bias is added to every pixel of its channel, so a step of one of its elements moves the loss by what is exact here.
TEST(ConvBackwardBiasOracle, IsTheDerivativeByTheBias) {
  for (const char* line :
       {"conv_forward x=f32:2x2x5 w=f32:3x2x2 epilogue=bias", "conv_forward x=f32:2x2x4x3 w=f32:3x2x2x2 epilogue=bias",
        "conv_forward x=f32:1x2x3x3x4 w=f32:2x2x2x2x2 epilogue=bias"}) {
    Loss loss(line);
    std::vector<double> bias = loss.numbers("bias", 0.53);
    std::string extents;
    for (const int64_t extent : loss.forward.request.at("y").extents)
      extents += (extents.empty() ? "" : "x") + std::to_string(extent);
    const std::vector<double> db = Call("conv_backward_bias dy=f32:" + extents).set("dy", loss.dy).results();
    for (size_t k = 0; k < bias.size(); ++k) {
      double at[2];
      for (const int side : {0, 1}) {
        std::vector<double> moved = bias;
        moved[k] += side == 0 ? -1 : 1;
        loss.forward.set("bias", moved);
        at[side] = loss();
      }
      EXPECT_NEAR(db[k], (at[1] - at[0]) / 2, 1e-12) << line << " " << k;
    }
  }
}

TEST(ConvBackwardBiasOracle, SumsEachChannelByItsStrides) {
  Call call("conv_backward_bias dy=f32:2x2x1x2:nhwc alpha=any");
  call.alpha = 0.5;
  EXPECT_THAT(call.set("dy", {1, 2, 10, 20, 4, 8, 40, 80}).results(), ElementsAre(7.5, 75));
}

}  // namespace
}  // namespace kiln::reference::conv_gradients_test
