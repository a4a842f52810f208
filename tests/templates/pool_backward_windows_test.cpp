// The gradients of pooling by large windows, axis by axis, and of maxima of windows that do not overlap: against the
// reference on shapes that are awkward in a few ways each; against gathering where maxima are equal, infinite or no
// numbers; refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support::pool_backward_windows_test {
namespace {

const std::vector<std::string> separable = {"pool_backward_separable"}, scatter = {"pool_backward_scatter"};

class PoolBackwardSeparable : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(PoolBackwardSeparable, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Maxima, PoolBackwardSeparable,
    testing::Values(
        AlgorithmCase{"Overlapping", "pool_backward dy=f32:2x3x7x9 x=f32:2x3x11x13 window=5", separable},
        AlgorithmCase{"SamePads", "pool_backward dy=f16:2x3x13x7 x=f16:2x3x13x7 window=13,5 pad=6,2", separable},
        AlgorithmCase{"Strides", "pool_backward dy=bf16:1x5x7x3 x=bf16:1x5x17x16 window=7,9 pad=1,0 stride=2,3 beta=1",
                      separable},
        AlgorithmCase{"Dilation", "pool_backward dy=f32:1x3x15x9 x=f32:1x3x19x17 window=4,5 dilation=2,3 pad=1,2",
                      separable},
        AlgorithmCase{"WindowsInPadding", "pool_backward dy=f32:1x3x14x16 x=f32:1x3x4x4 window=5,3 pad=7", separable},
        AlgorithmCase{"Global", "pool_backward dy=f32:3x5x1x1 x=f32:3x5x9x11 window=global", separable},
        AlgorithmCase{"ApartWindows", "pool_backward dy=f16:2x8x2x1:nhwc x=f16:2x8x21x11:nhwc window=9,8 stride=10",
                      separable},
        AlgorithmCase{"Channels", "pool_backward dy=f16:2x16x5x9:nhwc x=f16:2x16x9x13:nhwc window=5 alpha=any beta=any",
                      separable},
        AlgorithmCase{"OddChannels", "pool_backward dy=bf16:2x7x5x9:nhwc x=bf16:2x7x9x13:nhwc dx=f32:2x7x9x13 window=5",
                      separable},
        AlgorithmCase{"Regions",
                      "pool_backward dy=f32:2x3x3x6:200,60,13,2 x=f32:2x3x5x8:300,90,12,1 dx=f32:2x3x5x8:400,100,16,2 "
                      "window=3",
                      separable},
        AlgorithmCase{"RegionsOfChannels",
                      "pool_backward dy=f16:2x8x5x6:800,1,120,16 x=f16:2x8x9x10:4000,1,400,24 "
                      "dx=f16:2x8x9x10:2000,1,200,16 window=5",
                      separable},
        AlgorithmCase{"RegionsOfRows",
                      "pool_backward dy=bf16:2x3x3x6:200,60,13,2 x=bf16:2x3x5x8:300,90,12,1 "
                      "dx=bf16:2x3x5x8:400,100,16,2 window=3",
                      separable},
        AlgorithmCase{"MixedLayouts",
                      "pool_backward dy=f16:2x8x5x4:nchw x=bf16:2x8x9x8:nhwc dx=f32:2x8x9x8:nchw window=5", separable},
        AlgorithmCase{"AnyBatch", "pool_backward dy=f32:3x3x7x7 x=f32:3x3x11x11 window=5 n=?", separable},
        AlgorithmCase{"EmptyBatch", "pool_backward dy=f32:0x3x7x7 x=f32:0x3x11x11 window=5", separable},
        AlgorithmCase{"Volume", "pool_backward dy=f32:1x3x4x5x4 x=f32:1x3x7x6x8 window=4,2,5", separable},
        AlgorithmCase{"VolumeOfChannels",
                      "pool_backward dy=f16:1x8x3x2x2:ndhwc x=f16:1x8x5x8x7:ndhwc window=3,4,7 pad=1 stride=2 "
                      "dilation=1,2,1 beta=any",
                      separable},
        AlgorithmCase{"PlanesApart", "pool_backward dy=f32:2x3x2x5x5 x=f32:2x3x4x8x8 window=1,4,4 stride=3,1,1",
                      separable},
        AlgorithmCase{"PaddedPlanes", "pool_backward dy=f32:1x2x6x3x3 x=f32:1x2x4x5x5 window=1,3,3 pad=1,0,0",
                      separable},
        AlgorithmCase{"FewChannelsLast", "pool_backward dy=f16:1x4x3x3:nhwc x=f16:1x4x5x5:nhwc window=3", separable},
        AlgorithmCase{"PlanesAndColumns", "pool_backward dy=bf16:1x5x4x3x6 x=bf16:1x5x9x3x10 window=6,1,5", separable}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Averages, PoolBackwardSeparable,
    testing::Values(
        AlgorithmCase{"Overlapping", "pool_backward dy=f32:2x3x7x9 dx=f32:2x3x11x13 mode=avg window=5", separable},
        AlgorithmCase{"AsymmetricPads",
                      "pool_backward dy=f16:2x3x13x10 dx=f16:2x3x11x12 mode=avg window=3,6 pad=1,0,3,3 alpha=any",
                      separable},
        AlgorithmCase{"CeilMode",
                      "pool_backward dy=f32:1x5x7x6 dx=f32:1x5x13x14 mode=avg_padded window=6 pad=2,1 "
                      "stride=2",
                      separable},
        AlgorithmCase{"Dilation",
                      "pool_backward dy=f32:1x4x15x9 dx=f32:1x4x19x17 mode=avg window=4,5 dilation=2,3 "
                      "pad=1,2",
                      separable},
        AlgorithmCase{"Channels",
                      "pool_backward dy=bf16:2x24x8x8:nhwc dx=bf16:2x24x8x8:nhwc mode=avg_padded window=5 pad=2",
                      separable},
        AlgorithmCase{"WindowsInPadding", "pool_backward dy=f32:1x3x14x16 dx=f32:1x3x4x4 mode=avg window=5,3 pad=7",
                      separable},
        AlgorithmCase{"PaddingBehindPlanes",
                      "pool_backward dy=f32:1x2x7x3x3 dx=f32:1x2x6x5x5 mode=avg_padded window=2,3,3 pad=0,0,0,2,0,0",
                      separable},
        AlgorithmCase{"AnyBatchOfVolumes",
                      "pool_backward dy=f16:3x8x6x5x4:ndhwc dx=f16:3x8x5x6x7:ndhwc mode=avg_padded window=2,4,5 "
                      "pad=1,1,0,2,1,1 stride=1,1,1 n=?",
                      separable}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardSeparableConfigs, PairwiseMatch,
    testing::Values(
        cover("pool_backward_separable", "pool_backward dy=f32:2x3x9x7 x=f32:2x3x11x9 window=5,6 pad=1,0,1,3"),
        cover("pool_backward_separable",
              "pool_backward dy=f16:1x16x7x6:nhwc x=f16:1x16x9x11:nhwc window=5,6 pad=1,0 stride=1,1"),
        cover("pool_backward_separable",
              "pool_backward dy=bf16:1x24x3x9x9:ndhwc dx=bf16:1x24x6x7x9:ndhwc mode=avg window=4,4,4 pad=0,2,1,0,3,2"),
        cover("pool_backward_separable",
              "pool_backward dy=f32:1x5x5x4 dx=f32:1x5x13x9 mode=avg_padded window=7,6 pad=1,1,2,2 stride=2")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardSeparableWithWideOffsets, WideIndexMatch,
    testing::Values(wide(separable, "pool_backward dy=f16:2x8x5x5:nhwc x=f16:2x8x9x9:nhwc window=5"),
                    wide(separable, "pool_backward dy=f32:1x3x4x3x4 dx=f32:1x3x6x5x6 mode=avg window=3")),
    cover_name);

class PoolBackwardScatter : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(PoolBackwardScatter, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Windows, PoolBackwardScatter,
    testing::Values(
        AlgorithmCase{"SingleElement", "pool_backward dy=f32:1x1x1x1 x=f32:1x1x1x1 window=1", scatter},
        AlgorithmCase{"SideBySide", "pool_backward dy=bf16:2x5x8x16 x=bf16:2x5x16x32 window=2 stride=2", scatter},
        AlgorithmCase{"ElementsOfNoWindow", "pool_backward dy=f32:1x7x4x5 x=f32:1x7x19x24 window=2 stride=5", scatter},
        AlgorithmCase{"AsymmetricPads",
                      "pool_backward dy=f32:2x3x4x3 x=f32:2x3x10x8 window=3 stride=3 pad=1,0,1,1 beta=1", scatter},
        AlgorithmCase{"WindowsInPadding", "pool_backward dy=f32:1x3x5x7 x=f32:1x3x4x4 window=2 stride=2 pad=3,5",
                      scatter},
        AlgorithmCase{"LastWindowBeforeTheEnd", "pool_backward dy=f16:1x3x2x2 x=f16:1x3x10x9 window=3,4 stride=4",
                      scatter},
        AlgorithmCase{"Dilation", "pool_backward dy=bf16:2x4x3x3 x=bf16:2x4x17x19 window=3 dilation=2 stride=5",
                      scatter},
        AlgorithmCase{"OneOutputAlongAnAxis", "pool_backward dy=f32:2x3x1x4 x=f32:2x3x3x8 window=3,2 stride=1,2",
                      scatter},
        AlgorithmCase{"Global", "pool_backward dy=f16:3x13x1x1 x=f16:3x13x17x19 window=global", scatter},
        AlgorithmCase{"GlobalChannels", "pool_backward dy=f16:3x40x1x1:nhwc x=f16:3x40x9x11:nhwc window=global",
                      scatter},
        AlgorithmCase{"Channels",
                      "pool_backward dy=f16:2x16x3x4:nhwc x=f16:2x16x7x9:nhwc window=2 stride=2 alpha=any beta=any",
                      scatter},
        AlgorithmCase{"OddChannels",
                      "pool_backward dy=bf16:2x7x3x3:nhwc x=bf16:2x7x9x11:nhwc dx=f32:2x7x9x11 window=3 stride=3",
                      scatter},
        AlgorithmCase{"MixedLayouts",
                      "pool_backward dy=f16:2x8x3x4:nchw x=bf16:2x8x7x9:nhwc dx=f32:2x8x7x9:nchw window=2 stride=2",
                      scatter},
        AlgorithmCase{"Regions",
                      "pool_backward dy=f32:2x3x2x4:200,60,13,2 x=f32:2x3x5x8:300,90,12,1 dx=f32:2x3x5x8:400,100,16,2 "
                      "window=2 stride=2",
                      scatter},
        AlgorithmCase{"RegionsOfChannels",
                      "pool_backward dy=f16:2x8x2x3:800,1,120,16 x=f16:2x8x5x6:4000,1,400,24 "
                      "dx=f16:2x8x5x6:2000,1,200,16 window=2 stride=2",
                      scatter},
        AlgorithmCase{"RegionsOfRows",
                      "pool_backward dy=bf16:2x3x2x4:200,60,13,2 x=bf16:2x3x5x8:300,90,12,1 "
                      "dx=bf16:2x3x5x8:400,100,16,2 window=2 stride=2",
                      scatter},
        AlgorithmCase{"AnyBatch", "pool_backward dy=f32:5x3x3x3 x=f32:5x3x11x11 window=3 stride=4 n=?", scatter},
        AlgorithmCase{"EmptyBatch", "pool_backward dy=f32:0x3x3x3 x=f32:0x3x9x9 window=3 stride=3", scatter},
        AlgorithmCase{"Line", "pool_backward dy=f32:2x5x6:ncw x=f32:2x5x17:ncw window=3 stride=3 pad=0,1", scatter},
        AlgorithmCase{"Volume", "pool_backward dy=f32:1x3x3x2x2 x=f32:1x3x7x5x9 window=2,2,4 stride=2,3,5", scatter},
        AlgorithmCase{
            "VolumeOfChannels",
            "pool_backward dy=bf16:1x8x2x2x3:ndhwc x=bf16:1x8x5x6x7:ndhwc window=2 stride=3,3,2 pad=0,0,0,1,0,0",
            scatter}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardScatterConfigs, PairwiseMatch,
    testing::Values(
        cover("pool_backward_scatter",
              "pool_backward dy=f32:1x3x2x1 x=f32:1x3x36x17 window=16,17 stride=18,17 pad=1,0"),
        cover("pool_backward_scatter",
              "pool_backward dy=f16:2x16x1x2:nhwc x=f16:2x16x17x37:nhwc window=16,17 stride=17,20 alpha=any beta=any"),
        cover("pool_backward_scatter",
              "pool_backward dy=bf16:1x24x3x2x2:ndhwc x=bf16:1x24x7x5x9:ndhwc window=2,2,4 "
              "stride=2,3,5")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardScatterWithWideOffsets, WideIndexMatch,
    testing::Values(wide(scatter, "pool_backward dy=f16:2x8x4x4:nhwc x=f16:2x8x9x9:nhwc window=2 stride=2")),
    cover_name);

// The gradients that `algorithm` gives, with blocks of 64 threads, in each of its configurations.
std::vector<std::vector<float>> gradients(const std::string& algorithm, const Request& request,
                                          const std::vector<float>& x, const std::vector<float>& dy) {
  const TestDevice& device = TestDevice::get();
  const BoundAlgorithm bound = built_in_catalogue().find(algorithm)->on(request, device.target);
  EXPECT_EQ(bound.refusal(), std::nullopt);
  std::vector<std::vector<float>> results;
  for (const Config& config : bound.legal()) {
    if (config.find("THREADS") != 64) continue;
    const Program program = built_in_catalogue().program(request, device.target, {algorithm, config});
    const execution::Executable executable = device.load(program, device.target, {"dy", "x", "dx"});
    const device::Buffer on_x = device::upload(device.context, x), on_dy = device::upload(device.context, dy);
    const device::Buffer dx(device.context, x.size() * sizeof(float));
    const device::Buffer workspace(device.context, executable.workspace_bytes());
    executable.run(nullptr, std::vector{on_dy.address(), on_x.address(), dx.address()}, {}, 1, workspace.address());
    results.push_back(device::download<float>(*device.context, dx.address(), static_cast<int64_t>(x.size())));
  }
  return results;
}

// Maxima that are equal, infinite, or no numbers: the first of the largest, or the last NaN, as gathering finds them.
TEST(PoolBackwardSeparableMaxima, AreThoseOfGathering) {
  const Request request = Request::parse("pool_backward dy=f32:1x2x13x12 x=f32:1x2x13x14 window=5,7 pad=2");
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {
      0.0f, -0.0f, 1.0f, 1.0f, -infinity, infinity, std::numeric_limits<float>::quiet_NaN()};
  std::mt19937 random(7);
  for (const size_t kinds : {size_t{2}, size_t{5}, values.size()}) {
    std::vector<float> x(2 * 13 * 14), dy(2 * 13 * 12);
    for (float& value : x) value = values[random() % kinds];
    if (kinds == 5) std::fill(x.begin(), x.begin() + 13 * 14, -infinity);
    for (float& value : dy) value = static_cast<float>(random() % 64);  // sums are exact in any order
    const std::vector<float> expected = gradients("pool_backward_gather", request, x, dy).front();
    for (const std::vector<float>& got : gradients("pool_backward_separable", request, x, dy)) {
      EXPECT_EQ(got, expected) << kinds;
    }
  }
}

// The same where a team looks at a window, each thread at a part.
TEST(PoolBackwardScatterMaxima, AreThoseOfGathering) {
  const float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {0.0f, -0.0f, 1.0f, 1.0f, -infinity, infinity, nan};
  std::mt19937 random(11);
  for (const char* line : {"pool_backward dy=f32:1x2x4x5 x=f32:1x2x30x37 window=7 stride=8 pad=1",
                           "pool_backward dy=f32:1x2x1x2 x=f32:1x2x17x37 window=16,17 stride=18,20"}) {
    const Request request = Request::parse(line);
    const auto inputs = static_cast<size_t>(request.at("x").elements()),
               outputs = static_cast<size_t>(request.at("dy").elements());
    for (const size_t kinds : {size_t{2}, size_t{5}, values.size()}) {
      std::vector<float> x(inputs), dy(outputs);
      for (float& value : x) value = values[random() % kinds];
      if (kinds == 5) std::fill(x.begin(), x.begin() + static_cast<int64_t>(inputs / 2), -infinity);
      for (float& value : dy) value = static_cast<float>(1 + random() % 64);
      const std::vector<float> expected = gradients("pool_backward_gather", request, x, dy).front();
      for (const std::vector<float>& got : gradients("pool_backward_scatter", request, x, dy)) {
        EXPECT_EQ(got, expected) << line << " " << kinds;
      }
    }
  }
}

TEST(PoolBackwardScatterRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("pool_backward_scatter", "pool_backward " + request);
  };
  EXPECT_EQ(refusal("dy=f32:1x3x4x4 x=f32:1x3x8x8 window=2 stride=2"), "none");
  EXPECT_EQ(refusal("dy=f32:1x3x3x4 x=f32:1x3x8x8 window=3,2 stride=2"), "windows overlap");
  EXPECT_EQ(refusal("dy=f32:1x3x4x3 x=f32:1x3x8x8 window=2 dilation=1,2 stride=2"), "windows overlap");
  EXPECT_EQ(refusal("dy=f32:1x3x4x4 dx=f32:1x3x8x8 mode=avg window=2 stride=2"),
            "an average has no maximum to be found");
  EXPECT_EQ(refusal("dy=f32:1x3x4x4 indices=i32:1x3x4x4 dx=f32:1x3x8x8 window=2 stride=2"), "indices are given");
  EXPECT_EQ(refusal("dy=f32:1x3x4x4 x=f32:1x3x8x8 window=2 stride=2 alpha=0 beta=any"), "alpha is zero");
}

TEST(PoolBackwardSeparableRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("pool_backward_separable", "pool_backward " + request);
  };
  EXPECT_EQ(refusal("dy=f32:1x3x7x7 x=f32:1x3x9x9 window=3"), "none");
  EXPECT_EQ(refusal("dy=f32:1x3x4x4 x=f32:1x3x8x8 window=2 stride=2"),
            "an element lies in fewer than nine windows, and these have few elements");
  EXPECT_EQ(refusal("dy=f32:1x3x16x1 x=f32:1x3x32x1 window=17,1"), "windows extend along one axis only");
  EXPECT_EQ(refusal("dy=f32:1x3x7x7 indices=i32:1x3x7x7 dx=f32:1x3x9x9 window=3"), "indices are given");
  EXPECT_EQ(refusal("dy=f32:1x3x7x7 x=f32:1x3x9x9 window=3 alpha=0 beta=any"), "alpha is zero");
  EXPECT_EQ(refusal("dy=f32:1x1x40000x3 dx=f32:1x1x80000x5 mode=avg window=40001,3"),
            "a window has more than 32768 elements along an axis");
  EXPECT_EQ(refusal("dy=f32:1x1x4x32000 dx=f32:1x1x70000x1 mode=avg window=32768,32000 pad=0,31999 stride=10000,1"),
            "more than 2^30 elements would be kept after each axis");
}

}  // namespace
}  // namespace kiln::testing_support::pool_backward_windows_test
