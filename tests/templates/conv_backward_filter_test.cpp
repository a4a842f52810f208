// The default configuration of every algorithm for a convolution's gradients by its filter and its bias against the
// reference, on shapes that are awkward in one way each; pairwise covers of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::conv_backward_filter_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"conv_backward_filter_simple"};
const Names any_batch = {"conv_backward_filter_simple", "conv_backward_filter_direct"};
const Names few_channels = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                            "conv_backward_filter_implicit_gemm", "conv_backward_filter_implicit_gemm_splitk"};
const Names few_products = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                            "conv_backward_filter_implicit_gemm"};
const Names many_channels = {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm",
                             "conv_backward_filter_implicit_gemm_splitk"};

class ConvBackwardFilter : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvBackwardFilter, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvBackwardFilter,
    testing::Values(
        AlgorithmCase{"SingleElement", "conv_backward_filter x=f32:1x1x1x1 dy=f32:1x1x1x1 dw=f32:1x1x1x1",
                      few_products},
        AlgorithmCase{"Primes", "conv_backward_filter x=f32:3x5x11x13:nchw dy=f32:3x7x11x13:nchw dw=f32:7x5x3x3 pad=1",
                      few_channels},
        AlgorithmCase{"ChannelsLast",
                      "conv_backward_filter x=f16:2x40x8x7:nhwc dy=f16:2x36x8x7:nhwc dw=f16:36x40x3x3:nhwc pad=1",
                      many_channels},
        AlgorithmCase{"FirstLayer",
                      "conv_backward_filter x=bf16:2x3x19x21:nchw dy=bf16:2x16x10x11:nchw dw=bf16:16x3x7x7:nchw pad=3 "
                      "stride=2",
                      few_channels},
        AlgorithmCase{"OddStridesAndDilation",
                      "conv_backward_filter x=f32:2x4x17x19:nhwc dy=f32:2x6x5x8:nhwc dw=f32:6x4x3x2:nhwc stride=3,2 "
                      "dilation=2,3",
                      few_channels},
        // The last rows and columns of x meet no window.
        AlgorithmCase{"RestOfAStride",
                      "conv_backward_filter x=f32:1x4x9x10:656,160,16,1 dy=f32:1x6x3x3:400,64,16,1 "
                      "dw=f32:6x4x3x2:272,64,16,1 stride=3",
                      few_products},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_filter x=f16:1x18x9x7:nchw dy=f16:1x12x9x6:nchw dw=f16:12x18x2x4:nchw pad=1,2,0,0",
                      many_channels},
        AlgorithmCase{"Pointwise", "conv_backward_filter x=f32:2x20x4x6:nchw dy=f32:2x33x4x6:nchw dw=f32:33x20x1x1",
                      many_channels},
        AlgorithmCase{"WholeImage",
                      "conv_backward_filter x=f32:6x24x3x3:nhwc dy=f32:6x10x1x1 dw=f32:10x24x3x3:nhwc",
                      {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm"}},
        AlgorithmCase{"FullyConnected", "conv_backward_filter x=f32:40x17x1x1 dy=f32:40x36x1x1 dw=f32:36x17x1x1",
                      many_channels},
        AlgorithmCase{"Groups",
                      "conv_backward_filter x=f32:2x24x6x7:nchw dy=f32:2x36x6x7:nchw dw=f32:36x8x3x3 groups=3 pad=1 "
                      "mode=convolution",
                      few_channels},
        AlgorithmCase{
            "GroupsChannelsLast",
            "conv_backward_filter x=f16:2x12x6x5:600,1,96,16 dy=f16:2x8x5x3:nhwc dw=f16:8x6x2x3:nhwc groups=2",
            few_channels},
        AlgorithmCase{"DepthwiseChannelsLast",
                      "conv_backward_filter x=f16:2x40x9x7:nhwc dy=f16:2x40x5x4:nhwc dw=f16:40x1x3x3:nhwc groups=40 "
                      "pad=1 stride=2 mode=convolution",
                      few_channels},
        AlgorithmCase{"DepthwiseOfManyTaps",
                      "conv_backward_filter x=f32:1x3x13x12:nchw dy=f32:1x6x13x12:nchw dw=f32:6x1x7x7 groups=3 pad=3",
                      few_channels},
        AlgorithmCase{"EmptyBatch", "conv_backward_filter x=f32:0x4x6x6 dy=f32:0x8x4x4 dw=f32:8x4x3x3 beta=any",
                      any_batch},
        AlgorithmCase{"DynamicBatch",
                      "conv_backward_filter x=f32:4x4x6x7 dy=f32:4x8x6x7 dw=f32:8x4x3x3 pad=1 n=? alpha=any beta=1",
                      any_batch},
        AlgorithmCase{"AlphaZero", "conv_backward_filter x=f32:1x4x6x6 dy=f32:1x8x4x4 dw=f32:8x4x3x3 alpha=0 beta=any",
                      trusted},
        AlgorithmCase{"MixedTypesAndBlend",
                      "conv_backward_filter x=f16:2x20x6x6:nhwc dy=f32:2x12x6x6:nchw dw=bf16:12x20x3x3:nchw pad=1 "
                      "alpha=any beta=any",
                      {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm"}},
        AlgorithmCase{"SubRegions",
                      "conv_backward_filter x=f32:2x18x6x8:4000,200,24,2@4 dy=f32:2x8x6x8:1600,1,160,16 "
                      "dw=f32:8x18x3x3:400,20,5,1 pad=1",
                      many_channels},
        AlgorithmCase{"OneD",
                      "conv_backward_filter x=f32:3x8x17:ncw dy=f32:3x12x9:ncw dw=f32:12x8x5:ncw pad=2 stride=2",
                      few_products},
        AlgorithmCase{"ThreeDChannelsLast",
                      "conv_backward_filter x=f16:1x8x5x4x6:ndhwc dy=f16:1x16x2x4x3:ndhwc dw=f16:16x4x3x2x3:ndhwc "
                      "groups=2 pad=0,1,0,0,0,1 stride=2,1,2",
                      few_products}),
    case_name);

const Names bias = {"conv_backward_bias_simple", "conv_backward_bias_split"};

class ConvBackwardBias : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvBackwardBias, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvBackwardBias,
    testing::Values(
        AlgorithmCase{"Nchw", "conv_backward_bias dy=f32:3x7x11x13", bias},
        AlgorithmCase{"Vectors", "conv_backward_bias dy=f16:2x5x8x16 db=f32:5 alpha=any beta=any", bias},
        AlgorithmCase{"Nhwc", "conv_backward_bias dy=bf16:2x40x5x7:nhwc beta=1", bias},
        AlgorithmCase{"OneD", "conv_backward_bias dy=bf16:2x6x19:160,24,1@2", bias},
        AlgorithmCase{"ThreeD", "conv_backward_bias dy=f16:2x36x3x4x5:ndhwc db=f16:36:3", bias},
        AlgorithmCase{"SubRegion", "conv_backward_bias dy=f32:2x6x5x7:1000,120,20,2", bias},
        AlgorithmCase{"EmptyBatch", "conv_backward_bias dy=f32:0x6x5x7 beta=any", bias},
        AlgorithmCase{"AlphaZero", "conv_backward_bias dy=f32:1x6x5x7 alpha=0 beta=1", {"conv_backward_bias_simple"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardFilterConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_backward_filter_simple",
              "conv_backward_filter x=f16:2x6x7x5:nhwc dy=f16:2x4x5x1:nhwc dw=f16:4x3x3x3:nhwc groups=2 dilation=1,2"),
        cover("conv_backward_filter_implicit_gemm",
              "conv_backward_filter x=f16:2x24x7x9:nhwc dy=f16:2x72x7x9:nhwc dw=f16:72x12x3x3:nhwc groups=2 pad=1"),
        cover("conv_backward_filter_implicit_gemm_splitk",
              "conv_backward_filter x=f32:1x20x5x7 dy=f32:1x12x5x7 dw=f32:12x20x3x3 pad=1 beta=any"),
        cover("conv_backward_filter_simple",
              "conv_backward_filter x=f32:2x3x7x5 dy=f32:2x4x4x4 dw=f32:4x3x3x2 pad=1,0 stride=2,1"),
        cover("conv_backward_filter_direct",
              "conv_backward_filter x=f32:4x3x17x24 dy=f32:4x6x17x24 dw=f32:6x1x7x3 groups=3 pad=3,1"),
        cover("conv_backward_filter_direct",
              "conv_backward_filter x=f16:2x70x15x11:nhwc dy=f16:2x70x15x11:nhwc dw=f16:70x1x3x5:nhwc "
              "groups=70 pad=1,2"),
        cover("conv_backward_filter_implicit_gemm",
              "conv_backward_filter x=f32:2x10x13x11 dy=f32:2x68x13x6 dw=f32:68x10x3x3 pad=1 stride=1,2"),
        cover("conv_backward_filter_implicit_gemm_splitk",
              "conv_backward_filter x=f16:4x40x11x13:nhwc dy=f16:4x68x12x11:nhwc dw=f16:68x20x2x3:nhwc "
              "groups=2 pad=1,0")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardBiasConfigs, PairwiseMatch,
    testing::Values(cover("conv_backward_bias_simple", "conv_backward_bias dy=f16:3x5x1x7:nhwc"),
                    cover("conv_backward_bias_simple", "conv_backward_bias dy=f32:2x35x3x4"),
                    cover("conv_backward_bias_split", "conv_backward_bias dy=f32:9x3x33x32 beta=any"),
                    cover("conv_backward_bias_split", "conv_backward_bias dy=f16:9x72x31x33:nhwc")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardFilterWithWideOffsets, WideIndexMatch,
    testing::Values(wide(few_channels,
                         "conv_backward_filter x=f32:1x4x5x6x7:ncdhw dy=f32:1x6x5x6x7:ncdhw dw=f32:6x4x3x3x3 pad=1"),
                    wide(bias, "conv_backward_bias dy=f32:4x3x5x7:nhwc n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_backward_filter_test
