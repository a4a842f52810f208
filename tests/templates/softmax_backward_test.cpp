// Every algorithm of softmax_backward against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::softmax_backward_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"softmax_backward_simple"};
const Names rows = {"softmax_backward_simple", "softmax_backward_rows"};
// Rows that may be split over blocks too.
const Names long_rows = {"softmax_backward_simple", "softmax_backward_rows", "softmax_backward_split"};
const Names strided = {"softmax_backward_simple", "softmax_backward_strided"};
// Rows that lie along the innermost dimension of one operand and across that of another.
const Names both_ways = {"softmax_backward_simple", "softmax_backward_rows", "softmax_backward_strided"};

class SoftmaxBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(SoftmaxBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    ContiguousRows, SoftmaxBackwardDefaults,
    testing::Values(
        AlgorithmCase{"RowsOfOne", "softmax_backward y=f16:7x1:nc axis=1", both_ways},
        AlgorithmCase{"Vector", "softmax_backward y=f32:13:n axis=0", rows},
        AlgorithmCase{"Primes", "softmax_backward y=f16:5x37:nc axis=1", rows},
        AlgorithmCase{"VectorsLog", "softmax_backward y=f16:3x1000:nc axis=1 mode=log", long_rows},
        AlgorithmCase{"LongAndOdd", "softmax_backward y=bf16:2x4099:nc axis=1 mode=log", long_rows},
        AlgorithmCase{"LongRows", "softmax_backward y=f32:2x8200:nc axis=1", long_rows},
        AlgorithmCase{"Blend", "softmax_backward y=f32:3x268:nc axis=1 mode=log alpha=any beta=any", long_rows},
        AlgorithmCase{"AlphaZero", "softmax_backward y=f16:3x40:nc axis=1 alpha=0 beta=1", rows},
        AlgorithmCase{"EmptyBatch", "softmax_backward y=f32:0x132:nc axis=1", long_rows},
        AlgorithmCase{"OneLongRow", "softmax_backward y=f32:1x70001:nc axis=1 alpha=any beta=any", long_rows},
        AlgorithmCase{"LongRowsDynamic", "softmax_backward y=f16:3x2056:nc axis=1 n=?", long_rows},
        AlgorithmCase{"EmptyRows", "softmax_backward y=f32:3x0:nc axis=1", trusted},
        AlgorithmCase{"MixedTypes", "softmax_backward y=f16:3x132:nc dy=f32:3x132:nc dx=bf16:3x132:nc axis=1",
                      long_rows},
        AlgorithmCase{"ChannelsLastDynamic", "softmax_backward y=f16:4x24x3x2:nhwc axis=1 n=?", rows},
        AlgorithmCase{"LastOfFive", "softmax_backward y=f32:2x3x2x2x19:ncdhw axis=-1", rows}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    RowsAcross, SoftmaxBackwardDefaults,
    testing::Values(AlgorithmCase{"ChannelsFirstLog", "softmax_backward y=bf16:2x21x6x8:nchw axis=1 mode=log", strided},
                    AlgorithmCase{"ManyChannels", "softmax_backward y=f16:1x331x4x6:nchw axis=1", strided},
                    AlgorithmCase{"Height", "softmax_backward y=f32:2x3x11x4:nchw axis=2 alpha=any beta=any", strided},
                    AlgorithmCase{"EmptyBatch", "softmax_backward y=f32:0x6x2x2:nchw axis=1", strided},
                    AlgorithmCase{"MiddleOfFive", "softmax_backward y=f32:2x3x5x2x2:ncdhw axis=2", strided}),
    case_name);

// Sub-regions, dimension orders and operands that differ in both.
INSTANTIATE_TEST_SUITE_P(
    Strides, SoftmaxBackwardDefaults,
    testing::Values(
        AlgorithmCase{"RowsOfASubRegion",
                      "softmax_backward y=f32:2x3x5x8:300,90,12,1 dy=f32:2x3x5x8:200,60,11,1 "
                      "dx=f32:2x3x5x8:400,100,16,1 axis=3",
                      rows},
        AlgorithmCase{"RowsAcrossASubRegion",
                      "softmax_backward y=f32:2x6x3x4:200,30,8,1 dy=f32:2x6x3x4:100,16,5,1 dx=f32:2x6x3x4:nchw axis=1",
                      strided},
        AlgorithmCase{"EveryThirdElementOfARow",
                      "softmax_backward y=f16:5x37:120,3 dy=f16:5x37:90,2 dx=f16:5x37:nc axis=1 beta=any", rows},
        AlgorithmCase{"VectorsOfOneOperand", "softmax_backward y=f16:3x40:nc dy=f16:3x40:41,1 dx=f32:3x40:nc@4 axis=1",
                      rows},
        AlgorithmCase{"MixedLayouts",
                      "softmax_backward y=f32:2x8x3x4:nchw dy=f32:2x8x3x4:nhwc dx=f32:2x8x3x4:nchw axis=1", both_ways},
        AlgorithmCase{"FourDimensionsOfRows",
                      "softmax_backward y=bf16:2x3x2x4x5:900,280,130,31,6 dy=bf16:2x3x2x4x5:1,24,12,3,72 "
                      "dx=bf16:2x3x2x4x5:ncdhw axis=4 mode=log",
                      both_ways},
        AlgorithmCase{"RepeatedDy", "softmax_backward y=f32:3x4x8:ncw dy=f32:3x4x8:0,0,0 dx=f32:3x4x8:ncw axis=2",
                      rows},
        AlgorithmCase{"BatchInsideDynamic",
                      "softmax_backward y=f16:4x6x5:1,40,8 dy=f16:4x6x5:ncw dx=f16:4x6x5:ncw "
                      "axis=1 n=?",
                      strided}),
    case_name);

TEST(SoftmaxBackwardOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    const Target target = target_of(major, minor);
    expect_defaults_match({"", "softmax_backward y=bf16:3x268:nc axis=1 mode=log", long_rows}, target);
  }
}

INSTANTIATE_TEST_SUITE_P(
    SoftmaxBackwardConfigs, PairwiseMatch,
    testing::Values(cover("softmax_backward_simple", "softmax_backward y=f32:5x7x3 axis=1"),
                    cover("softmax_backward_simple", "softmax_backward y=f16:37x11:nc axis=1 mode=log"),
                    cover("softmax_backward_rows", "softmax_backward y=f16:5x56:nc axis=1"),
                    cover("softmax_backward_rows", "softmax_backward y=f32:37x11:nc axis=1 mode=log"),
                    cover("softmax_backward_split", "softmax_backward y=f16:2x2056:nc axis=1"),
                    cover("softmax_backward_split", "softmax_backward y=f32:1x1031:nc axis=1 mode=log"),
                    cover("softmax_backward_strided", "softmax_backward y=f16:2x19x5x40:nchw axis=1"),
                    cover("softmax_backward_strided", "softmax_backward y=f32:3x35x3x3:nchw axis=1 mode=log")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(SoftmaxBackwardWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"softmax_backward_simple"}, "softmax_backward y=f16:3x264:nc axis=1"),
                                         wide({"softmax_backward_rows"}, "softmax_backward y=bf16:8x132:nc axis=1 n=?"),
                                         wide({"softmax_backward_split"}, "softmax_backward y=f32:8x132:nc axis=1 n=?"),
                                         wide({"softmax_backward_strided"},
                                              "softmax_backward y=f32:8x6x2x2:nchw axis=1 n=?")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::softmax_backward_test
