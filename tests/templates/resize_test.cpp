// Every algorithm for resize against the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::resize_test {
namespace {

using Names = std::vector<std::string>;

const Names rows = {"resize_simple", "resize_nchw"}, channels = {"resize_simple", "resize_nhwc"};
const Names all = {"resize_simple", "resize_nchw", "resize_nhwc"};

class ResizeTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ResizeTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Nearest, ResizeTest,
    testing::Values(
        AlgorithmCase{"Twice", "resize x=f32:2x3x5x7 up=2 down=1 coordinates=asymmetric rounding=floor", rows},
        AlgorithmCase{"TwiceChannelsLast", "resize x=f16:2x8x5x7:nhwc up=2 down=1", channels},
        AlgorithmCase{"Ties", "resize x=f32:1x2x6x8 size=4,12 coordinates=asymmetric", rows},
        AlgorithmCase{"TiesUp", "resize x=f32:1x2x6x8 size=4,12 coordinates=asymmetric rounding=prefer_ceil", rows},
        AlgorithmCase{"Ceil", "resize x=u8:1x3x6x9 size=11,4 rounding=ceil", rows},
        AlgorithmCase{"OfCorners", "resize x=i8:1x16x6x9:nhwc size=11,4 coordinates=align_corners rounding=floor",
                      channels},
        AlgorithmCase{"OfTensorFlow", "resize x=i32:1x3x6x9 size=11,4 coordinates=tf_half_pixel_for_nn rounding=floor",
                      rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Linear, ResizeTest,
    testing::Values(
        AlgorithmCase{"Up", "resize x=f32:2x3x5x7 size=10,14 mode=linear", rows},
        AlgorithmCase{"Down", "resize x=bf16:2x3x15x17 size=4,5 mode=linear alpha=any beta=any", rows},
        AlgorithmCase{"Corners", "resize x=f16:2x8x5x7:nhwc size=9,3 mode=linear coordinates=align_corners", channels},
        AlgorithmCase{"OneDimension", "resize x=f32:2x3x13 size=31 mode=linear n=?", rows},
        AlgorithmCase{"ThreeDimensions", "resize x=f32:2x3x4x5x6 size=7,3,9 mode=linear", rows},
        AlgorithmCase{"OneAxisAlone", "resize x=f32:2x3x4x5 size=4,9 mode=linear", rows},
        AlgorithmCase{"ToOne", "resize x=f32:2x3x4x5 size=1,1 mode=linear coordinates=pytorch_half_pixel", all},
        AlgorithmCase{"OfOne", "resize x=f32:2x3x1x5 size=4,9 mode=linear coordinates=align_corners", rows},
        AlgorithmCase{"ByAScale", "resize x=f32:1x2x5x7 up=10066330 down=16777216 mode=linear", rows},
        AlgorithmCase{"ByAScaleSymmetrically",
                      "resize x=f32:1x2x5x7 up=12,23 down=5,10 mode=linear coordinates=half_pixel_symmetric", rows},
        AlgorithmCase{"ByAScaleOfCorners", "resize x=f32:1x2x5x7 up=3 down=5 mode=linear coordinates=align_corners",
                      rows},
        AlgorithmCase{"Bytes", "resize x=u8:1x3x5x7:nhwc size=8,8 mode=linear", channels},
        AlgorithmCase{"IntoAnotherLayout", "resize x=f32:1x8x5x7:nhwc y=i8:1x8x4x9 mode=linear alpha=any", rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Cubic, ResizeTest,
    testing::Values(AlgorithmCase{"Up", "resize x=f32:2x3x5x7 size=10,15 mode=cubic", rows},
                    AlgorithmCase{"Down", "resize x=f16:2x8x15x17:nhwc size=4,5 mode=cubic", channels},
                    AlgorithmCase{"Excluded", "resize x=f32:2x3x5x7 size=10,4 mode=cubic outside=excluded", rows},
                    AlgorithmCase{"ExcludedOfFew", "resize x=f32:1x3x2x3 size=5,7 mode=cubic outside=excluded", rows},
                    AlgorithmCase{"ByAScale", "resize x=f32:1x2x5x7 up=3 down=5 mode=cubic coordinates=asymmetric",
                                  rows}),
    case_name);

// One channel, which every kernel takes, packed and as regions of larger tensors.
std::vector<AlgorithmCase> in_every_dtype() {
  std::vector<AlgorithmCase> cases;
  for (const char* dtype : {"f32", "f16", "bf16", "i32", "i8", "u8"}) {
    cases.push_back(
        {fmt::format("Packed_{}", dtype), fmt::format("resize x={}:2x1x4x5 size=7,8 mode=linear", dtype), all});
    cases.push_back({fmt::format("Regions_{}", dtype),
                     fmt::format("resize x={0}:2x1x4x5:99,33,7,1 y={0}:2x1x7x8:300,99,11,1", dtype), all});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dtypes, ResizeTest, testing::ValuesIn(in_every_dtype()), case_name);

INSTANTIATE_TEST_SUITE_P(
    Strides, ResizeTest,
    testing::Values(AlgorithmCase{"Rows", "resize x=f32:2x3x4x5:99,33,7,1 y=f32:2x3x7x8:300,99,11,1 mode=linear", rows},
                    AlgorithmCase{"Channels", "resize x=f16:2x3x4x5:99,1,24,4 y=f16:2x3x7x8:300,1,40,5 mode=linear",
                                  channels},
                    AlgorithmCase{"EmptyBatch", "resize x=f32:0x3x4x5 size=3,3 mode=linear", rows},
                    AlgorithmCase{"DynamicBatch", "resize x=f16:8x8x3x5:nhwc size=6,6 mode=linear n=?", channels}),
    case_name);

INSTANTIATE_TEST_SUITE_P(ResizeConfigs, PairwiseMatch,
                         testing::Values(cover("resize_simple", "resize x=f16:3x5x7x9 size=9,5 mode=linear"),
                                         cover("resize_simple", "resize x=f32:2x3x4x5:nhwc size=8,10"),
                                         cover("resize_nchw", "resize x=f32:3x5x7x24 size=9,48 mode=linear"),
                                         cover("resize_nchw", "resize x=f16:2x3x9x33 size=5,19"),
                                         cover("resize_nhwc", "resize x=f16:2x24x5x7:nhwc size=9,11 mode=linear"),
                                         cover("resize_nhwc", "resize x=f32:1x6x5x7:nhwc size=9,3 mode=cubic")),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(ResizeWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(rows, "resize x=f32:4x8x3x5 size=5,7 mode=linear n=?"),
                                         wide(channels, "resize x=f32:4x8x3x5:nhwc size=5,7")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::resize_test
