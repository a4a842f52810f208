// Every pooling algorithm against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::pool_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"pool_simple"};
const Names indexed = {"pool_simple", "pool_indexed"};
const Names nchw = {"pool_simple", "pool_nchw"};
const Names nhwc = {"pool_simple", "pool_nhwc"};
const Names global_nchw = {"pool_simple", "pool_nchw", "pool_global_nchw"};
const Names global_nhwc = {"pool_simple", "pool_nhwc", "pool_global_nhwc"};

class PoolDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(PoolDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Nchw, PoolDefaults,
    testing::Values(
        // One channel: the same memory in both layouts.
        AlgorithmCase{"SingleElement",
                      "pool_forward x=f32:1x1x2x1:nchw mode=max window=1,1",
                      {"pool_simple", "pool_nchw", "pool_nhwc"}},
        AlgorithmCase{"Primes", "pool_forward x=f16:2x3x13x17:nchw mode=max window=3,3 pad=1,1 stride=2,2", nchw},
        AlgorithmCase{"Vectors", "pool_forward x=bf16:2x5x16x32:nchw mode=max window=2,2 stride=2,2", nchw},
        AlgorithmCase{"AsymmetricPads",
                      "pool_forward x=f32:2x3x11x12:nchw mode=avg window=3,2 pad=1,0,0,1 stride=1,2 alpha=any beta=any",
                      nchw},
        AlgorithmCase{"Dilation", "pool_forward x=bf16:2x4x15x16:nchw mode=max window=3,2 dilation=2,3 pad=2,1 beta=1",
                      nchw},
        AlgorithmCase{"WindowsInPadding", "pool_forward x=f32:1x3x4x4:nchw mode=max window=2,2 pad=3,5,3,5", nchw},
        AlgorithmCase{"AveragesInPadding", "pool_forward x=f32:1x3x4x4:nchw mode=avg window=2,2 pad=3,5,3,5", nchw},
        AlgorithmCase{"PaddedAveragesInPadding",
                      "pool_forward x=f32:1x3x4x4:nchw mode=avg_padded window=2,3 pad=3,5,4,3 stride=2,1 ceil=1", nchw},
        AlgorithmCase{"StrideBeyondWindow", "pool_forward x=f16:1x7x19x24:nchw@2 mode=avg window=2,2 stride=3,4", nchw},
        AlgorithmCase{"WideWindow", "pool_forward x=f32:1x2x3x64:nchw mode=max window=2,40 stride=1,3", trusted},
        AlgorithmCase{"AlphaZero", "pool_forward x=f16:1x3x8x8:nchw mode=max window=2,2 alpha=0 beta=any", nchw},
        AlgorithmCase{"MixedTypes", "pool_forward x=f16:1x3x8x8:nchw y=f32:1x3x4x4:nchw mode=avg window=2,2 stride=2,2",
                      nchw},
        AlgorithmCase{"Global7", "pool_forward x=f32:3x13x7x7:nchw mode=avg window=global", global_nchw},
        AlgorithmCase{"Global8", "pool_forward x=bf16:2x24x8x8:nchw mode=max window=global", global_nchw},
        AlgorithmCase{"GlobalLarge",
                      "pool_forward x=bf16:1x3x28x30:3000,960,32,1 mode=avg window=global alpha=any beta=1",
                      global_nchw},
        AlgorithmCase{"GlobalTooWideForTiles",
                      "pool_forward x=u8:1x2x4x33:nchw mode=max window=global",
                      {"pool_simple", "pool_global_nchw"}},
        AlgorithmCase{"GlobalDynamic", "pool_forward x=i32:4x5x5x5:200,36,6,1 mode=max window=global n=?", global_nchw},
        AlgorithmCase{"GlobalEmpty", "pool_forward x=f32:0x5x5x5:nchw mode=avg window=global", global_nchw}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Nhwc, PoolDefaults,
    testing::Values(
        AlgorithmCase{"ThreeChannels", "pool_forward x=f32:2x3x13x17:nhwc mode=max window=3,3 pad=1,1 stride=2,2",
                      nhwc},
        AlgorithmCase{"Vectors", "pool_forward x=f16:2x16x7x9:nhwc mode=max window=2,2 stride=2,2", nhwc},
        AlgorithmCase{
            "AsymmetricPads",
            "pool_forward x=bf16:2x8x11x12:nhwc mode=avg window=3,2 pad=1,0,0,1 stride=1,2 alpha=any beta=any", nhwc},
        AlgorithmCase{"CeilMode",
                      "pool_forward x=f32:1x20x12x12:nhwc mode=avg_padded window=3,3 pad=1,1 stride=2,2 ceil=1", nhwc},
        AlgorithmCase{"Dilation", "pool_forward x=f16:2x4x15x14:nhwc@4 mode=max window=3,2 dilation=2,3 pad=2,1", nhwc},
        AlgorithmCase{"WindowsInPadding", "pool_forward x=f16:1x8x4x5:nhwc mode=max window=2,2 pad=3,4,3,4", nhwc},
        AlgorithmCase{"AveragesInPadding",
                      "pool_forward x=bf16:1x6x4x5:nhwc mode=avg window=2,3 pad=3,4,2,5 stride=2,2", nhwc},
        AlgorithmCase{"WideWindow", "pool_forward x=f32:1x2x3x64:nhwc mode=max window=2,40 stride=1,3", nhwc},
        AlgorithmCase{"MixedTypes",
                      "pool_forward x=f32:1x8x8x8:nhwc y=bf16:1x8x4x4:nhwc mode=avg window=2,2 stride=2,2", nhwc},
        AlgorithmCase{"Global7", "pool_forward x=f16:3x40x7x7:nhwc mode=avg window=global", global_nhwc},
        AlgorithmCase{"GlobalOddChannels",
                      "pool_forward x=bf16:2x13x5x5:nhwc mode=max window=global alpha=any beta=any", global_nhwc},
        AlgorithmCase{"GlobalDynamic", "pool_forward x=i32:4x36x3x3:nhwc mode=max window=global n=?", global_nhwc},
        AlgorithmCase{"GlobalEmpty", "pool_forward x=f32:0x5x5x5:nhwc mode=avg window=global", global_nhwc}),
    case_name);

// Sub-regions, dimension orders and operands that differ in both.
INSTANTIATE_TEST_SUITE_P(
    Strides, PoolDefaults,
    testing::Values(
        AlgorithmCase{"SubRegion",
                      "pool_forward x=f16:2x3x5x8:300,90,12,1 y=f16:2x3x3x6:200,60,13,2 mode=max window=3,3", nchw},
        AlgorithmCase{"SubRegionNhwc",
                      "pool_forward x=bf16:2x8x5x7:800,1,112,16 y=bf16:2x8x3x5:400,1,120,24 mode=avg window=3,3", nhwc},
        AlgorithmCase{"FromNchwToNhwc",
                      "pool_forward x=f32:2x8x9x8:nchw y=f32:2x8x4x4:nhwc mode=avg window=3,2 stride=2,2", nchw},
        AlgorithmCase{"FromNhwcToNchw",
                      "pool_forward x=f16:2x8x9x8:nhwc y=f16:2x8x4x4:nchw mode=max window=3,2 stride=2,2 beta=any",
                      nhwc},
        AlgorithmCase{"WidthOutermost", "pool_forward x=bf16:2x5x6x7:wnch y=bf16:2x5x5x6:hwcn mode=max window=2,2",
                      nchw},
        AlgorithmCase{"GlobalOfASubRegion", "pool_forward x=f32:2x5x6x8:1000,160,16,1 mode=avg window=global",
                      global_nchw},
        AlgorithmCase{"GlobalOfASubRegionNhwc",
                      "pool_forward x=f16:2x24x4x5:4000,1,320,40 y=f16:2x24x1x1:nchw mode=max window=global",
                      global_nhwc}),
    case_name);

// One and three spatial dimensions.
INSTANTIATE_TEST_SUITE_P(
    Dimensions, PoolDefaults,
    testing::Values(
        AlgorithmCase{"OneD", "pool_forward x=f32:2x5x17:ncw mode=max window=3 pad=1 stride=2", nchw},
        AlgorithmCase{"OneDChannelsLast", "pool_forward x=f16:2x16x13:nwc mode=avg window=4 pad=2,1 dilation=2", nhwc},
        AlgorithmCase{"OneDGlobal", "pool_forward x=f16:2x5x19:112,20,1 mode=avg window=global", global_nchw},
        AlgorithmCase{"ThreeD", "pool_forward x=f32:1x3x7x6x8:ncdhw mode=max window=3,2,3 pad=1,0,1 stride=2,1,2",
                      nchw},
        AlgorithmCase{"ThreeDAverage", "pool_forward x=f16:2x3x5x6x7:ncdhw mode=avg window=2,4,3 pad=1,2,0,0,1,1",
                      nchw},
        AlgorithmCase{
            "ThreeDPaddedAverage",
            "pool_forward x=f32:2x8x5x6x7:ndhwc mode=avg_padded window=2,4,3 pad=1,2,0,0,1,1 stride=1,3,2 ceil=1",
            nhwc},
        AlgorithmCase{"ThreeDChannelsLast",
                      "pool_forward x=bf16:1x8x4x5x6:ndhwc mode=max window=2 stride=2 dilation=1,2,1", nhwc},
        AlgorithmCase{"ThreeDGlobal", "pool_forward x=i32:2x16x3x4x5:ncdhw mode=max window=global", global_nchw},
        AlgorithmCase{"ThreeDGlobalChannelsLast",
                      "pool_forward x=f32:2x12x3x4x5:1200,1,400,80,16 mode=avg window=global n=?", global_nhwc}),
    case_name);

// Vectors of bytes are four times as long, and the maximum of no element is the least that y holds.
INSTANTIATE_TEST_SUITE_P(
    Integers, PoolDefaults,
    testing::Values(
        AlgorithmCase{"Bytes", "pool_forward x=i8:2x3x13x32 mode=max window=3 pad=1 stride=2", nchw},
        AlgorithmCase{"BytesChannelsLast", "pool_forward x=i8:2x32x7x9:nhwc mode=max window=2 stride=2", nhwc},
        AlgorithmCase{"ThreeBytesChannelsLast", "pool_forward x=u8:1x3x7x9:nhwc mode=max window=3 pad=1", nhwc},
        AlgorithmCase{"Words", "pool_forward x=i32:1x5x9x11 mode=max window=2,3 stride=1,2", nchw},
        AlgorithmCase{"WindowsInPadding", "pool_forward x=i8:1x3x4x4:90,24,5,1 mode=max window=2 pad=3,5,3,5", nchw},
        AlgorithmCase{"Global", "pool_forward x=i8:3x13x7x7 mode=max window=global", global_nchw},
        AlgorithmCase{"GlobalChannelsLast", "pool_forward x=u8:2x40x5x5:nhwc mode=max window=global", global_nhwc},
        AlgorithmCase{"MixedTypes", "pool_forward x=u8:1x3x8x8 y=f16:1x3x4x4 mode=max window=2 stride=2", nchw},
        AlgorithmCase{"Indices", "pool_forward x=i8:2x16x7x9:nhwc indices=i32:2x16x3x4:nhwc window=2 stride=2",
                      indexed}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Indices, PoolDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "pool_forward x=u8:1x1x1x1 indices=i32:1x1x1x1 window=1", indexed},
        AlgorithmCase{"OverlappingWindows", "pool_forward x=f16:2x3x13x17 indices=i32:2x3x7x9 window=3 pad=1 stride=2",
                      indexed},
        AlgorithmCase{"WindowsInPadding",
                      "pool_forward x=u8:1x3x4x4:60,20,5,1 indices=i32:1x3x9x13 window=2 pad=3,5,3,5", indexed},
        AlgorithmCase{"Dilation", "pool_forward x=bf16:2x4x15x16 indices=i32:2x4x15x15 window=3,2 dilation=2,3 pad=2,1",
                      indexed},
        AlgorithmCase{"ThreeChannelsLast", "pool_forward x=f32:2x3x7x9:nhwc indices=i32:2x3x3x4:nhwc window=2 stride=2",
                      indexed},
        AlgorithmCase{"MixedLayouts",
                      "pool_forward x=f16:2x8x7x9:600,1,80,8 indices=i32:2x8x3x4:nchw window=2 stride=2", indexed},
        AlgorithmCase{"SubRegions",
                      "pool_forward x=f32:2x3x7x9:900,250,30,2 y=f32:2x3x3x4:200,50,16,1 indices=i32:2x3x3x4:80,24,7,1 "
                      "window=2 stride=2",
                      indexed},
        AlgorithmCase{"Blend",
                      "pool_forward x=f32:1x12x9x8:nhwc indices=i32:1x12x4x3:nhwc window=3 stride=2 alpha=any "
                      "beta=any",
                      indexed},
        AlgorithmCase{"AlphaZero", "pool_forward x=i32:1x3x8x8 indices=i32:1x3x7x7 window=2 alpha=0 beta=1", indexed},
        AlgorithmCase{"DynamicBatch",
                      "pool_forward x=bf16:8x3x9x11:400,130,14,1 indices=i32:8x3x4x5 window=3 stride=2 n=?", indexed},
        AlgorithmCase{"EmptyBatch", "pool_forward x=f32:0x3x9x9 indices=i32:0x3x7x7 window=3", indexed},
        AlgorithmCase{"Row", "pool_forward x=i8:2x3x19:112,32,1 indices=i32:2x3x7:64,16,1 window=4 pad=2,1 stride=3",
                      indexed},
        AlgorithmCase{"Global", "pool_forward x=i32:3x13x7x7:800,60,8,1 indices=i32:3x13x1x1 window=global", indexed}),
    case_name);

// bf16 is converted without the instruction that later architectures have.
TEST(PoolOnTuring, MatchesTheReference) {
  const Target turing = target_of(7, 5);
  expect_defaults_match({"", "pool_forward x=bf16:1x3x9x8:nchw mode=avg window=3,3 stride=2,2", nchw}, turing);
  expect_defaults_match({"", "pool_forward x=bf16:1x8x9x8:nhwc mode=max window=3,3 stride=2,2", nhwc}, turing);
}

class PoolOn : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(PoolOn, MatchesTheReference) {
  const Target target = target_of(GetParam().first, GetParam().second);
  expect_defaults_match({"", "pool_forward x=f16:1x8x9x8:nchw mode=max window=3,3 stride=2,2", nchw}, target);
}

INSTANTIATE_TEST_SUITE_P(Architectures, PoolOn, testing::Values(std::pair{8, 0}, std::pair{12, 0}),
                         [](const auto& test) {
                           return "Sm" + std::to_string(test.param.first * 10 + test.param.second);
                         });

INSTANTIATE_TEST_SUITE_P(
    PoolConfigs, PairwiseMatch,
    testing::Values(
        cover("pool_simple", "pool_forward x=f32:2x3x7x5 mode=max window=3,2 pad=1 stride=2,1"),
        cover("pool_simple", "pool_forward x=f16:1x5x3x7:nhwc mode=avg window=global"),
        cover("pool_nchw", "pool_forward x=f32:1x2x13x24:nchw mode=max window=3,3 pad=1,1 stride=2,2"),
        cover("pool_nchw", "pool_forward x=f16:1x3x11x16:nchw mode=avg window=2,3 pad=1,2,0,1 stride=1,1 dilation=2,1"),
        cover("pool_nhwc", "pool_forward x=f16:1x16x9x11:nhwc mode=max window=3,3 pad=1,1 stride=2,2"),
        cover("pool_nhwc", "pool_forward x=f32:1x24x7x10:nhwc mode=avg_padded window=2,3 pad=1,2,0,1 dilation=1,2"),
        cover("pool_global_nchw", "pool_forward x=f16:2x7x9x8:nchw mode=avg window=global"),
        cover("pool_global_nchw", "pool_forward x=u8:1x35x7x7:4496,128,16,1 mode=max window=global"),
        cover("pool_global_nhwc", "pool_forward x=f16:1x136x7x5:nhwc mode=avg window=global"),
        cover("pool_global_nhwc", "pool_forward x=f32:2x11x3x3:nhwc mode=max window=global"),
        cover("pool_indexed", "pool_forward x=f16:2x24x7x9:nhwc indices=i32:2x24x3x4:nhwc window=3 stride=2"),
        cover("pool_indexed", "pool_forward x=f32:2x5x13x11 indices=i32:2x5x7x6 window=3 stride=2 pad=1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    PoolWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"pool_simple"}, "pool_forward x=f32:2x3x9x9:nchw mode=avg window=3,3 pad=1,1 stride=2,2"),
                    wide({"pool_nchw"}, "pool_forward x=f32:1x3x9x11:nchw mode=max window=3,3 stride=2,2 n=?"),
                    wide({"pool_nhwc"}, "pool_forward x=f16:8x24x5x6:nhwc mode=max window=3,3 stride=2,2 n=?"),
                    wide({"pool_global_nchw"}, "pool_forward x=f32:2x3x9x9:nchw mode=avg window=global"),
                    wide({"pool_global_nhwc"}, "pool_forward x=f32:2x3x9x9:nhwc mode=avg window=global"),
                    wide({"pool_indexed"},
                         "pool_forward x=f16:1x8x5x6x7:ndhwc indices=i32:1x8x2x3x3:ndhwc window=2 stride=2")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::pool_test
