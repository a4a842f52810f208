// Every algorithm for im2col and col2im against the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::im2col_test {
namespace {

using Names = std::vector<std::string>;

const Names rows = {"im2col_simple", "im2col_nchw"}, channels = {"im2col_simple", "im2col_nhwc"};
const Names all = {"im2col_simple", "im2col_nchw", "im2col_nhwc"};
const Names sums = {"col2im_simple", "col2im_gather"};

class Im2colTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Im2colTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Windows, Im2colTest,
    testing::Values(
        AlgorithmCase{"Plain", "im2col x=f32:2x3x5x7 window=3", rows},
        AlgorithmCase{"Padded", "im2col x=f32:2x3x5x8 window=3 pad=1", rows},
        AlgorithmCase{"PaddedChannelsLast", "im2col x=f16:2x8x5x7:nhwc window=3 pad=1 alpha=any beta=any", channels},
        AlgorithmCase{"Apart", "im2col x=f32:2x3x8x12 window=2,3 stride=2,3", rows},
        AlgorithmCase{"ApartChannelsLast", "im2col x=f32:2x3x8x12:nhwc window=2,3 stride=2,3", channels},
        AlgorithmCase{"WithGaps", "im2col x=f32:2x3x9x11 window=2 stride=4,3", rows},
        AlgorithmCase{"Dilated", "im2col x=f32:1x2x9x11 window=3,2 dilation=2,4 pad=2,1,0,3", rows},
        AlgorithmCase{"DilatedSteps", "im2col x=bf16:1x6x9x11:nhwc window=3,2 dilation=2,3 stride=3,2 pad=2,1,0,3",
                      channels},
        AlgorithmCase{"FarInThePadding", "im2col x=f32:1x2x2x3 window=2 pad=5 stride=3", rows},
        AlgorithmCase{"LongRows", "im2col x=f32:1x2x3x40 window=1,11 pad=0,5", rows},
        AlgorithmCase{"OnePixel", "im2col x=f32:2x3x5x7 window=1", rows},
        AlgorithmCase{"Global", "im2col x=f32:2x3x4x5 window=global", all},
        AlgorithmCase{"OneDimension", "im2col x=f32:2x3x13 window=4 pad=1,2 n=?", rows},
        AlgorithmCase{"ThreeDimensions", "im2col x=f32:2x2x4x5x6 window=2,3,2 pad=1 stride=1,2,1", rows},
        AlgorithmCase{"ThreeDimensionsChannelsLast", "im2col x=f16:2x4x4x5x6:ndhwc window=2,3,2 pad=1 dilation=1,1,2",
                      channels},
        AlgorithmCase{"IntoAnotherLayout", "im2col x=f32:1x8x5x7:nhwc y=f16:1x72x5x7 window=3 pad=1", rows},
        AlgorithmCase{"IntoChannelsLast", "im2col x=f32:1x8x5x7 y=bf16:1x72x5x7:nhwc window=3 pad=1", channels}),
    case_name);

// One output, which every kernel takes, packed and as regions of larger tensors.
std::vector<AlgorithmCase> in_every_dtype() {
  std::vector<AlgorithmCase> cases;
  for (const char* dtype : {"f32", "f16", "bf16", "i32", "i8", "u8"}) {
    cases.push_back({fmt::format("Packed_{}", dtype), fmt::format("im2col x={}:2x3x4x5 window=global", dtype), all});
    cases.push_back({fmt::format("Regions_{}", dtype),
                     fmt::format("im2col x={0}:2x3x4x5:99,33,7,1 y={0}:2x60x1x1:300,3,2,1 window=global", dtype), all});
    cases.push_back({fmt::format("Columns_{}", dtype), fmt::format("im2col x={}:2x4x4x6 window=3 pad=1", dtype), rows});
    cases.push_back({fmt::format("ChannelsLast_{}", dtype),
                     fmt::format("im2col x={}:2x16x4x5:nhwc window=3 pad=1", dtype), channels});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Dtypes, Im2colTest, testing::ValuesIn(in_every_dtype()), case_name);

INSTANTIATE_TEST_SUITE_P(
    Strides, Im2colTest,
    testing::Values(AlgorithmCase{"Rows", "im2col x=f32:2x3x4x5:99,33,7,1 y=f32:2x12x3x4:300,25,7,1 window=2", rows},
                    AlgorithmCase{"Channels", "im2col x=f16:2x3x4x5:99,1,24,4 y=f16:2x12x3x4:300,1,70,15 window=2",
                                  channels},
                    AlgorithmCase{"EmptyBatch", "im2col x=f32:0x3x4x5 window=2", rows},
                    AlgorithmCase{"DynamicBatch", "im2col x=f16:8x8x3x5:nhwc window=2 n=?", channels}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Sums, Im2colTest,
    testing::Values(
        AlgorithmCase{"Plain", "col2im x=f32:2x27x3x5 y=f32:2x3x5x7 window=3", sums},
        AlgorithmCase{"Padded", "col2im x=f32:2x27x5x8 y=f32:2x3x5x8 window=3 pad=1 alpha=any beta=any", sums},
        AlgorithmCase{"PaddedChannelsLast", "col2im x=f16:2x72x5x7:nhwc y=f16:2x8x5x7:nhwc window=3 pad=1", sums},
        AlgorithmCase{"Apart", "col2im x=f32:2x18x4x4 y=f32:2x3x8x12 window=2,3 stride=2,3", sums},
        AlgorithmCase{"ApartChannelsLast", "col2im x=f32:2x18x4x4:nhwc y=f32:2x3x8x12:nhwc window=2,3 stride=2,3",
                      sums},
        AlgorithmCase{"WithGaps", "col2im x=f32:2x12x2x4 y=f32:2x3x9x11 window=2 stride=4,3", sums},
        AlgorithmCase{"Dilated", "col2im x=f32:1x12x7x11 y=f32:1x2x9x11 window=3,2 dilation=2,4 pad=2,1,0,3", sums},
        AlgorithmCase{"DilatedSteps",
                      "col2im x=bf16:1x36x3x6:nhwc y=bf16:1x6x9x11:nhwc window=3,2 dilation=2,3 stride=3,2 pad=2,1,0,3",
                      sums},
        AlgorithmCase{"CommonSteps", "col2im x=f32:1x12x3x3 y=f32:1x2x12x13 window=2,3 dilation=4,2 stride=3,4", sums},
        AlgorithmCase{"FarInThePadding", "col2im x=f32:1x8x4x4 y=f32:1x2x2x3 window=2 pad=5 stride=3", sums},
        AlgorithmCase{"LongRows", "col2im x=f32:1x22x3x40 y=f32:1x2x3x40 window=1,11 pad=0,5", sums},
        AlgorithmCase{"OnePixel", "col2im x=f32:2x3x5x7 y=f32:2x3x5x7 window=1", sums},
        AlgorithmCase{"Global", "col2im x=f32:2x60x1x1 y=f32:2x3x4x5 window=global", sums},
        AlgorithmCase{"OneDimension", "col2im x=f32:2x12x13 y=f32:2x3x13 window=4 pad=1,2 n=?", sums},
        AlgorithmCase{"ThreeDimensions", "col2im x=f32:2x24x5x3x7 y=f32:2x2x4x5x6 window=2,3,2 pad=1 stride=1,2,1",
                      sums},
        AlgorithmCase{"ThreeDimensionsChannelsLast",
                      "col2im x=f16:2x48x5x5x6:ndhwc y=f16:2x4x4x5x6:ndhwc window=2,3,2 pad=1 dilation=1,1,2", sums},
        AlgorithmCase{"IntoAnotherLayout", "col2im x=f16:1x72x5x7 y=f32:1x8x5x7:nhwc window=3 pad=1", sums},
        AlgorithmCase{"FromChannelsLast", "col2im x=f32:1x72x5x7:nhwc y=bf16:1x8x5x7 window=3 pad=1", sums},
        AlgorithmCase{"Regions", "col2im x=f32:2x12x3x4:300,25,7,1 y=f32:2x3x4x5:99,33,7,1 window=2", sums},
        AlgorithmCase{"RegionsInF16", "col2im x=f16:2x12x3x4:300,1,70,15 y=f16:2x3x4x5:99,1,24,4 window=2", sums},
        AlgorithmCase{"RegionsInBF16", "col2im x=bf16:2x12x3x4:300,25,7,1 y=bf16:2x3x4x5:99,33,7,1 window=2", sums},
        AlgorithmCase{"PackedInF16", "col2im x=f16:2x12x3x4 y=f16:2x3x4x5 window=2", sums},
        AlgorithmCase{"PackedInBF16", "col2im x=bf16:2x12x3x4 y=bf16:2x3x4x5 window=2", sums},
        AlgorithmCase{"EmptyBatch", "col2im x=f32:0x12x3x4 y=f32:0x3x4x5 window=2", sums},
        AlgorithmCase{"DynamicBatch", "col2im x=f16:8x32x2x4:nhwc y=f16:8x8x3x5:nhwc window=2 n=?", sums}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Im2colConfigs, PairwiseMatch,
    testing::Values(cover("im2col_simple", "im2col x=f16:3x5x7x9 window=3,2 pad=1"),
                    cover("im2col_simple", "im2col x=f32:2x3x4x5:nhwc window=2 stride=2"),
                    cover("im2col_nchw", "im2col x=f32:3x5x7x24 window=3,7 pad=1,3"),
                    cover("im2col_nchw", "im2col x=f16:2x3x9x33 window=2,11 stride=1,2 pad=0,3"),
                    cover("im2col_nhwc", "im2col x=f16:2x8x5x7:nhwc window=3 pad=1"),
                    cover("im2col_nhwc", "im2col x=f32:1x8x5x11:nhwc window=2,1 stride=1,2 dilation=2"),
                    cover("col2im_simple", "col2im x=f16:3x30x8x10 y=f16:3x5x7x9 window=3,2 pad=1,1,2,1"),
                    cover("col2im_simple", "col2im x=f32:2x12x2x2:nhwc y=f32:2x3x4x5:nhwc window=2 stride=2"),
                    cover("col2im_gather", "col2im x=f32:1x27x7x12 y=f32:1x3x7x12 window=3 pad=1"),
                    cover("col2im_gather", "col2im x=f16:2x32x4x5:nhwc y=f16:2x8x7x9:nhwc window=2 stride=2 pad=1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(Im2colWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(rows, "im2col x=f32:4x8x3x5 window=2 pad=1 n=?"),
                                         wide(channels, "im2col x=f32:4x8x3x5:nhwc window=2 pad=1"),
                                         wide(sums, "col2im x=f32:4x32x4x6 y=f32:4x8x3x5 window=2 pad=1 n=?"),
                                         wide(sums, "col2im x=f32:4x32x4x6:nhwc y=f32:4x8x3x5:nhwc window=2 pad=1")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::im2col_test
