// Every softmax algorithm against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::softmax_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"softmax_simple"};
const Names short_rows = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online"};
const Names rows = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split"};
const Names long_rows = {"softmax_simple", "softmax_block", "softmax_online", "softmax_split"};
const Names strided = {"softmax_simple", "softmax_strided"};
// Rows that lie along the innermost dimension of one operand and across that of the other, or both at once.
const Names both_ways = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_strided"};

class SoftmaxDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(SoftmaxDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    ContiguousRows, SoftmaxDefaults,
    testing::Values(  // Rows of one element lie along the axis and across it.
        AlgorithmCase{"RowsOfOne", "softmax_forward x=f16:7x1:nc axis=1", both_ways},
        AlgorithmCase{"Vector", "softmax_forward x=f32:13:n axis=0", short_rows},
        AlgorithmCase{"Primes", "softmax_forward x=f16:5x37:nc axis=1", short_rows},
        AlgorithmCase{"Vectors", "softmax_forward x=bf16:3x1000:nc axis=1", rows},
        AlgorithmCase{"LongAndOdd", "softmax_forward x=f16:2x4099:nc axis=1 mode=log", long_rows},
        AlgorithmCase{"AlphaZero", "softmax_forward x=f16:3x40:nc axis=1 alpha=0 beta=1", short_rows},
        AlgorithmCase{"EmptyBatch", "softmax_forward x=f32:0x132:nc axis=1", rows},
        AlgorithmCase{"MixedTypes", "softmax_forward x=f16:3x132:nc y=f32:3x132:nc axis=1", rows},
        AlgorithmCase{"EmptyRows", "softmax_forward x=f32:3x0:nc axis=1", trusted},
        AlgorithmCase{"RowsWithGaps", "softmax_forward x=f16:5x33:48,1 y=f16:5x33:35,1 axis=1 mode=log beta=1",
                      short_rows},
        AlgorithmCase{"ChannelsLastDynamic", "softmax_forward x=f16:4x24x3x2:nhwc axis=1 n=?", short_rows},
        AlgorithmCase{"LastOfFive", "softmax_forward x=f32:2x3x2x2x19:ncdhw axis=4", short_rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    RowsAcross, SoftmaxDefaults,
    testing::Values(AlgorithmCase{"ChannelsFirstLog", "softmax_forward x=bf16:2x21x6x8:nchw axis=1 mode=log", strided},
                    AlgorithmCase{"ManyChannels", "softmax_forward x=f16:1x131x4x6:nchw axis=1", strided},
                    AlgorithmCase{"Height", "softmax_forward x=f32:2x3x11x4:nchw axis=2 alpha=any beta=any", strided},
                    AlgorithmCase{"RowsOfOne", "softmax_forward x=f32:2x1x3x5:nchw axis=1", both_ways},
                    AlgorithmCase{"EmptyBatch", "softmax_forward x=f32:0x6x2x2:nchw axis=1", strided},
                    AlgorithmCase{"MiddleOfFive", "softmax_forward x=f32:2x3x5x2x2:ncdhw axis=2", strided}),
    case_name);

// Sub-regions, dimension orders and operands that differ in both.
INSTANTIATE_TEST_SUITE_P(
    Strides, SoftmaxDefaults,
    testing::Values(
        AlgorithmCase{"LongRowsOfASubRegion",
                      "softmax_forward x=f16:2x3x264:1400,400,1 y=f16:2x3x264:900,300,1 axis=2 mode=log", rows},
        AlgorithmCase{"RowsAcrossASubRegion",
                      "softmax_forward x=f32:2x6x3x4:200,30,8,1 y=f32:2x6x3x4:100,16,5,1 axis=1", strided},
        AlgorithmCase{"EveryThirdElementOfARow", "softmax_forward x=f16:5x37:120,3 y=f16:5x37:90,2 axis=1 beta=any",
                      short_rows},
        AlgorithmCase{
            "LongRowsWithHoles",
            "softmax_forward x=f32:3x5x300:1,2000,6 y=f32:3x5x300:300,900,1 axis=2",
            {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split", "softmax_strided"}},
        AlgorithmCase{"VectorsOfXOnly", "softmax_forward x=bf16:3x40:nc y=f32:3x40:41,1 axis=1", short_rows},
        AlgorithmCase{"VectorsOfYOnly", "softmax_forward x=f16:3x40:nc@2 y=bf16:3x40:nc axis=1", short_rows},
        AlgorithmCase{"FromNhwcToNchw",
                      "softmax_forward x=f16:2x16x3x8:nhwc y=f16:2x16x3x8:nchw axis=1 alpha=any beta=any", both_ways},
        AlgorithmCase{"WidthOutermost", "softmax_forward x=bf16:2x5x6x7:wnch y=bf16:2x5x6x7:hwcn axis=1", strided},
        AlgorithmCase{"FourDimensionsOfRows",
                      "softmax_forward x=f32:2x3x2x4x5:900,280,130,31,6 y=f32:2x3x2x4x5:1,24,12,3,72 axis=4 mode=log",
                      both_ways},
        AlgorithmCase{"FourDimensionsAcross",
                      "softmax_forward x=f16:2x7x3x2x4:1000,132,40,18,2 y=f16:2x7x3x2x4:1,600,2,280,40 axis=1",
                      strided},
        AlgorithmCase{"RepeatedRows", "softmax_forward x=f32:3x4x8:0,8,1 y=f32:3x4x8:ncw axis=2", short_rows},
        AlgorithmCase{"RepeatedNeighbours", "softmax_forward x=f32:2x6x5:6,1,0 y=f32:2x6x5:ncw axis=1", both_ways},
        AlgorithmCase{"RepeatedElements", "softmax_forward x=f32:4x6:1,0 y=f32:4x6:nc axis=1", short_rows},
        AlgorithmCase{"BatchInsideDynamic", "softmax_forward x=f16:5x6x5:1,25,5 y=f16:5x6x5:1,25,5 axis=1 n=?",
                      strided},
        AlgorithmCase{"SubRegionDynamic", "softmax_forward x=f16:4x24x3x2:300,1,96,32 y=f16:4x24x3x2:nhwc axis=1 n=?",
                      short_rows},
        AlgorithmCase{"SubRegionAcrossDynamic", "softmax_forward x=f32:4x6x3x4:200,20,6,1 axis=1 n=?", strided}),
    case_name);

// bf16 is converted without the instruction that later architectures have.
TEST(SoftmaxOnTuring, MatchesTheReference) {
  const Target turing = target_of(7, 5);
  expect_defaults_match({"", "softmax_forward x=bf16:3x268:nc axis=1", rows}, turing);
  expect_defaults_match({"", "softmax_forward x=bf16:2x7x3x4:nchw axis=1 mode=log", strided}, turing);
}

class SoftmaxOn : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(SoftmaxOn, MatchesTheReference) {
  const Target target = target_of(GetParam().first, GetParam().second);
  expect_defaults_match({"", "softmax_forward x=bf16:3x36:nc axis=1 mode=log", short_rows}, target);
}

INSTANTIATE_TEST_SUITE_P(Architectures, SoftmaxOn, testing::Values(std::pair{8, 0}, std::pair{12, 0}),
                         [](const auto& test) {
                           return "Sm" + std::to_string(test.param.first * 10 + test.param.second);
                         });

INSTANTIATE_TEST_SUITE_P(
    SoftmaxConfigs, PairwiseMatch,
    testing::Values(cover("softmax_simple", "softmax_forward x=f32:5x7x3 axis=1"),
                    cover("softmax_simple", "softmax_forward x=f16:37x11:nc axis=1 mode=log"),
                    cover("softmax_warp", "softmax_forward x=f32:37x11:nc axis=1 mode=log"),
                    cover("softmax_block", "softmax_forward x=f16:2x8200:nc axis=1"),
                    cover("softmax_block", "softmax_forward x=f32:2x1531:nc axis=1 mode=log"),
                    cover("softmax_online", "softmax_forward x=f32:2x4744:nc axis=1"),
                    cover("softmax_online", "softmax_forward x=bf16:2x3001:nc axis=1 mode=log"),
                    cover("softmax_split", "softmax_forward x=bf16:2x8200:8216,1 axis=1"),
                    cover("softmax_split", "softmax_forward x=f32:3x1531:nc axis=1 mode=log"),
                    cover("softmax_strided", "softmax_forward x=f32:3x35x3x3:nchw axis=1 mode=log"),
                    // Accesses of different widths in x and in y, and of single elements.
                    cover("softmax_warp", "softmax_forward x=f16:3x5x24:144,24,1 y=f32:3x5x24:26,80,1 axis=2"),
                    cover("softmax_strided", "softmax_forward x=f16:2x19x5x8:nchw y=f16:2x19x5x8:nhwc axis=1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(SoftmaxWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(rows, "softmax_forward x=f16:8x264:nc axis=1 alpha=any beta=any n=?"),
                                         wide({"softmax_strided"}, "softmax_forward x=f32:8x6x2x2:nchw axis=1 n=?")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::softmax_test
