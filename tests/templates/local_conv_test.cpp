// The default configuration of every algorithm for local convolution and its gradients against the reference, on shapes
// that are awkward in one way each; pairwise covers of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::local_conv_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"local_conv_forward_simple", "local_conv_forward_implicit_gemm"};
const Names few_pixels = {"local_conv_forward_simple", "local_conv_forward_implicit_gemm", "local_conv_forward_dots"};
const Names data = {"local_conv_backward_data_simple", "local_conv_backward_data_implicit_gemm",
                    "local_conv_backward_data_columns"};
const Names data_in_place = {"local_conv_backward_data_simple", "local_conv_backward_data_implicit_gemm"};
const Names data_by_columns = {"local_conv_backward_data_simple", "local_conv_backward_data_columns"};
const Names filter = {"local_conv_backward_filter_simple", "local_conv_backward_filter_implicit_gemm"};
const Names forward_trusted = {"local_conv_forward_simple"};
const Names data_trusted = {"local_conv_backward_data_simple"};
const Names filter_trusted = {"local_conv_backward_filter_simple"};

class LocalConv : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(LocalConv, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, LocalConv,
    testing::Values(
        AlgorithmCase{"SingleElement", "local_conv_forward x=f32:1x1x1x1 w=f32:1x1x1x1", few_pixels},
        AlgorithmCase{"FiltersForEachOutputAsInKeras",
                      "local_conv_forward x=f32:5x3x5x7 w=f16:35x8x3x3x3:216,1,8,72,24 pad=1", few_pixels},
        AlgorithmCase{"ChannelsLast",
                      "local_conv_forward x=f16:3x40x4x3:nhwc w=f16:432x40x3x3:nhwc pad=1 epilogue=bias+relu",
                      few_pixels},
        AlgorithmCase{"UnevenChannelsLast",
                      "local_conv_forward x=bf16:2x16x7x9:nhwc w=bf16:96x16x3x3 pad=1 grid=3,4 beta=any", few_pixels},
        AlgorithmCase{"OneRegion", "local_conv_forward x=f32:2x5x6x7 w=f32:9x5x3x3 pad=1 grid=1", forward},
        AlgorithmCase{"StridesAndDilation",
                      "local_conv_forward x=f32:2x4x17x19:nhwc w=f32:48x4x3x2:nhwc stride=3,2 dilation=2,3 grid=2,4",
                      few_pixels},
        AlgorithmCase{"AsymmetricPads",
                      "local_conv_forward x=f16:1x8x9x7:800,90,8,1 w=f16:60x8x2x4:nhwc pad=1,3,0,2 stride=2 grid=5,1 "
                      "mode=convolution",
                      few_pixels},
        AlgorithmCase{"Pointwise", "local_conv_forward x=f32:35x20x2x3 w=f32:198x20x1x1", forward},
        AlgorithmCase{"Groups",
                      "local_conv_forward x=bf16:2x24x6x7:1300,50,8,1 w=bf16:216x8x3x3 groups=3 pad=1 grid=2,3",
                      few_pixels},
        AlgorithmCase{"ResidualAndBlend",
                      "local_conv_forward x=f16:2x8x7x8 w=f32:96x8x3x3 y=f32:2x8x7x8:nhwc pad=1 grid=3,4 alpha=any "
                      "beta=any epilogue=add+clip residual=f16:2x8x7x8",
                      few_pixels},
        AlgorithmCase{"SubRegions",
                      "local_conv_forward x=f32:2x18x6x8:4000,200,24,2@4 w=f32:48x18x3x3:400,20,5,1 "
                      "y=f32:2x8x6x8:1600,1,160,16 pad=1 grid=3,2",
                      few_pixels},
        AlgorithmCase{"EmptyBatch", "local_conv_forward x=f32:0x4x6x6 w=f32:32x4x3x3 grid=2", few_pixels},
        AlgorithmCase{"DynamicBatch", "local_conv_forward x=f32:4x4x6x7 w=f32:48x4x3x3 pad=1 grid=3,2 n=?", few_pixels},
        AlgorithmCase{"AlphaZero", "local_conv_forward x=f32:1x4x6x6 w=f32:32x4x3x3 grid=2 alpha=0 beta=any",
                      forward_trusted},
        AlgorithmCase{"ThreeD",
                      "local_conv_forward x=f32:2x4x5x4x6 w=f32:12x6x4x2x3x3:20,5,1,1200,800,250 pad=0,1,1 grid=2,3,2",
                      few_pixels},
        AlgorithmCase{"ThreeDChannelsLast",
                      "local_conv_forward x=f16:1x8x3x4x3:ndhwc w=f16:288x4x2x3x3:ndhwc groups=2 pad=0,1,1,0,1,0",
                      few_pixels}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    BackwardData, LocalConv,
    testing::Values(
        AlgorithmCase{"SingleElement", "local_conv_backward_data dy=f32:1x1x1x1 w=f32:1x1x1x1", data},
        AlgorithmCase{"FiltersForEachOutputAsInKeras",
                      "local_conv_backward_data dy=bf16:5x8x5x7 w=f32:35x8x3x3x3:216,1,8,72,24 pad=1", data},
        AlgorithmCase{"ChannelsLast",
                      "local_conv_backward_data dy=f16:3x36x4x3:nhwc w=f16:432x40x3x3:nhwc pad=1 alpha=any beta=any",
                      data},
        AlgorithmCase{"UnevenRegions", "local_conv_backward_data dy=f32:3x7x11x13 w=f32:105x5x3x3 pad=1 grid=5,3 n=?",
                      data},
        AlgorithmCase{"StridesAndDilation",
                      "local_conv_backward_data dy=f32:2x6x5x8 w=f32:48x4x3x2 dx=f32:2x4x17x19 epilogue=bias+add+relu "
                      "residual=f16:2x4x17x19:nhwc stride=3,2 "
                      "dilation=2,3 grid=2,4",
                      data},
        AlgorithmCase{"MirroredGroups",
                      "local_conv_backward_data dy=bf16:2x6x4x5 w=bf16:90x4x2x3:nhwc dx=bf16:2x12x3x3:nhwc groups=3 "
                      "pad=1,2 mode=convolution grid=3,5",
                      data},
        AlgorithmCase{"ElementsOutOfLine",
                      "local_conv_backward_data dy=f16:2x4x4x4 w=f16:16x3x3x3:64,20,4,1 pad=1 grid=2", data_in_place},
        AlgorithmCase{"SegmentsBeyondConstantMemory", "local_conv_backward_data dy=f32:1x1x9000 w=f32:9000x1x3",
                      data_by_columns},
        AlgorithmCase{"SubRegions",
                      "local_conv_backward_data dy=f32:2x8x6x8:1600,1,160,16 w=f32:48x18x3x3:400,18,6,2 "
                      "dx=f32:2x18x6x8:4000,200,24,2@4 pad=1 grid=3,2 beta=1",
                      data},
        AlgorithmCase{"EmptyBatch", "local_conv_backward_data dy=f32:0x4x6x6 w=f32:16x4x3x3 grid=2", data},
        AlgorithmCase{"AlphaZero", "local_conv_backward_data dy=f32:1x4x6x6 w=f32:16x4x3x3 grid=2 alpha=0 beta=any",
                      data_trusted},
        AlgorithmCase{"ThreeD", "local_conv_backward_data dy=f32:2x6x4x4x6 w=f32:72x4x2x3x3 pad=0,1,1 grid=2,3,2",
                      data}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    BackwardFilter, LocalConv,
    testing::Values(
        AlgorithmCase{"SingleElement", "local_conv_backward_filter x=f32:1x1x1x1 dy=f32:1x1x1x1 dw=f32:1x1x1x1",
                      filter},
        AlgorithmCase{"FiltersForEachOutputAsInKeras",
                      "local_conv_backward_filter x=f32:5x3x5x7 dy=f16:5x8x5x7 dw=f32:35x8x3x3x3:216,1,8,72,24 pad=1",
                      filter},
        AlgorithmCase{"ChannelsLast",
                      "local_conv_backward_filter x=f16:3x40x4x3:800,1,160,48 dy=f16:3x36x4x3:nhwc "
                      "dw=f16:432x40x3x3:nhwc pad=1 alpha=any beta=any",
                      filter},
        AlgorithmCase{"UnevenRegions",
                      "local_conv_backward_filter x=f32:3x5x11x13 dy=f32:3x7x11x13 dw=f32:105x5x3x3 pad=1 grid=5,3",
                      filter},
        AlgorithmCase{"StridesAndDilation",
                      "local_conv_backward_filter x=f32:2x4x17x19:nhwc dy=f32:2x6x5x8:nhwc dw=f32:48x4x3x2 stride=3,2 "
                      "dilation=2,3 grid=2,4",
                      filter},
        AlgorithmCase{"MirroredGroups",
                      "local_conv_backward_filter x=bf16:2x12x3x3:nhwc dy=bf16:2x6x4x5 dw=bf16:90x4x2x3:nhwc groups=3 "
                      "pad=1,2 mode=convolution grid=3,5",
                      filter},
        AlgorithmCase{"SubRegions",
                      "local_conv_backward_filter x=f32:2x18x6x8:4000,200,24,2@4 dy=f32:2x8x6x8:1600,1,160,16 "
                      "dw=f32:48x18x3x3:400,20,5,1 pad=1 grid=3,2 beta=1",
                      filter},
        AlgorithmCase{"EmptyBatch",
                      "local_conv_backward_filter x=f32:0x4x6x6 dy=f32:0x8x4x4 dw=f32:32x4x3x3 grid=2 beta=any",
                      filter_trusted},
        AlgorithmCase{"DynamicBatch",
                      "local_conv_backward_filter x=f32:4x4x6x7 dy=f32:4x8x6x7 dw=f32:48x4x3x3 pad=1 grid=3,2 n=?",
                      filter_trusted},
        AlgorithmCase{"AlphaZero",
                      "local_conv_backward_filter x=f32:1x4x6x6 dy=f32:1x8x4x4 dw=f32:32x4x3x3 grid=2 alpha=0 beta=any",
                      filter_trusted},
        AlgorithmCase{"ThreeD",
                      "local_conv_backward_filter x=f32:2x4x5x4x6 dy=f32:2x6x4x4x6 dw=f32:72x4x2x3x3 pad=0,1,1 "
                      "grid=2,3,2",
                      filter}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    LocalConvConfigs, PairwiseMatch,
    testing::Values(
        cover("local_conv_forward_simple",
              "local_conv_forward x=f16:3x4x5x5:nhwc w=f16:24x2x3x3:nhwc pad=1 groups=2 grid=2,3"),
        cover("local_conv_backward_data_simple",
              "local_conv_backward_data dy=f16:3x4x5x5:nhwc w=f16:24x2x3x3:nhwc pad=1 groups=2 grid=2,3"),
        cover("local_conv_backward_filter_simple",
              "local_conv_backward_filter x=f16:3x4x5x5:nhwc dy=f16:3x4x5x5:nhwc dw=f16:24x2x3x3:nhwc pad=1 groups=2 "
              "grid=2,3"),
        cover("local_conv_forward_simple", "local_conv_forward x=f32:2x3x7x5 w=f32:24x3x3x2 pad=1,0 grid=3,2"),
        cover("local_conv_backward_data_simple",
              "local_conv_backward_data dy=f32:2x4x7x4 w=f32:24x3x3x2 pad=1,0 grid=3,2"),
        cover("local_conv_backward_filter_simple",
              "local_conv_backward_filter x=f32:2x3x7x5 dy=f32:2x4x7x4 dw=f32:24x3x3x2 pad=1,0 grid=3,2"),
        cover("local_conv_forward_implicit_gemm",
              "local_conv_forward x=f32:5x10x5x7 w=f32:216x10x3x3 pad=1 stride=2,1 grid=2,3"),
        cover("local_conv_forward_implicit_gemm",
              "local_conv_forward x=f16:9x24x5x7:nhwc w=f16:240x12x3x3:nhwc pad=1 groups=2 grid=2,3"),
        cover("local_conv_forward_dots", "local_conv_forward x=f32:2x30x9x5 w=f32:360x30x3x3 pad=1 grid=3,3"),
        cover("local_conv_forward_dots",
              "local_conv_forward x=f16:5x40x3x4:nhwc w=f16:612x20x3x3:nhwc pad=1 groups=2 grid=2,3"),
        cover("local_conv_backward_data_implicit_gemm",
              "local_conv_backward_data dy=f16:9x24x5x4:nhwc w=f16:144x36x3x3:nhwc dx=f16:9x72x9x4:nhwc pad=1 "
              "stride=2,1 groups=2 grid=2,3"),
        cover("local_conv_backward_data_implicit_gemm",
              "local_conv_backward_data dy=f32:9x20x5x7 w=f32:120x34x3x3 pad=1 grid=2,3"),
        cover("local_conv_backward_data_columns",
              "local_conv_backward_data dy=f16:9x40x3x5:nhwc w=f16:240x9x3x3:nhwc pad=1 grid=2,3"),
        cover("local_conv_backward_data_columns",
              "local_conv_backward_data dy=f32:9x20x5x7 w=f32:120x5x3x3 pad=1 groups=2 grid=2,3"),
        cover("local_conv_backward_filter_implicit_gemm",
              "local_conv_backward_filter x=f16:9x24x5x7:nhwc dy=f16:9x40x5x7:nhwc dw=f16:240x12x3x3:nhwc "
              "pad=1 groups=2 grid=2,3"),
        cover("local_conv_backward_filter_implicit_gemm",
              "local_conv_backward_filter x=f32:5x10x5x7 dy=f32:5x36x3x7 dw=f32:216x10x3x3 pad=1 "
              "stride=2,1 grid=2,3")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    LocalConvWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide(few_pixels, "local_conv_forward x=f32:3x8x17 w=f32:48x8x5 pad=2 stride=2 grid=4"),
        wide(data, "local_conv_backward_data dy=f32:3x12x9 w=f32:48x8x5 dx=f32:3x8x17 pad=2 stride=2 grid=4"),
        wide(filter, "local_conv_backward_filter x=f32:3x8x17 dy=f32:3x12x9 dw=f32:48x8x5 pad=2 stride=2 grid=4")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::local_conv_test
