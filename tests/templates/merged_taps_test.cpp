// Convolutions whose filters are as large as their stride, such as patch embeddings: taps become channels.
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

}  // namespace
}  // namespace kiln::testing_support::merged_taps_test
