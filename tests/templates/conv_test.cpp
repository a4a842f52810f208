// The default configuration of every convolution algorithm against the reference, on shapes that are awkward in a
// few ways each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::conv_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"conv_simple"};
const Names short_filters = {"conv_simple", "conv_direct", "conv_implicit_gemm"};
const Names general = {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"};
const Names no_direct = {"conv_simple", "conv_implicit_gemm"};
const Names pointwise = {"conv_simple", "conv_direct", "conv_1x1"};
const Names deep_pointwise = {"conv_simple", "conv_direct", "conv_1x1", "conv_implicit_gemm_splitk"};
const Names depthwise_nchw = {"conv_simple", "conv_direct", "conv_depthwise_nchw"};
const Names depthwise_nhwc = {"conv_simple", "conv_direct", "conv_depthwise_nhwc"};
// Algorithms of a depthwise convolution with several filters for a channel.
const Names multiplier_nchw = {"conv_simple", "conv_direct", "conv_depthwise_nchw", "conv_implicit_gemm"};
const Names multiplier_nhwc = {"conv_simple", "conv_direct", "conv_depthwise_nhwc", "conv_implicit_gemm",
                               "conv_implicit_gemm_splitk"};

class ConvDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

// Shapes, by layout.
INSTANTIATE_TEST_SUITE_P(
    Nchw, ConvDefaults,
    testing::Values(
        AlgorithmCase{"FirstLayer", "conv_forward x=f32:1x3x19x21:nchw w=f32:16x3x7x7:nchw pad=3,3 stride=2,2",
                      short_filters},
        AlgorithmCase{"Primes", "conv_forward x=f16:2x5x11x13:nchw w=f16:7x5x3x3:nchw pad=1,1", general},
        AlgorithmCase{"OddStridesAndDilation",
                      "conv_forward x=f32:2x4x17x19:nchw w=f32:6x4x3x2:nchw stride=3,2 dilation=2,3", short_filters},
        AlgorithmCase{"AsymmetricPads",
                      "conv_forward x=f16:1x8x9x7:nchw w=f16:12x8x2x4:nchw pad=1,3,0,2 stride=1,2 epilogue=clip",
                      general},
        AlgorithmCase{"PaddingBeyondTheFilter",
                      "conv_forward x=f32:1x8x4x5:nchw w=f32:8x8x2x2:nchw bias=f32:8:3 pad=3,4,5,3 epilogue=bias",
                      general},
        AlgorithmCase{"Groups", "conv_forward x=bf16:2x24x6x7:nchw w=bf16:36x8x3x3:nchw groups=3 pad=1,1", general},
        AlgorithmCase{"DepthwiseColumns", "conv_forward x=f32:1x3x6x5 w=f32:3x1x3x1 groups=3 pad=1,0", depthwise_nchw},
        AlgorithmCase{"OneChannelAGroupOfMany", "conv_forward x=f32:1x6x5x5:nchw w=f32:12x3x1x3:nchw groups=2 pad=0,1",
                      short_filters},
        AlgorithmCase{"MirroredFilter", "conv_forward x=f32:1x9x8x9:nchw w=f32:5x9x3x2:nchw pad=2,1 mode=convolution",
                      short_filters},
        AlgorithmCase{"ManyTaps", "conv_forward x=f32:1x3x13x15:nchw w=f32:8x3x11x11:nchw pad=5,5 stride=4,4", general},
        AlgorithmCase{"TallWindow", "conv_forward x=f32:1x2x40x6:nchw w=f32:4x2x18x2:nchw dilation=2,1", no_direct},
        AlgorithmCase{"PointwiseVectors", "conv_forward x=f32:2x20x4x6:nchw w=f32:33x20x1x1:nchw", pointwise},
        AlgorithmCase{"PointwiseOddImage", "conv_forward x=f16:3x72x7x7:nchw w=f16:40x72x1x1:nchw", deep_pointwise},
        AlgorithmCase{"PointwiseGroups", "conv_forward x=bf16:2x32x4x4:nchw w=bf16:24x16x1x1:nchw groups=2", pointwise},
        AlgorithmCase{"PointwiseStride", "conv_forward x=f32:1x32x9x7:nchw w=f32:48x32x1x1:nchw stride=2,2", general},
        AlgorithmCase{"PointwisePadded", "conv_forward x=f32:1x8x5x5:nchw w=f32:8x8x1x1:nchw pad=1,0,0,2",
                      short_filters},
        AlgorithmCase{"DepthwiseMultiplier",
                      "conv_forward x=f16:1x5x8x16:800,150,18,1 w=f16:15x1x3x5:nchw groups=5 pad=1,2 stride=2,1",
                      multiplier_nchw},
        AlgorithmCase{"DepthwiseMirroredAndDilated",
                      "conv_forward x=bf16:2x4x13x11:nchw w=bf16:4x1x3x2:nchw groups=4 pad=3,1,2,0 dilation=2,3 "
                      "mode=convolution",
                      depthwise_nchw},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f32:0x8x6x6:nchw w=f32:8x8x3x3:nchw", general}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Nhwc, ConvDefaults,
    testing::Values(
        AlgorithmCase{"FirstLayer", "conv_forward x=f16:1x3x19x21:nhwc w=f16:16x3x7x7:nhwc pad=3,3 stride=2,2",
                      general},
        AlgorithmCase{"Primes", "conv_forward x=f32:2x5x11x13:nhwc w=f32:7x5x3x3:nhwc pad=1,1", general},
        AlgorithmCase{"OddStridesAndDilation",
                      "conv_forward x=bf16:2x4x17x19:nhwc w=bf16:6x4x3x2:nhwc stride=3,2 dilation=2,3 epilogue=add",
                      general},
        AlgorithmCase{"AsymmetricPads",
                      "conv_forward x=f32:1x8x9x7:nhwc w=f32:12x8x2x4:nhwc pad=1,3,0,2 stride=1,2 epilogue=relu",
                      general},
        AlgorithmCase{"PaddingBeyondTheFilter",
                      "conv_forward x=f32:1x8x4x5:nhwc w=f32:8x8x2x2:nhwc pad=3,4,5,3 mode=convolution", general},
        AlgorithmCase{"Groups", "conv_forward x=f32:2x24x6x7:nhwc w=f32:36x8x3x3:nhwc groups=3 pad=1,1", general},
        AlgorithmCase{"PointwiseVectors",
                      "conv_forward x=bf16:2x24x4x5:nhwc w=bf16:33x24x1x1:nhwc epilogue=bias+add+clip beta=any",
                      pointwise},
        AlgorithmCase{"PointwiseOddChannels", "conv_forward x=f32:2x13x5x5:nhwc w=f32:9x13x1x1:nhwc", pointwise},
        AlgorithmCase{"PointwiseStride", "conv_forward x=f16:1x32x9x7:nhwc w=f16:48x32x1x1:nhwc stride=2,2", general},
        AlgorithmCase{"Depthwise",
                      "conv_forward x=f16:2x24x9x7:nhwc w=f16:24x1x3x3:nhwc groups=24 pad=1,1 stride=2,2 "
                      "epilogue=bias+add+clip alpha=any beta=any",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseMultiplier",
                      "conv_forward x=f32:1x5x8x6:400,1,48,8 w=f32:20x1x3x5:nhwc groups=5 pad=1,2 stride=2,1 n=?",
                      multiplier_nhwc},
        AlgorithmCase{"DepthwiseMirroredAndDilated",
                      "conv_forward x=bf16:2x7x13x11:nhwc w=bf16:7x1x3x2:nhwc groups=7 pad=3,1,2,0 dilation=2,3 "
                      "mode=convolution",
                      depthwise_nhwc}),
    case_name);

// One pixel or one channel is packed in both orders.
INSTANTIATE_TEST_SUITE_P(BothLayouts, ConvDefaults,
                         testing::Values(AlgorithmCase{"SingleElement",
                                                       "conv_forward x=f32:1x1x1x1:nchw w=f32:1x1x1x1:nchw",
                                                       {"conv_simple", "conv_direct", "conv_depthwise_nchw",
                                                        "conv_depthwise_nhwc", "conv_1x1"}},
                                         AlgorithmCase{"FullyConnected",
                                                       "conv_forward x=f32:5x64x1x1:nchw w=f32:36x64x1x1:nchw",
                                                       deep_pointwise}),
                         case_name);

// Blend, epilogue, types, alignment, batch.
INSTANTIATE_TEST_SUITE_P(
    Calls, ConvDefaults,
    testing::Values(
        AlgorithmCase{"AlphaZero", "conv_forward x=f32:1x8x6x6:nchw w=f32:8x8x3x3:nchw alpha=0 beta=any epilogue=bias",
                      trusted},
        AlgorithmCase{"MixedTypes",
                      "conv_forward x=f16:1x8x6x8:nchw w=f32:12x8x3x3:nchw y=bf16:1x12x4x6:nchw bias=f32:12:n "
                      "residual=f32:1x12x4x6:nchw epilogue=bias+add",
                      general},
        AlgorithmCase{"MixedTypesNhwc",
                      "conv_forward x=bf16:1x8x6x8:nhwc w=f16:12x8x3x3:nhwc y=f32:1x12x4x6:nhwc bias=f16:12:n "
                      "epilogue=bias",
                      general},
        AlgorithmCase{"PoorlyAligned",
                      "conv_forward x=f16:1x16x6x6:nhwc@2 w=f16:16x16x3x3:nhwc@4 y=f16:1x16x4x4:nhwc@2", general},
        AlgorithmCase{"PoorlyAlignedPointwise",
                      "conv_forward x=f32:1x16x4x4:nchw@8 w=f32:16x16x1x1:nchw@4 y=f32:1x16x4x4:nchw@4", pointwise},
        AlgorithmCase{"DynamicBatch",
                      "conv_forward x=f32:8x8x5x6:nchw w=f32:12x8x3x3:nchw pad=1,1 n=? epilogue=bias+add", general},
        AlgorithmCase{"DynamicBatchInnermost",
                      "conv_forward x=f32:3x4x5x6:chwn w=f32:8x4x3x3 y=f32:3x8x5x6:chwn pad=1,1 n=?", general},
        AlgorithmCase{"DynamicBatchNhwc", "conv_forward x=f16:4x16x5x7:nhwc w=f16:24x16x3x3:nhwc pad=1,1 n=?",
                      general}),
    case_name);

// Sub-regions, dimension orders and operands that differ in both.
INSTANTIATE_TEST_SUITE_P(
    Strides, ConvDefaults,
    testing::Values(
        AlgorithmCase{"SubRegionOfNchw",
                      "conv_forward x=f32:2x8x6x8:1600,160,16,1 w=f32:12x8x3x3:200,20,5,1 y=f32:2x12x6x8:2000,160,12,1 "
                      "pad=1,1 epilogue=bias n=?",
                      general},
        AlgorithmCase{"SubRegionOfNhwc",
                      "conv_forward x=bf16:2x16x5x7:4000,1,320,24 w=bf16:24x16x3x3:nhwc y=bf16:2x24x5x7:5120,1,640,40 "
                      "pad=1,1 epilogue=relu",
                      general},
        AlgorithmCase{"ChannelsOfALargerTensor",
                      "conv_forward x=f16:2x12x5x6:1200,1,240,40@8 w=f16:8x12x1x1:nhwc y=f16:2x8x5x6:nhwc", pointwise},
        AlgorithmCase{"RowsOfALargerImage",
                      "conv_forward x=bf16:2x16x4x8:2048,128,12,1 w=bf16:12x16x1x1:nchw y=bf16:2x12x4x8:nchw",
                      pointwise},
        AlgorithmCase{"FromNchwToNhwc",
                      "conv_forward x=f32:2x8x6x7:nchw w=f32:12x8x3x3:nhwc y=f32:2x12x6x7:nhwc pad=1,1 "
                      "residual=f32:2x12x6x7:nchw epilogue=bias+add",
                      general},
        AlgorithmCase{"FromNhwcToNchw",
                      "conv_forward x=f16:2x16x5x8:1600,1,320,32 w=f16:24x16x3x3:nchw y=f16:2x24x5x8:nchw pad=1,1",
                      general},
        AlgorithmCase{"PointwiseFromNhwcToNchw",
                      "conv_forward x=f16:2x16x4x8:nhwc w=f16:24x16x1x1:nchw y=f16:2x24x4x8:nchw epilogue=clip",
                      pointwise},
        AlgorithmCase{"WidthOutermost", "conv_forward x=bf16:2x9x6x7:wnch w=bf16:8x9x3x2:whcn y=bf16:2x8x4x6:hwcn",
                      short_filters},
        AlgorithmCase{"EverySecondElement",
                      "conv_forward x=f32:2x3x6x5:400,120,11,2 w=f32:4x3x3x2:100,20,5,2 y=f32:2x4x4x4:300,1,64,8 "
                      "residual=f32:2x4x4x4:0,1,0,0 epilogue=bias+add",
                      short_filters},
        AlgorithmCase{"GroupsMirrored",
                      "conv_forward x=bf16:2x6x9x7:700,100,9,1 w=f16:4x3x2x3:nhwc y=f16:2x4x4x3:nchw groups=2 "
                      "stride=2,3 dilation=1,2 pad=0,2 mode=convolution epilogue=clip",
                      short_filters},
        AlgorithmCase{"DepthwiseSubRegion",
                      "conv_forward x=f32:2x6x9x12:2000,300,20,1 w=f32:6x1x3x3:20,9,3,1 y=f32:2x6x9x12:nhwc groups=6 "
                      "pad=1,1",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseSubRegionNhwc",
                      "conv_forward x=f16:2x24x9x7:4000,1,400,32 w=f16:24x1x3x3:nchw y=f16:2x24x5x4:nchw groups=24 "
                      "pad=1,1 stride=2,2",
                      depthwise_nhwc},
        AlgorithmCase{"RepeatedImage", "conv_forward x=f32:3x8x6x6:0,36,6,1 w=f32:8x8x3x3:nchw", general}),
    case_name);

// One and three spatial dimensions.
INSTANTIATE_TEST_SUITE_P(
    Dimensions, ConvDefaults,
    testing::Values(
        AlgorithmCase{"OneD", "conv_forward x=f32:2x8x17:ncw w=f32:12x8x5:ncw pad=2 stride=2 epilogue=bias+relu",
                      short_filters},
        AlgorithmCase{"OneDChannelsLast", "conv_forward x=f16:2x16x13:nwc w=f16:24x16x3:nwc pad=1,0 dilation=2",
                      general},
        AlgorithmCase{"OneDPointwise", "conv_forward x=f32:2x20x24:ncw w=f32:12x20x1:ncw", pointwise},
        AlgorithmCase{"OneDDepthwise", "conv_forward x=bf16:2x6x20:200,24,1 w=bf16:6x1x4:ncw groups=6 pad=1,2",
                      depthwise_nchw},
        AlgorithmCase{"OneDDepthwiseChannelsLast",
                      "conv_forward x=bf16:2x24x11:368,1,32 w=bf16:24x1x3:nwc groups=24 pad=1", depthwise_nhwc},
        AlgorithmCase{"ThreeD",
                      "conv_forward x=f32:1x4x5x6x7:ncdhw w=f32:6x4x3x3x3:ncdhw pad=3,1,1 epilogue=bias+add+relu",
                      general},
        AlgorithmCase{"ThreeDChannelsLast",
                      "conv_forward x=f16:2x8x5x4x6:ndhwc w=f16:16x8x3x2x3:ndhwc pad=1,0,1 stride=2,1,2 epilogue=clip",
                      general},
        AlgorithmCase{"ThreeDAwkward",
                      "conv_forward x=f32:1x6x7x5x6:ncdhw w=f32:4x3x2x3x1:ncdhw groups=2 pad=0,2,1,1,0,3 stride=2,1,3 "
                      "dilation=3,1,2 mode=convolution",
                      short_filters},
        AlgorithmCase{"ThreeDPointwise", "conv_forward x=f16:2x16x3x4x4:ncdhw w=f16:24x16x1x1x1:ncdhw epilogue=bias",
                      pointwise},
        AlgorithmCase{"ThreeDDepthwise",
                      "conv_forward x=f32:1x5x4x6x8:ncdhw w=f32:10x1x3x3x3:ncdhw groups=5 pad=1 stride=1,2,1",
                      multiplier_nchw},
        AlgorithmCase{"ThreeDDepthwiseChannelsLast",
                      "conv_forward x=f16:1x16x5x4x6:ndhwc w=f16:16x1x3x3x3:ndhwc groups=16 pad=1 dilation=2,1,1",
                      depthwise_nhwc},
        AlgorithmCase{
            "ThreeDSubRegion",
            "conv_forward x=f32:2x8x3x4x6:2400,240,64,8,1 w=f32:8x8x3x3x3:ncdhw y=f32:2x8x3x4x6:ndhwc pad=1 n=?",
            general}),
    case_name);

class ConvOn : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ConvOn, MatchesTheReference) {
  const Target target = target_of(GetParam().first, GetParam().second);
  expect_defaults_match(
      {"", "conv_forward x=bf16:1x32x6x6:nchw w=bf16:32x32x3x3:nchw pad=1,1 epilogue=bias+relu", general}, target);
  if (target.arch.major >= 8) return;
  expect_defaults_match(
      {"", "conv_forward x=f16:1x16x6x6:nhwc w=f16:16x1x3x3:nhwc groups=16 pad=1,1 epilogue=clip", depthwise_nhwc},
      target);
  expect_defaults_match({"", "conv_forward x=f32:1x64x4x4:nhwc w=f32:32x64x1x1:nhwc epilogue=relu", deep_pointwise},
                        target);
}

// Sources differ below 8.0 alone; from there on in how much shared memory the tiles of matrix products may take.
INSTANTIATE_TEST_SUITE_P(Architectures, ConvOn, testing::Values(std::pair{7, 5}, std::pair{8, 0}, std::pair{12, 0}),
                         [](const auto& test) {
                           return "Sm" + std::to_string(test.param.first * 10 + test.param.second);
                         });

}  // namespace
}  // namespace kiln::testing_support::conv_test
