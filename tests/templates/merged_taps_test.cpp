// Convolutions whose filters are as large as their stride, such as patch embeddings, or several times as large: taps
// become channels. In gradients by the input, which transposed convolutions are, phases of the stride do so.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm_cases.h"

namespace kiln::testing_support::merged_taps_test {
namespace {

using Names = std::vector<std::string>;

// On tensor cores only because merged channels stand in pairs: there are 3, or 1, of them.
const Names copied = {"conv_simple", "conv_direct", "conv_tensor"};
const Names every_request = {"conv_simple", "conv_direct", "conv_implicit_gemm"};
const Names product = {"conv_simple", "conv_direct", "conv_1x1"};

class Patches : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Patches, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, Patches,
    testing::Values(
        AlgorithmCase{"ChannelsLast",
                      "conv_forward x=bf16:2x3x8x12:nhwc w=bf16:24x3x4x4:nhwc bias=f32:24 stride=4 epilogue=bias",
                      copied},
        AlgorithmCase{"OddTapsThatLeavePixels", "conv_forward x=f32:1x5x8x11:nhwc w=f32:7x5x3x2:nhwc stride=3,2",
                      every_request},
        AlgorithmCase{"RowsApart",
                      "conv_forward x=f16:2x3x6x8:224,1,32,3 w=f16:8x3x3x4:nhwc stride=3,4 alpha=any beta=any n=?",
                      copied},
        AlgorithmCase{"ColumnsOnly", "conv_forward x=f16:1x3x7x8:nhwc w=f16:8x3x3x4:nhwc pad=1,0 stride=1,4", copied},
        AlgorithmCase{"WholeImage", "conv_forward x=f32:3x4x3x5:nhwc w=f32:6x4x3x5:nhwc", product},
        AlgorithmCase{"OneChannelOfPixels", "conv_forward x=bf16:2x1x6x8:nchw w=bf16:8x1x3x4:nchw stride=3,4", copied},
        AlgorithmCase{"RowsOfPixels", "conv_forward x=bf16:1x3x16x24:nchw w=bf16:8x3x8x8:nchw stride=8", copied},
        AlgorithmCase{"OneD", "conv_forward x=f32:2x3x17:nwc w=f32:8x3x5:nwc stride=5", product},
        AlgorithmCase{"ThreeD", "conv_forward x=f16:1x3x4x6x8:ndhwc w=f16:8x3x2x3x4:ndhwc stride=2,3,4", copied},
        AlgorithmCase{"TwiceTheStride",
                      "conv_forward x=bf16:2x3x20x24:nhwc w=bf16:24x3x8x8:nhwc stride=4 epilogue=bias+add alpha=any",
                      copied},
        AlgorithmCase{"ThreeTimesTheStride", "conv_forward x=f32:1x5x13x17:nhwc w=f32:7x5x3x9:nhwc stride=1,3",
                      every_request},
        AlgorithmCase{"PaddingOfWholeStrides",
                      "conv_forward x=f16:2x3x16x12:nhwc w=f16:8x3x8x4:nhwc pad=4,2,8,6 stride=4,2 n=?", copied},
        AlgorithmCase{"PixelsBehindTheLastWindow",
                      "conv_forward x=f16:2x3x19x18:nhwc w=f16:8x3x8x8:nhwc pad=4,4,0,0 stride=4", copied},
        AlgorithmCase{"WindowsThatEndInAPartOfAStride",
                      "conv_forward x=f32:1x3x18x15:nhwc w=f32:8x3x8x4:nhwc pad=0,0,2,1 stride=4,2", every_request},
        AlgorithmCase{"PaddingOfAPartOfAStride",
                      "conv_forward x=f32:1x3x17x15:nhwc w=f32:8x3x8x4:nhwc pad=3,1 stride=4,2", every_request},
        AlgorithmCase{"OneStrideInThePadding", "conv_forward x=f32:1x2x3x9:nhwc w=f32:6x2x8x8:nhwc pad=4 stride=4",
                      every_request},
        AlgorithmCase{"OverlappingRowsOfPixels", "conv_forward x=bf16:1x3x24x40:nchw w=bf16:8x3x16x16:nchw stride=8",
                      copied},
        AlgorithmCase{"OverlappingOneD", "conv_forward x=f32:2x1x1000 w=f32:9x1x400 stride=100", every_request},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f16:0x3x8x8:nhwc w=f16:8x3x4x4:nhwc stride=4", copied},
        AlgorithmCase{"OneChannelIsDepthwise",
                      "conv_forward x=f32:2x1x6x8:nchw w=f32:1x1x3x4:nchw stride=3,4",
                      {"conv_simple", "conv_direct", "conv_depthwise_nchw"}},
        AlgorithmCase{"WholeImageByWinograd",
                      "conv_forward x=f32:3x4x3x3:nhwc w=f32:6x4x3x3:nhwc fast",
                      {"conv_1x1", "conv_winograd_2x2", "conv_winograd_4x4_fused"}},
        AlgorithmCase{"MirroredFilter", "conv_forward x=f32:1x3x8x8:nhwc w=f32:4x3x4x4:nhwc stride=4 mode=convolution",
                      every_request},
        AlgorithmCase{"FiltersApart", "conv_forward x=f32:1x4x8x8:nhwc w=f32:4x4x2x2:nchw stride=2", every_request}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    GradientByTheFilter, Patches,
    testing::Values(
        AlgorithmCase{"GradientOfPatches",
                      "conv_backward_filter x=bf16:2x3x8x12:nhwc dy=bf16:2x24x2x3:nhwc dw=bf16:24x3x4x4:nhwc stride=4",
                      {"conv_backward_filter_simple", "conv_backward_filter_tensor"}},
        AlgorithmCase{"GradientOfOddTaps",
                      "conv_backward_filter x=f32:2x5x8x11:nhwc dy=f32:2x7x2x5:nhwc dw=f32:7x5x3x2:nhwc stride=3,2 "
                      "alpha=any beta=any",
                      {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm"}}),
    case_name);

// Without phases the strides of the first six would make more than 64 classes of taps, which no product serves.
const Names gradient = {"conv_backward_data_simple", "conv_backward_data_implicit_gemm"};
const Names tensor_gradient = {"conv_backward_data_simple", "conv_backward_data_tensor"};

INSTANTIATE_TEST_SUITE_P(
    GradientByTheInput, Patches,
    testing::Values(
        AlgorithmCase{"PatchesOfNine",
                      "conv_backward_data dy=f16:2x24x3x3:nhwc w=f16:24x2x9x9:nhwc dx=f16:2x2x27x27:nhwc stride=9",
                      tensor_gradient},
        AlgorithmCase{"PatchesOfPixels",
                      "conv_backward_data dy=f32:2x10x3x2:nchw w=f32:10x2x9x8:nchw dx=f32:2x2x27x16:nchw stride=9,8",
                      gradient},
        AlgorithmCase{"OverlapAdd",
                      "conv_backward_data dy=f32:2x9x7 w=f32:9x1x400 dx=f32:2x1x1000 stride=100",
                      {"conv_backward_data_simple", "conv_backward_data_implicit_gemm",
                       "conv_backward_data_implicit_gemm_splitk"}},
        AlgorithmCase{"OverlapAddOfManyChannels",
                      "conv_backward_data dy=f32:3x5x4:nwc w=f32:5x7x240:nwc dx=f32:3x7x480:nwc stride=80 alpha=any "
                      "beta=any epilogue=relu",
                      gradient},
        AlgorithmCase{"AnyBatch",
                      "conv_backward_data dy=f16:2x16x3x3:nhwc w=f16:16x2x9x9:nhwc dx=f16:2x2x27x27:nhwc stride=9 "
                      "n=?",
                      tensor_gradient},
        AlgorithmCase{"ThreeAxes",
                      "conv_backward_data dy=f32:1x4x3x3x3:ndhwc w=f32:4x3x2x8x8:ndhwc dx=f32:1x3x6x24x24:ndhwc "
                      "stride=2,8,8",
                      gradient},
        AlgorithmCase{"PaddedByWholeStrides",
                      "conv_backward_data dy=f32:2x9x8x2:nhwc w=f32:9x2x18x8:nhwc dx=f32:2x2x63x16:nhwc pad=9,0,9,0 "
                      "stride=9,8 alpha=any",
                      gradient},
        AlgorithmCase{"WindowsThatEndBehindThePixels",
                      "conv_backward_data dy=f32:2x4x5 w=f32:4x1x210 dx=f32:2x1x140 stride=70 pad=140,210", gradient},
        AlgorithmCase{"ABiasForEachChannel",
                      "conv_backward_data dy=f32:2x8x2x2:nhwc w=f32:8x3x4x4:nhwc dx=f32:2x3x8x8:nhwc stride=4 "
                      "epilogue=bias",
                      gradient},
        AlgorithmCase{"PixelsLeftOver",
                      "conv_backward_data dy=f32:2x8x2x2:nhwc w=f32:8x3x4x4:nhwc dx=f32:2x3x9x11:nhwc stride=4",
                      gradient},
        AlgorithmCase{"MirroredFilterOfPhases",
                      "conv_backward_data dy=f32:2x8x2x2:nhwc w=f32:8x3x4x4:nhwc dx=f32:2x3x8x8:nhwc stride=4 "
                      "mode=convolution",
                      gradient},
        AlgorithmCase{"GroupsOfPhases",
                      "conv_backward_data dy=f32:2x8x2x2:nhwc w=f32:8x3x4x4:nhwc dx=f32:2x6x8x8:nhwc stride=4 groups=2",
                      gradient},
        AlgorithmCase{"StrideAndDilationWithAFactor",
                      "conv_backward_data dy=f32:2x6x4 w=f32:6x2x10 dx=f32:2x2x361 stride=81 pad=3 dilation=9",
                      {"conv_backward_data_simple"}},
        AlgorithmCase{"StrideAndDilationWithoutOne",
                      "conv_backward_data dy=f32:2x6x3 w=f32:6x2x70 dx=f32:2x2x398 stride=82 dilation=3",
                      {"conv_backward_data_simple"}},
        AlgorithmCase{"TapsThatStartInThePadding",
                      "conv_backward_data dy=f32:2x6x4 w=f32:6x2x401 dx=f32:2x2x640 stride=160 pad=200",
                      {"conv_backward_data_simple"}}),
    case_name);

}  // namespace
}  // namespace kiln::testing_support::merged_taps_test
