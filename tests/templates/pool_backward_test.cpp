// Every algorithm of pooling's gradient, and of unpooling's, against the reference, on shapes that are awkward in one
// way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "variant_check.h"

namespace kiln::testing_support::pool_backward_test {
namespace {

using Names = std::vector<std::string>;

const Names all = {"pool_backward_simple", "pool_backward_gather"};

class PoolBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(PoolBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Nchw, PoolBackwardDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "pool_backward dy=f32:1x1x1x1 x=f32:1x1x1x1 window=1", all},
        AlgorithmCase{"OverlappingWindows",
                      "pool_backward dy=f16:2x3x7x9 x=f16:2x3x13x17 mode=max window=3 pad=1 stride=2", all},
        AlgorithmCase{"ApartWindows", "pool_backward dy=bf16:2x5x8x16 x=bf16:2x5x16x32 mode=max window=2 stride=2",
                      all},
        AlgorithmCase{"ElementsOfNoWindow", "pool_backward dy=f32:1x7x4x5 x=f32:1x7x19x24 window=2 stride=5,5", all},
        AlgorithmCase{"AsymmetricPads",
                      "pool_backward dy=f32:2x3x10x6 dx=f32:2x3x11x12 mode=avg window=3,2 pad=1,0,0,1 stride=1,2", all},
        AlgorithmCase{"CeilMode",
                      "pool_backward dy=f16:1x5x7x7 dx=f16:1x5x12x12 mode=avg_padded window=3 pad=1 stride=2", all},
        AlgorithmCase{"Dilation",
                      "pool_backward dy=bf16:2x4x15x15 x=bf16:2x4x15x16 mode=max window=3,2 dilation=2,3 pad=2,1", all},
        AlgorithmCase{"DilatedAverages",
                      "pool_backward dy=f32:2x4x7x5 dx=f32:2x4x15x16 mode=avg window=3 dilation=2,3 pad=1,0 stride=2",
                      all},
        AlgorithmCase{"WindowsInPadding", "pool_backward dy=f32:1x3x9x13 x=f32:1x3x4x4 window=2,2 pad=3,5,3,5", all},
        AlgorithmCase{"AveragesInPadding", "pool_backward dy=f32:1x3x9x13 dx=f32:1x3x4x4 mode=avg window=2 pad=3,5,3,5",
                      all},
        AlgorithmCase{"Blend",
                      "pool_backward dy=f32:1x3x4x3 dx=f32:1x3x9x8 mode=avg window=3 stride=2 alpha=any beta=any", all},
        AlgorithmCase{"AddsToDx", "pool_backward dy=bf16:1x3x4x4 x=bf16:1x3x8x8 mode=max window=2 stride=2 beta=1",
                      all},
        AlgorithmCase{"AlphaZero", "pool_backward dy=f16:1x3x7x7 x=f16:1x3x8x8 window=2 alpha=0 beta=any", all},
        AlgorithmCase{"DynamicBatch", "pool_backward dy=f32:8x3x4x5 x=f32:8x3x9x11 window=3 stride=2 n=?", all},
        AlgorithmCase{"EmptyBatch", "pool_backward dy=f32:0x3x7x7 x=f32:0x3x9x9 window=3", all},
        AlgorithmCase{"MixedTypes",
                      "pool_backward dy=f16:1x3x4x4 x=bf16:1x3x8x8 dx=f32:1x3x8x8 mode=max window=2 stride=2", all},
        AlgorithmCase{"Global", "pool_backward dy=f16:3x13x1x1 x=f16:3x13x7x7 mode=max window=global", all},
        AlgorithmCase{"GlobalAverage", "pool_backward dy=f32:2x5x1x1 dx=f32:2x5x7x6 mode=avg window=global", all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    FromIndices, PoolBackwardDefaults,
    testing::Values(
        AlgorithmCase{"OverlappingWindows",
                      "pool_backward dy=f16:2x3x7x9 indices=i32:2x3x7x9 dx=f16:2x3x13x17 window=3 pad=1 stride=2", all},
        AlgorithmCase{"Vectors",
                      "pool_backward dy=f16:2x16x3x4:nhwc indices=i32:2x16x3x4:nhwc dx=f16:2x16x7x9:nhwc window=2 "
                      "stride=2 alpha=any beta=any",
                      all},
        AlgorithmCase{
            "MixedLayouts",
            "pool_backward dy=f32:2x8x3x4:nchw indices=i32:2x8x3x4:nhwc dx=f32:2x8x7x9:nhwc window=2 stride=2", all},
        AlgorithmCase{"SubRegions",
                      "pool_backward dy=f32:2x3x3x4:200,50,16,1 indices=i32:2x3x3x4:80,24,7,1 "
                      "dx=f32:2x3x7x9:900,250,30,2 window=2 stride=2",
                      all},
        AlgorithmCase{"WindowOfManyTaps",
                      "pool_backward dy=f32:1x1x1x1 indices=i32:1x1x1x1 dx=f32:1x1x9x9 window=257 pad=124", all},
        AlgorithmCase{"DynamicBatch",
                      "pool_backward dy=f32:8x3x4x5 indices=i32:8x3x4x5 dx=f32:8x3x9x11 window=3 stride=2 n=?", all},
        AlgorithmCase{"Volume",
                      "pool_backward dy=bf16:1x8x2x3x3:ndhwc indices=i32:1x8x2x3x3:ndhwc dx=bf16:1x8x5x6x7:ndhwc "
                      "window=2 stride=2",
                      all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Nhwc, PoolBackwardDefaults,
    testing::Values(
        AlgorithmCase{"ThreeChannels",
                      "pool_backward dy=f32:2x3x7x9:nhwc x=f32:2x3x13x17:nhwc mode=max window=3 pad=1 stride=2", all},
        AlgorithmCase{"Vectors", "pool_backward dy=f16:2x16x3x4:nhwc x=f16:2x16x7x9:nhwc window=2 stride=2", all},
        AlgorithmCase{"Averages",
                      "pool_backward dy=bf16:2x8x10x6:nhwc dx=bf16:2x8x11x12:nhwc mode=avg window=3,2 pad=1,0,0,1 "
                      "stride=1,2",
                      all},
        AlgorithmCase{"Blend",
                      "pool_backward dy=f32:1x12x4x3:nhwc x=f32:1x12x9x8:nhwc window=3 stride=2 alpha=any beta=any",
                      all},
        AlgorithmCase{"DynamicBatch", "pool_backward dy=f16:8x24x2x2:nhwc x=f16:8x24x5x6:nhwc window=3 stride=2 n=?",
                      all},
        AlgorithmCase{"PoorlyAligned", "pool_backward dy=f16:1x8x4x4:nhwc@4 x=f16:1x8x8x8:nhwc window=2 stride=2", all},
        AlgorithmCase{"GlobalOddChannels",
                      "pool_backward dy=bf16:2x13x1x1:nhwc dx=bf16:2x13x5x5:nhwc mode=avg window=global beta=1", all}),
    case_name);

// Sub-regions, dimension orders and operands that differ in both; one and three spatial dimensions.
INSTANTIATE_TEST_SUITE_P(
    Layouts, PoolBackwardDefaults,
    testing::Values(
        AlgorithmCase{"SubRegion",
                      "pool_backward dy=f32:2x3x3x6:200,60,13,2 x=f32:2x3x5x8:300,90,12,1 dx=f32:2x3x5x8:400,100,16,2 "
                      "window=3",
                      all},
        AlgorithmCase{"SubRegionNhwc",
                      "pool_backward dy=f16:2x8x3x5:400,1,120,24 dx=f16:2x8x5x7:800,1,112,16 mode=avg window=3", all},
        AlgorithmCase{"MixedLayouts",
                      "pool_backward dy=f32:2x8x4x4:nchw x=f32:2x8x9x8:nhwc dx=f32:2x8x9x8:nchw window=3,2 stride=2",
                      all},
        AlgorithmCase{"WidthOutermost",
                      "pool_backward dy=bf16:2x5x5x6:hwcn x=bf16:2x5x6x7:wnch dx=bf16:2x5x6x7:chwn window=2", all},
        AlgorithmCase{"OneDChannelsLast", "pool_backward dy=f16:2x16x10:nwc dx=f16:2x16x13:nwc mode=avg window=4", all},
        AlgorithmCase{"ThreeD",
                      "pool_backward dy=f32:1x3x4x5x4 x=f32:1x3x7x6x8 mode=max window=3,2,3 pad=1,0,1 stride=2,1,2",
                      all},
        AlgorithmCase{"ThreeDAverages",
                      "pool_backward dy=f16:2x8x6x2x4:ndhwc dx=f16:2x8x5x6x7:ndhwc mode=avg_padded window=2,4,3 "
                      "pad=1,2,0,1,0,1 stride=1,3,2",
                      all}),
    case_name);

const Names unpooling = {"unpool_backward_simple", "unpool_backward_gather"};

class UnpoolBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(UnpoolBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, UnpoolBackwardDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "unpool_backward dy=f32:1x1x1x1 indices=i32:1x1x1x1 window=1", unpooling},
        AlgorithmCase{"OverlappingWindows",
                      "unpool_backward dy=f16:2x3x13x17 indices=i32:2x3x7x9 window=3 pad=1 stride=2", unpooling},
        AlgorithmCase{"DilatedAsymmetric",
                      "unpool_backward dy=bf16:2x5x11x13 dx=f32:2x5x8x5 indices=i32:2x5x8x5 window=3,2 pad=1,0,0,2 "
                      "stride=1,3 dilation=2,3 beta=1",
                      unpooling},
        AlgorithmCase{"Blend",
                      "unpool_backward dy=f32:1x3x9x8 indices=i32:1x3x4x3 window=3 stride=2 alpha=any beta=any",
                      unpooling},
        AlgorithmCase{"AlphaZero", "unpool_backward dy=f16:1x3x8x8 indices=i32:1x3x7x7 window=2 alpha=0 beta=any",
                      unpooling},
        AlgorithmCase{"DynamicBatch", "unpool_backward dy=f32:8x3x9x11 indices=i32:8x3x4x5 window=3 stride=2 n=?",
                      unpooling},
        AlgorithmCase{"EmptyBatch", "unpool_backward dy=f32:0x3x9x9 indices=i32:0x3x7x7 window=3", unpooling},
        AlgorithmCase{"Global", "unpool_backward dy=bf16:3x13x7x7 indices=i32:3x13x1x1 window=global", unpooling},
        AlgorithmCase{"Line", "unpool_backward dy=f16:2x16x13:nwc indices=i32:2x16x10:nwc window=4", unpooling},
        AlgorithmCase{"Volume", "unpool_backward dy=bf16:1x8x5x6x7:ndhwc indices=i32:1x8x2x3x3:ndhwc window=2 stride=2",
                      unpooling},
        AlgorithmCase{"Vectors",
                      "unpool_backward dy=f16:2x16x7x9:nhwc indices=i32:2x16x3x4:nhwc window=2 stride=2 alpha=any "
                      "beta=any",
                      unpooling},
        AlgorithmCase{"PoorlyAligned",
                      "unpool_backward dy=f16:1x8x8x8:nhwc indices=i32:1x8x4x4:nhwc@4 window=2 stride=2", unpooling},
        AlgorithmCase{
            "MixedLayouts",
            "unpool_backward dy=f32:2x8x7x9:nchw indices=i32:2x8x3x4:nhwc dx=f16:2x8x3x4:nchw window=2 stride=2",
            unpooling},
        AlgorithmCase{"SubRegions",
                      "unpool_backward dy=f32:2x3x7x9:900,250,30,2 indices=i32:2x3x3x4:80,24,7,1 "
                      "dx=f32:2x3x3x4:200,50,16,1 window=2 stride=2",
                      unpooling},
        AlgorithmCase{"SubRegionNhwc",
                      "unpool_backward dy=f16:2x8x5x7:800,1,112,16 indices=i32:2x8x3x5:400,1,120,24 window=3",
                      unpooling},
        AlgorithmCase{"WidthOutermost",
                      "unpool_backward dy=bf16:2x5x6x7:wnch indices=i32:2x5x5x6:hwcn dx=bf16:2x5x5x6:chwn window=2",
                      unpooling}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    UnpoolBackwardConfigs, PairwiseMatch,
    testing::Values(
        cover("unpool_backward_simple", "unpool_backward dy=f32:2x3x7x5 indices=i32:2x3x4x5 window=3 pad=1 stride=2,1"),
        cover("unpool_backward_simple", "unpool_backward dy=f16:1x5x3x7:nhwc indices=i32:1x5x1x1:nhwc window=3,7"),
        cover("unpool_backward_gather",
              "unpool_backward dy=f16:1x16x9x11:nhwc indices=i32:1x16x5x6:nhwc window=3 pad=1 stride=2"),
        cover("unpool_backward_gather",
              "unpool_backward dy=f32:1x24x7x10:nhwc indices=i32:1x24x8x8:nhwc window=2,3 pad=1 dilation=1,2")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    UnpoolBackwardWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"unpool_backward_simple"},
                         "unpool_backward dy=f32:2x5x17:ncw indices=i32:2x5x9:ncw window=3 pad=1 stride=2"),
                    wide({"unpool_backward_gather"},
                         "unpool_backward dy=f16:2x8x9x9:nhwc indices=i32:2x8x5x5:nhwc window=3 pad=1 stride=2")),
    cover_name);

// Not run: the trusted kernel looks at every element of the window for every element.
TEST(PoolBackwardGather, NumbersTapsIn16Bits) {
  const Target target = TestDevice::get().target;
  const Algorithm& gather = *built_in_catalogue().find("pool_backward_gather");
  const auto refusal = [&](const std::string& extents) {
    return gather.on(Request::parse("pool_backward dy=f32:1x1x1x1 x=f32:1x1x" + extents + " window=global"), target)
        .refusal();
  };
  EXPECT_FALSE(refusal("2x32767"));
  EXPECT_TRUE(refusal("5x13107"));
}

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardConfigs, PairwiseMatch,
    testing::Values(
        cover("pool_backward_simple", "pool_backward dy=f32:2x3x4x5 x=f32:2x3x7x5 mode=max window=3 pad=1 stride=2,1"),
        cover("pool_backward_simple", "pool_backward dy=f16:1x5x1x1:nhwc dx=f16:1x5x3x7:nhwc mode=avg window=3,7"),
        cover("pool_backward_gather",
              "pool_backward dy=f16:1x16x5x6:nhwc x=f16:1x16x9x11:nhwc mode=max window=3 pad=1 stride=2"),
        cover("pool_backward_gather",
              "pool_backward dy=f32:1x24x8x8:nhwc dx=f32:1x24x7x10:nhwc mode=avg_padded window=2,3 "
              "pad=1,1,1,1 dilation=1,2")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    PoolBackwardWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"pool_backward_simple"},
                         "pool_backward dy=f32:2x5x9:ncw x=f32:2x5x17:ncw mode=max window=3 pad=1 stride=2"),
                    wide({"pool_backward_gather"},
                         "pool_backward dy=f16:2x8x5x5:nhwc x=f16:2x8x9x9:nhwc window=3 pad=1 stride=2")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::pool_backward_test
