// Convolution of few channels by large windows on f32 lanes, and its gradients, against the reference: defaults on
// layers that are awkward in a few ways each, pairwise covers of the configurations, 64-bit offsets; refusals.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::conv_windows_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"conv_depthwise_windows"};
const Names by_input = {"conv_backward_data_depthwise_windows"};
const Names by_filter = {"conv_backward_filter_depthwise_windows"};

class ConvWindows : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvWindows, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, ConvWindows,
    testing::Values(
        AlgorithmCase{"Depthwise", "conv_forward x=f32:2x3x11x19 w=f32:3x1x7x9 pad=3,4 groups=3 epilogue=bias+add+relu",
                      forward},
        AlgorithmCase{"LargerThanTheImage", "conv_forward x=f16:1x2x6x5 w=f16:2x1x13x15 pad=6,7 groups=2", forward},
        AlgorithmCase{"ChannelsLast",
                      "conv_forward x=bf16:2x5x9x37:nhwc w=bf16:5x1x4x9:nhwc groups=5 pad=1,4 epilogue=clip alpha=any "
                      "beta=any",
                      forward},
        AlgorithmCase{"StridedRows",
                      "conv_forward x=f32:1x2x29x18 w=f32:2x1x5x8 pad=4,2 stride=3,1 dilation=2,1 groups=2", forward},
        AlgorithmCase{"Mirrored", "conv_forward x=f32:2x2x13x21 w=f32:2x1x4x8 groups=2 pad=3,1,2,5 mode=convolution",
                      forward},
        AlgorithmCase{"Regions",
                      "conv_forward x=f32:2x4x9x17:9000,900,32,1 w=f32:4x1x7x7:200,100,14,2 "
                      "y=f32:2x4x9x17:8000,900,28,1 groups=4 pad=3 epilogue=bias",
                      forward},
        AlgorithmCase{"RegionsOfF16",
                      "conv_forward x=f16:2x4x9x17:9000,900,32,1@2 w=f16:4x1x7x7:200,100,14,2@2 "
                      "y=f16:2x4x9x17:8000,1,700,28@2 groups=4 pad=3 epilogue=bias",
                      forward},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_forward x=bf16:2x4x9x17:9000,900,32,1@2 w=bf16:4x1x7x7:200,100,14,2@2 "
                      "y=bf16:2x4x9x17:8000,1,700,28@2 groups=4 pad=3 epilogue=bias",
                      forward},
        AlgorithmCase{"FewChannels", "conv_forward x=f32:1x3x8x20 w=f32:4x3x3x11 pad=1,5 n=?", forward},
        AlgorithmCase{"Groups", "conv_forward x=f16:2x6x9x14 w=f16:4x3x5x7 groups=2 pad=2,3", forward},
        AlgorithmCase{"Multiplier", "conv_forward x=f32:1x2x9x14 w=f32:6x1x5x7 groups=2 pad=2,3", forward},
        AlgorithmCase{"Line", "conv_forward x=f32:2x1x300 w=f32:1x1x67 pad=33 epilogue=bias", forward},
        AlgorithmCase{"Column", "conv_forward x=f32:1x2x90x3 w=f32:2x1x40x1 pad=20,0 groups=2 dilation=1,2", forward},
        AlgorithmCase{"Int8", "conv_forward x=i8:1x2x9x14 w=i8:2x1x5x7 groups=2 pad=2,3 y=i32:1x2x9x14", forward},
        AlgorithmCase{
            "Int8Regions",
            "conv_forward x=i8:1x2x9x14:500,200,18,1 w=i8:2x1x5x7:80,40,8,1 y=i8:1x2x9x14:600,300,30,2 groups=2 "
            "pad=2,3 alpha=any",
            forward},
        AlgorithmCase{"UnsignedInt8",
                      "conv_forward x=u8:1x2x9x14 w=u8:2x1x5x7 groups=2 pad=2,3 y=u8:1x2x9x14 alpha=any", forward},
        AlgorithmCase{
            "UnsignedInt8Regions",
            "conv_forward x=u8:1x2x9x14:500,200,18,1 w=u8:2x1x5x7:80,40,8,1 y=u8:1x2x9x14:600,300,30,2 groups=2 "
            "pad=2,3 alpha=any",
            forward},
        AlgorithmCase{"Fp8",
                      "conv_forward x=f8e4m3:1x2x9x14 w=f8e4m3:2x1x5x7 groups=2 pad=2,3",
                      {"conv_depthwise_windows", "conv_depthwise_nchw"}},
        AlgorithmCase{"Volume", "conv_forward x=f32:1x2x5x9x10 w=f32:2x1x3x5x6 pad=1,2,2 stride=2,1,1 groups=2",
                      forward},
        AlgorithmCase{"PaddedPlanes", "conv_forward x=f32:1x2x4x9x9 w=f32:2x1x1x6x6 pad=1,0,0 groups=2", forward},
        AlgorithmCase{"DilatedPlanes", "conv_forward x=f32:1x2x5x9x9 w=f32:2x1x2x4x4 dilation=2,1,1 groups=2", forward},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f32:0x3x11x19 w=f32:3x1x7x9 pad=3,4 groups=3", forward}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByInput, ConvWindows,
    testing::Values(
        AlgorithmCase{"Depthwise", "conv_backward_data dy=f32:2x3x11x19 w=f32:3x1x7x9 pad=3,4 groups=3", by_input},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_data dy=bf16:1x4x9x20 w=bf16:4x1x5x7 groups=4 pad=3,1,1,5 mode=convolution "
                      "epilogue=bias+add beta=any",
                      by_input},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f16:2x4x9x17:9000,900,32,1@2 w=f16:4x1x4x9:200,100,14,1@2 "
                      "dx=f16:2x4x12x17:9000,1,700,32@2 groups=4 pad=0,4",
                      by_input},
        AlgorithmCase{"RegionsOfF32",
                      "conv_backward_data dy=f32:2x4x9x17:9000,900,32,1 w=f32:4x1x4x9:200,100,14,1 "
                      "dx=f32:2x4x12x17:9000,1,700,32 groups=4 pad=0,4",
                      by_input},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_data dy=bf16:2x4x9x17:9000,900,32,1@2 w=bf16:4x1x4x9:200,100,14,1@2 "
                      "dx=bf16:2x4x12x17:9000,1,700,32@2 groups=4 pad=0,4",
                      by_input},
        AlgorithmCase{"MirroredVolume", "conv_backward_data dy=f32:2x2x4x5x6 w=f32:2x2x2x4x5 groups=2", by_input},
        AlgorithmCase{"LineOfSeveralFilters", "conv_backward_data dy=f16:1x5x200 w=f16:5x1x65 pad=32 n=?", by_input}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByFilter, ConvWindows,
    testing::Values(
        AlgorithmCase{"Depthwise",
                      "conv_backward_filter x=f32:2x3x11x19 dy=f32:2x3x11x19 dw=f32:3x1x7x9 pad=3,4 groups=3",
                      by_filter},
        AlgorithmCase{
            "ChannelsLast",
            "conv_backward_filter x=bf16:3x5x9x37:nhwc dy=bf16:3x5x9x36 dw=f32:5x1x5x10:nhwc groups=5 pad=2,4 "
            "alpha=any beta=any",
            by_filter},
        AlgorithmCase{"Regions",
                      "conv_backward_filter x=f16:2x4x19x17:9000,900,40,1@2 dy=f16:2x4x19x17:9000,1,500,24@2 "
                      "dw=f16:4x1x3x9:200,100,20,2@2 groups=4 pad=1,4",
                      by_filter},
        AlgorithmCase{"RegionsOfF32",
                      "conv_backward_filter x=f32:2x4x19x17:9000,900,40,1 dy=f32:2x4x19x17:9000,1,500,24 "
                      "dw=f32:4x1x3x9:200,100,20,2 groups=4 pad=1,4",
                      by_filter},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_filter x=bf16:2x4x19x17:9000,900,40,1@2 dy=bf16:2x4x19x17:9000,1,500,24@2 "
                      "dw=bf16:4x1x3x9:200,100,20,2@2 groups=4 pad=1,4",
                      by_filter},
        AlgorithmCase{"Fp8",
                      "conv_backward_filter x=f8e4m3:2x2x9x14 dy=f8e4m3:2x2x9x14 dw=f8e4m3:2x1x3x5 groups=2 pad=1,2",
                      {"conv_backward_filter_depthwise_windows", "conv_backward_filter_depthwise_nchw"}},
        AlgorithmCase{"StridedRows",
                      "conv_backward_filter x=f32:2x2x21x17 dy=f32:2x2x10x17 dw=f32:2x1x3x5 pad=1,2 stride=2,1 "
                      "dilation=2,1 groups=2",
                      by_filter},
        AlgorithmCase{"FewChannels", "conv_backward_filter x=f16:2x3x9x30 dy=f16:2x4x9x30 dw=f16:4x3x3x7 pad=1,3",
                      by_filter},
        AlgorithmCase{"Line", "conv_backward_filter x=f32:2x1x300 dy=f32:2x1x300 dw=f32:1x1x67 pad=33", by_filter}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ConvWindowsConfigs, PairwiseMatch,
    testing::Values(cover("conv_depthwise_windows",
                          "conv_forward x=f32:1x2x35x37 w=f32:2x1x6x7 pad=3 groups=2 epilogue=bias"),
                    cover("conv_depthwise_windows", "conv_forward x=f16:2x2x3x70 w=f16:3x2x2x33 pad=1,16"),
                    cover("conv_backward_data_depthwise_windows",
                          "conv_backward_data dy=f32:1x2x35x37 w=f32:2x1x6x7 pad=3 groups=2"),
                    cover("conv_backward_data_depthwise_windows",
                          "conv_backward_data dy=bf16:2x3x3x70:nhwc w=bf16:3x2x2x33 pad=1,16"),
                    cover("conv_backward_filter_depthwise_windows",
                          "conv_backward_filter x=f32:2x2x24x40 dy=f32:2x2x9x9 dw=f32:2x1x16x32 groups=2"),
                    cover("conv_backward_filter_depthwise_windows",
                          "conv_backward_filter x=bf16:2x2x20x21:nhwc dy=bf16:2x3x17x17 dw=f32:3x2x4x5 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvWindowsWithWideOffsets, WideIndexMatch,
    testing::Values(wide(forward, "conv_forward x=f32:2x3x11x19 w=f32:3x1x7x9 pad=3,4 groups=3"),
                    wide(by_input, "conv_backward_data dy=f32:2x3x11x19 w=f32:3x1x7x9 pad=3,4 groups=3"),
                    wide(by_filter, "conv_backward_filter x=f32:2x3x9x9 dy=f32:2x3x9x9 dw=f32:3x1x3x3 pad=1 groups=3")),
    cover_name);

TEST(ConvWindowsRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("conv_depthwise_windows", "conv_forward " + request);
  };
  EXPECT_EQ(refusal("x=f32:1x8x9x9 w=f32:8x1x7x7 groups=8"), "none");
  EXPECT_EQ(refusal("x=f32:1x8x9x9 w=f32:8x1x5x5 groups=8"), "a window has fewer than 32 taps");
  EXPECT_EQ(refusal("x=f32:1x17x9x9 w=f32:8x17x7x7"), "a group has more than 16 channels of x");
  EXPECT_EQ(refusal("x=f32:1x8x19x19 w=f32:8x1x7x7 groups=8 stride=2"),
            "the stride keeps neighbouring outputs apart, or filters are met backwards");
  EXPECT_EQ(refusal("x=f32:1x8x19x19 w=f32:8x1x7x7 groups=8 dilation=2"), "dilation keeps the taps of a row apart");
  EXPECT_EQ(refusal("x=f32:1x1x4100 w=f32:1x1x4097"), "a row has more than 4096 taps");
  EXPECT_EQ(refusal_of("conv_backward_data_depthwise_windows",
                       "conv_backward_data dy=f32:1x2x9x20 w=f32:2x1x9x9 dx=f32:1x2x19x28 groups=2 stride=2,1 pad=3,0"),
            "the strides make several classes of taps");
  const std::string gradient = "conv_backward_filter_depthwise_windows";
  EXPECT_EQ(refusal_of(gradient, "conv_backward_filter x=f32:17x2x9x9 dy=f32:17x2x6x6 dw=f32:2x1x4x4 groups=2"),
            "none");
  EXPECT_EQ(refusal_of(gradient, "conv_backward_filter x=f32:2x17x9x9 dy=f32:2x2x6x6 dw=f32:2x17x4x4"),
            "a group has more than 16 channels of x");
}

}  // namespace
}  // namespace kiln::testing_support::conv_windows_test
