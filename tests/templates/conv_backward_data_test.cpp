// The default configuration of every algorithm for a convolution's gradient by its input against the reference, on
// shapes that are awkward in one way each; a pairwise cover of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::conv_backward_data_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"conv_backward_data_simple"};
const Names short_filters = {"conv_backward_data_simple", "conv_backward_data_direct",
                             "conv_backward_data_implicit_gemm"};
const Names general = {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm",
                       "conv_backward_data_implicit_gemm_splitk"};
const Names no_direct = {"conv_backward_data_simple", "conv_backward_data_implicit_gemm",
                         "conv_backward_data_implicit_gemm_splitk"};
const Names depthwise_nchw = {"conv_backward_data_simple", "conv_backward_data_direct",
                              "conv_backward_data_depthwise_nchw"};
const Names depthwise_nhwc = {"conv_backward_data_simple", "conv_backward_data_direct",
                              "conv_backward_data_depthwise_nhwc"};

class ConvBackwardData : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvBackwardData, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    UnitStride, ConvBackwardData,
    testing::Values(
        AlgorithmCase{"SingleElement",
                      "conv_backward_data dy=bf16:1x1x1x1:nchw w=bf16:1x1x1x1:nchw",
                      {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_depthwise_nchw",
                       "conv_backward_data_depthwise_nhwc", "conv_backward_data_implicit_gemm"}},
        AlgorithmCase{"Primes", "conv_backward_data dy=f16:2x7x11x13:nchw w=f16:7x5x3x3:nchw pad=1", general},
        AlgorithmCase{"AsymmetricPads", "conv_backward_data dy=f16:1x12x9x8:nchw@2 w=f16:12x8x2x4:nchw@4 pad=1,3,0,2",
                      general},
        AlgorithmCase{"PaddingBeyondTheFilter",
                      "conv_backward_data dy=f32:1x8x11x11:nhwc w=f32:8x8x2x2:nhwc pad=3,4,5,3", general},
        AlgorithmCase{"Mirrored",
                      "conv_backward_data dy=f32:1x5x8x9:nhwc w=f32:5x9x3x2:nhwc pad=2,1 dilation=1,2 "
                      "mode=convolution",
                      general},
        AlgorithmCase{"Pointwise", "conv_backward_data dy=f16:2x72x4x6:nchw w=f16:72x20x1x1:nchw", general},
        AlgorithmCase{"PointwiseChannelsLast", "conv_backward_data dy=f32:2x36x5x5:nhwc w=f32:36x13x1x1:nhwc", general},
        AlgorithmCase{"Groups", "conv_backward_data dy=bf16:2x36x6x7:nchw w=bf16:36x8x3x3:nchw groups=3 pad=1 n=?",
                      general},
        AlgorithmCase{"Depthwise", "conv_backward_data dy=f32:2x6x9x12:nchw w=f32:6x1x3x3:nchw groups=6 pad=1",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseChannelsLast",
                      "conv_backward_data dy=f16:2x24x7x5:nhwc w=f16:24x1x3x3:nhwc groups=24 pad=1,0 dilation=2,1",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseMultiplier",
                      "conv_backward_data dy=f16:1x15x8x9:nchw w=f16:15x1x3x4:nchw groups=5 pad=1,2", short_filters},
        AlgorithmCase{"EmptyBatch", "conv_backward_data dy=f32:0x8x6x6:nchw w=f32:8x8x3x3:nchw", general}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Strides, ConvBackwardData,
    testing::Values(
        // The classes take apart a residual of another order than dx.
        AlgorithmCase{"Two",
                      "conv_backward_data dy=f32:1x20x6x5:nchw w=f32:20x6x3x3:nchw pad=1 stride=2 "
                      "epilogue=bias+add+relu bias=f16:6:2 residual=f16:1x6x11x9:800,1,70,7",
                      general},
        AlgorithmCase{"TwoWithOutputPad",
                      "conv_backward_data dy=f16:2x24x4x5:nhwc w=f16:24x16x3x3:nhwc pad=1 stride=2 output_pad=1 "
                      "epilogue=bias+add+clip residual=f32:2x16x8x10:nhwc@4",
                      general},
        AlgorithmCase{"Odd", "conv_backward_data dy=f32:1x6x5x6:nchw w=f32:6x4x4x3:nchw pad=1,2,0,1 stride=3,2",
                      short_filters},
        AlgorithmCase{"BeyondTheFilter",
                      "conv_backward_data dy=f32:2x9x3x4:nchw w=f32:9x5x2x1:nchw stride=3,2 beta=any", short_filters},
        AlgorithmCase{"PointwiseStride", "conv_backward_data dy=f16:1x32x5x4:nhwc w=f16:32x16x1x1:nhwc stride=2",
                      general},
        // Taps of both parities only along w: the dilation of h shares a factor with its stride.
        AlgorithmCase{
            "WithDilation",
            "conv_backward_data dy=f32:1x6x4x5:nchw w=f32:6x5x3x4:nchw pad=2,3 stride=2,2 dilation=2,3 beta=1",
            short_filters},
        AlgorithmCase{"FourOverSix",
                      "conv_backward_data dy=f32:1x4x3:ncw w=f32:4x3x5:ncw pad=7,5 stride=4 dilation=6 output_pad=3",
                      short_filters},
        AlgorithmCase{"DepthwiseStride",
                      "conv_backward_data dy=f32:2x5x5x6:210,41,8,1 w=f32:5x1x3x3:nchw groups=5 pad=1 stride=2",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseStrideChannelsLast",
                      "conv_backward_data dy=f32:1x20x4x5:500,1,120,24 w=f32:20x1x5x5:nhwc groups=20 pad=2 stride=1,2 "
                      "alpha=any beta=any mode=convolution epilogue=add+bias",
                      depthwise_nhwc},
        // More than 1024 blocks, whose classes take turns (lib/class_blocks.cuh).
        AlgorithmCase{"LargeGrid", "conv_backward_data dy=f32:8x4x129x131:nchw w=f32:4x2x3x3:nchw pad=1 stride=2",
                      Names{"conv_backward_data_implicit_gemm"}},
        AlgorithmCase{"ManyClasses", "conv_backward_data dy=f32:1x3x2x2:nchw w=f32:3x2x6x5:nchw pad=1 stride=5",
                      short_filters},
        AlgorithmCase{"TooManyClasses", "conv_backward_data dy=f32:1x3x2x2:nchw w=f32:3x2x9x9:nchw stride=9", trusted}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Calls, ConvBackwardData,
    testing::Values(
        AlgorithmCase{"AlphaZero", "conv_backward_data dy=f32:1x8x4x4:nchw w=f32:8x8x3x3:nchw alpha=0 beta=any",
                      trusted},
        AlgorithmCase{
            "MixedTypes",
            "conv_backward_data dy=f16:1x12x4x6:nchw w=f32:12x8x3x3:hwcn dx=bf16:1x8x4x6:nhwc pad=1 alpha=any",
            general},
        AlgorithmCase{"SubRegions",
                      "conv_backward_data dy=bf16:2x8x3x4:1600,160,16,1 w=bf16:8x6x3x3:200,20,5,1 "
                      "dx=bf16:2x6x6x8:2000,160,24,2 pad=1 stride=2",
                      general},
        AlgorithmCase{"OneD", "conv_backward_data dy=f32:2x12x7:ncw w=f32:12x8x5:ncw pad=2 stride=2", general},
        AlgorithmCase{"ThreeD",
                      "conv_backward_data dy=f32:1x6x4x3x5:ncdhw w=f32:6x4x3x3x2:ncdhw pad=1,1,0 stride=2,1,1",
                      short_filters},
        AlgorithmCase{"ThreeDChannelsLast",
                      "conv_backward_data dy=f16:1x16x3x4x3:ndhwc w=f16:16x8x2x3x3:ndhwc pad=0,1,1 groups=2", general}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardDataConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_backward_data_simple",
              "conv_backward_data dy=f16:2x6x5x7:nhwc w=f16:6x5x3x2:nhwc groups=2 dilation=1,2"),
        cover("conv_backward_data_direct",
              "conv_backward_data dy=f16:1x36x11x9:nhwc w=f16:36x8x3x2:nhwc pad=1,1 dilation=1,2"),
        cover("conv_backward_data_depthwise_nchw",
              "conv_backward_data dy=f16:2x2x4x12:nchw w=f16:2x1x5x3:nchw groups=2 pad=2,1 stride=2"),
        cover("conv_backward_data_depthwise_nhwc",
              "conv_backward_data dy=f32:1x5x8x7:nhwc w=f32:5x1x3x5:nhwc groups=5 pad=1,2"),
        cover("conv_backward_data_implicit_gemm_splitk",
              "conv_backward_data dy=f16:1x40x3x5:nhwc w=f16:40x24x3x3:nhwc pad=1"),
        cover("conv_backward_data_simple",
              "conv_backward_data dy=f32:2x4x4x5:nchw w=f32:4x3x3x2:nchw pad=1,0 stride=2,1"),
        cover("conv_backward_data_direct",
              "conv_backward_data dy=f32:2x20x4x5:nchw w=f32:20x6x3x5:nchw groups=2 pad=1,2 stride=2,1"),
        cover("conv_backward_data_depthwise_nchw",
              "conv_backward_data dy=bf16:1x3x4x8:256,80,16,1 w=bf16:3x1x3x3:nchw groups=3 pad=1 stride=2,1"),
        cover("conv_backward_data_depthwise_nhwc",
              "conv_backward_data dy=bf16:1x72x9x6:5000,1,512,80 w=bf16:72x1x3x3:nhwc groups=72 pad=1 stride=1,2"),
        cover("conv_backward_data_implicit_gemm",
              "conv_backward_data dy=f32:2x10x13x11:nchw w=f32:10x68x3x3:nchw pad=1"),
        cover("conv_backward_data_implicit_gemm",
              "conv_backward_data dy=f16:2x40x6x13:nhwc w=f16:40x68x3x3:nhwc groups=2 pad=1,2 dilation=1,2 "
              "stride=2,1"),
        cover("conv_backward_data_implicit_gemm_splitk",
              "conv_backward_data dy=f32:1x68x5x7:nhwc w=f32:68x68x3x3:nchw pad=1 stride=2,1 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardDataWithWideOffsets, WideIndexMatch,
    testing::Values(wide(general, "conv_backward_data dy=f32:2x16x4x6:nchw w=f32:16x12x3x3:nhwc pad=1 stride=2,1 n=?"),
                    wide({"conv_backward_data_depthwise_nchw"},
                         "conv_backward_data dy=f32:2x6x5x8:nchw w=f32:6x1x3x3:nchw groups=6 pad=1 stride=2,1"),
                    wide({"conv_backward_data_depthwise_nhwc"},
                         "conv_backward_data dy=f32:2x8x5x7:nhwc w=f32:8x1x3x3:nhwc groups=8 pad=1")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_backward_data_test
