// Every algorithm for the gradient of resize against the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::resize_backward_test {
namespace {

using Names = std::vector<std::string>;

const Names rows = {"resize_backward_simple", "resize_backward_nchw"};
const Names channels = {"resize_backward_simple", "resize_backward_nhwc"};
const Names all = {"resize_backward_simple", "resize_backward_nchw", "resize_backward_nhwc"};

class ResizeBackwardTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ResizeBackwardTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Nearest, ResizeBackwardTest,
    testing::Values(
        AlgorithmCase{
            "Twice",
            "resize_backward dy=f32:2x3x10x14 dx=f32:2x3x5x7 up=2 down=1 coordinates=asymmetric rounding=floor", rows},
        AlgorithmCase{"TwiceChannelsLast", "resize_backward dy=f16:2x8x10x14:nhwc dx=f16:2x8x5x7:nhwc up=2 down=1",
                      channels},
        AlgorithmCase{"Ties", "resize_backward dy=f32:1x2x4x12 dx=f32:1x2x6x8 coordinates=asymmetric", rows},
        AlgorithmCase{"TiesUp",
                      "resize_backward dy=f32:1x2x4x12 dx=f32:1x2x6x8 coordinates=asymmetric rounding=prefer_ceil",
                      rows},
        AlgorithmCase{"Ceil", "resize_backward dy=f32:1x3x11x4 dx=f32:1x3x6x9 rounding=ceil", rows},
        AlgorithmCase{"OfCorners",
                      "resize_backward dy=f16:1x16x11x4:nhwc dx=f16:1x16x6x9:nhwc coordinates=align_corners "
                      "rounding=floor",
                      channels},
        AlgorithmCase{"OfTensorFlow",
                      "resize_backward dy=f32:1x3x11x4 dx=f32:1x3x6x9 coordinates=tf_half_pixel_for_nn rounding=floor",
                      rows},
        AlgorithmCase{"ManyOutputs", "resize_backward dy=f32:1x2x3x129 dx=f32:1x2x3x4", rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Linear, ResizeBackwardTest,
    testing::Values(
        AlgorithmCase{"Up", "resize_backward dy=f32:2x3x10x14 dx=f32:2x3x5x7 mode=linear", rows},
        AlgorithmCase{"Down", "resize_backward dy=bf16:2x3x4x5 dx=bf16:2x3x15x17 mode=linear alpha=any beta=any", rows},
        AlgorithmCase{"Corners",
                      "resize_backward dy=f16:2x8x9x3:nhwc dx=f16:2x8x5x7:nhwc mode=linear coordinates=align_corners",
                      channels},
        AlgorithmCase{"OneDimension", "resize_backward dy=f32:2x3x31 dx=f32:2x3x13 mode=linear n=?", rows},
        AlgorithmCase{"ThreeDimensions", "resize_backward dy=f32:2x3x7x3x9 dx=f32:2x3x4x5x6 mode=linear", rows},
        AlgorithmCase{"OneAxisAlone", "resize_backward dy=f32:2x3x4x9 dx=f32:2x3x4x5 mode=linear", rows},
        AlgorithmCase{"ToOne",
                      "resize_backward dy=f32:2x3x1x1 dx=f32:2x3x4x5 mode=linear coordinates=pytorch_half_pixel", rows},
        AlgorithmCase{"OfOne", "resize_backward dy=f32:2x3x4x9 dx=f32:2x3x1x5 mode=linear coordinates=align_corners",
                      rows},
        AlgorithmCase{"OfOnePixel", "resize_backward dy=f32:2x3x40x9 dx=f32:2x3x1x1 mode=linear", all},
        AlgorithmCase{"ByAScale", "resize_backward dy=f32:1x2x3x4 dx=f32:1x2x5x7 up=10066330 down=16777216 mode=linear",
                      rows},
        AlgorithmCase{"ByAScaleSymmetrically",
                      "resize_backward dy=f32:1x2x12x16 dx=f32:1x2x5x7 up=12,23 down=5,10 mode=linear "
                      "coordinates=half_pixel_symmetric",
                      rows},
        AlgorithmCase{"ByAScaleOfCorners",
                      "resize_backward dy=f32:1x2x3x4 dx=f32:1x2x5x7 up=3 down=5 mode=linear coordinates=align_corners",
                      rows},
        AlgorithmCase{"EightTimes", "resize_backward dy=f32:1x3x40x56 dx=f32:1x3x5x7 mode=linear", rows},
        AlgorithmCase{"EightTimesChannelsLast",
                      "resize_backward dy=f16:1x16x40x56:nhwc dx=f16:1x16x5x7:nhwc mode=linear", channels},
        AlgorithmCase{"FromAnotherLayout", "resize_backward dy=f32:1x8x4x9:nhwc dx=f16:1x8x5x7 mode=linear alpha=any",
                      rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Cubic, ResizeBackwardTest,
    testing::Values(
        AlgorithmCase{"Up", "resize_backward dy=f32:2x3x10x15 dx=f32:2x3x5x7 mode=cubic", rows},
        AlgorithmCase{"Down", "resize_backward dy=f16:2x8x4x5:nhwc dx=f16:2x8x15x17:nhwc mode=cubic", channels},
        AlgorithmCase{"Excluded", "resize_backward dy=f32:2x3x10x4 dx=f32:2x3x5x7 mode=cubic outside=excluded", rows},
        AlgorithmCase{"ExcludedOfFew", "resize_backward dy=f32:1x3x5x7 dx=f32:1x3x2x3 mode=cubic outside=excluded",
                      rows},
        AlgorithmCase{"OfTwo", "resize_backward dy=f32:1x3x9x7 dx=f32:1x3x2x2 mode=cubic", rows},
        AlgorithmCase{"ByAScale",
                      "resize_backward dy=f32:1x2x3x4 dx=f32:1x2x5x7 up=3 down=5 mode=cubic coordinates=asymmetric",
                      rows}),
    case_name);

// One channel, which every kernel takes, packed and as regions of larger tensors.
std::vector<AlgorithmCase> in_every_dtype() {
  std::vector<AlgorithmCase> cases;
  for (const char* dtype : {"f32", "f16", "bf16"}) {
    cases.push_back({fmt::format("Packed_{}", dtype),
                     fmt::format("resize_backward dy={0}:2x1x7x8 dx={0}:2x1x4x5 mode=linear", dtype), all});
    cases.push_back({fmt::format("Regions_{}", dtype),
                     fmt::format("resize_backward dy={0}:2x1x7x8:300,99,11,1 dx={0}:2x1x4x5:99,33,7,1", dtype), all});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ResizeBackwardTest, testing::ValuesIn(in_every_dtype()), case_name);

INSTANTIATE_TEST_SUITE_P(
    Strides, ResizeBackwardTest,
    testing::Values(
        AlgorithmCase{"Rows", "resize_backward dy=f32:2x3x7x8:300,99,11,1 dx=f32:2x3x4x5:99,33,7,1 mode=linear", rows},
        AlgorithmCase{"Channels", "resize_backward dy=f16:2x3x7x8:300,1,40,5 dx=f16:2x3x4x5:99,1,24,4 mode=linear",
                      channels},
        AlgorithmCase{"EmptyBatch", "resize_backward dy=f32:0x3x3x3 dx=f32:0x3x4x5 mode=linear", rows},
        AlgorithmCase{"DynamicBatch", "resize_backward dy=f16:8x8x6x6:nhwc dx=f16:8x8x3x5:nhwc mode=linear n=?",
                      channels}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ResizeBackwardConfigs, PairwiseMatch,
    testing::Values(
        cover("resize_backward_simple", "resize_backward dy=f16:3x5x9x5 dx=f16:3x5x7x9 mode=linear"),
        cover("resize_backward_simple", "resize_backward dy=f32:2x3x8x10:nhwc dx=f32:2x3x4x5:nhwc"),
        cover("resize_backward_nchw", "resize_backward dy=f32:3x5x9x48 dx=f32:3x5x7x24 mode=linear"),
        cover("resize_backward_nchw", "resize_backward dy=f16:2x3x5x99 dx=f16:2x3x9x3 mode=linear"),
        cover("resize_backward_nhwc", "resize_backward dy=f16:2x24x9x11:nhwc dx=f16:2x24x5x7:nhwc mode=linear"),
        cover("resize_backward_nhwc", "resize_backward dy=f32:1x6x9x3:nhwc dx=f32:1x6x5x7:nhwc mode=cubic")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(ResizeBackwardWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(rows, "resize_backward dy=f32:4x8x5x7 dx=f32:4x8x3x5 mode=linear n=?"),
                                         wide(channels, "resize_backward dy=f32:4x8x5x7:nhwc dx=f32:4x8x3x5:nhwc")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::resize_backward_test
