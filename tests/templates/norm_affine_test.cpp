// Every algorithm of norm_affine against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::norm_affine_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"norm_affine_simple"};
const Names blocks = {"norm_affine_simple", "norm_affine_blocks"};
const Names channels = {"norm_affine_simple", "norm_affine_blocks", "norm_affine_channels"};

class NormAffine : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(NormAffine, DefaultsMatchTheReference) {
  expect_defaults_match(GetParam());
}

// Rows of groups and channels, as layers of images have them.
INSTANTIATE_TEST_SUITE_P(
    Groups, NormAffine,
    testing::Values(
        AlgorithmCase{"Packed", "norm_affine x=f32:2x3x5x7x11 w=f32:1x3x5x1x1 b=f32:1x3x5x1x1 axes=2,3,4", blocks},
        AlgorithmCase{"OfThreeInF16", "norm_affine x=f16:2x3x6x8 w=f16:1x3x1x1 b=f32:1x3x1x1 axes=1,2,3", blocks},
        AlgorithmCase{"InBf16", "norm_affine x=bf16:2x4x5x4x6 b=bf16:1x4x5x1x1 axes=2,3,4", blocks},
        AlgorithmCase{"WithoutParameters", "norm_affine x=f16:2x4x5x3x7 axes=2,3,4", blocks},
        AlgorithmCase{"Rms", "norm_affine x=f32:2x2x5x3x7 w=f32:1x2x5x1x1 b=f32:1x2x1x1x1 axes=2,3,4 mode=rms", blocks},
        AlgorithmCase{"OneParameterAGroup", "norm_affine x=f16:3x2x4x5x3 w=f16:1x2x1x1x1 axes=2,3,4", blocks},
        AlgorithmCase{"LongRows", "norm_affine x=f32:1x2x3x50x67 w=f32:1x2x3x1x1 axes=2,3,4", blocks},
        AlgorithmCase{"Instance", "norm_affine x=f32:2x5x6x7 w=f32:1x5x1x1 b=f32:1x5x1x1 axes=2,3", blocks},
        AlgorithmCase{"InstanceChannelsLast", "norm_affine x=f16:2x24x6x7:nhwc w=f32:1x24x1x1 axes=2,3", blocks},
        AlgorithmCase{"InstanceOfC3", "norm_affine x=f32:2x3x6x7:nhwc b=f32:1x3x1x1 axes=2,3 n=?", blocks},
        AlgorithmCase{
            "Region",
            "norm_affine x=f32:2x3x5x4x7:900,220,40,9,1 w=f32:1x3x5x1x1:60,17,3,1,1 b=f32:1x3x5x1x1:9,2,7,1,1 "
            "scale=f32:2x3x5x1x1:99,31,6,1,1 shift=f32:2x3x5x1x1:1,2,6,1,1 axes=2,3,4",
            blocks},
        AlgorithmCase{"RegionInF16", "norm_affine x=f16:2x6x5x7:260,42,8,1 scale=f32:2x1x1x1:9,1,1,1 axes=1,2,3",
                      blocks},
        AlgorithmCase{"RegionInBf16", "norm_affine x=bf16:2x6x5x7:400,60,9,1 w=f32:1x6x1x1:6,2,1,1 axes=2,3", blocks},
        AlgorithmCase{"MorePairsThanParameters",
                      "norm_affine x=f32:2x3x5x4x7 b=f32:1x3x1x1x1 scale=f32:2x3x5x1x7 axes=2,3,4", blocks},
        AlgorithmCase{"Repeated", "norm_affine x=f32:3x2x4x5x6:0,120,30,6,1 w=f32:1x2x4x1x1 axes=2,3,4", blocks},
        AlgorithmCase{"DynamicBatch", "norm_affine x=f32:5x3x4x6x5 w=f32:1x3x4x1x1 axes=2,3,4 n=?", blocks},
        AlgorithmCase{"EmptyBatch", "norm_affine x=f32:0x3x4x5x6 w=f32:1x3x4x1x1 axes=2,3,4", blocks}),
    case_name);

// Other rows: along the last dimension, of all images, along all dimensions.
INSTANTIATE_TEST_SUITE_P(
    Others, NormAffine,
    testing::Values(
        AlgorithmCase{"RowsOfOne", "norm_affine x=f16:7x1 w=f32:1x1 b=f32:1x1", blocks},
        AlgorithmCase{"Layer", "norm_affine x=f16:5x37 w=f16:1x37 b=f16:1x37", blocks},
        AlgorithmCase{"LayerOfOwnParameters", "norm_affine x=f32:5x3x40 w=f32:5x3x40 b=f32:5x3x1", blocks},
        AlgorithmCase{"LongAndOdd", "norm_affine x=f16:2x4099 b=f32:1x4099 mode=rms", blocks},
        AlgorithmCase{"PoorlyAligned", "norm_affine x=f32:3x132:nc@4 w=f16:1x132:nc@2", blocks},
        AlgorithmCase{"Batch", "norm_affine x=f32:3x5x6x7 w=f32:1x5x1x1 b=f32:1x5x1x1 axes=0,2,3", blocks},
        AlgorithmCase{"BatchOfOwnParameters", "norm_affine x=f32:3x5x6x7 w=f32:3x5x1x1 axes=0,2,3", blocks},
        AlgorithmCase{"BatchChannelsLast", "norm_affine x=f16:3x24x6x8:nhwc b=f16:1x24x1x1 axes=0,2,3", blocks},
        AlgorithmCase{"BatchPerActivation", "norm_affine x=f16:9x5x2x8 w=f32:1x5x2x8 axes=0", blocks},
        AlgorithmCase{"OneOfSixAxes", "norm_affine x=f16:2x2x3x2x3x8:900,400,120,50,16,1 axes=5 n=?", blocks},
        AlgorithmCase{"SixAxes",
                      "norm_affine x=f32:2x2x3x2x3x4:900,400,120,50,16,3 w=f32:2x1x3x1x3x1 b=f32:1x2x1x2x1x4 "
                      "axes=0,1,2,3,4,5",
                      blocks},
        AlgorithmCase{"EmptyRows", "norm_affine x=f32:3x0 w=f32:1x1 b=f32:3x1", trusted},
        AlgorithmCase{"EmptyRowsOfParameters", "norm_affine x=f32:3x0x4 b=f32:1x1x4 axes=1,2", trusted},
        AlgorithmCase{"OfAnEmptyBatch", "norm_affine x=f32:0x5 w=f32:1x5 axes=0", trusted}),
    case_name);

// A row is runs of neighbours, between which those of other rows stand.
INSTANTIATE_TEST_SUITE_P(
    GroupsChannelsLast, NormAffine,
    testing::Values(
        AlgorithmCase{"OfFive", "norm_affine x=f16:2x3x5x16x9:2160,5,1,135,15 w=f16:1x3x5x1x1 axes=2,3,4", channels},
        AlgorithmCase{"Rms",
                      "norm_affine x=f32:2x3x8x16x9:3456,8,1,216,24 w=f32:1x3x8x1x1 b=f32:1x3x8x1x1 axes=2,3,4 "
                      "mode=rms",
                      channels},
        AlgorithmCase{"WithoutParameters", "norm_affine x=f16:2x3x4x16x9:1728,4,1,108,12 axes=2,3,4", channels},
        AlgorithmCase{"OfAllImages", "norm_affine x=f32:3x2x4x5x16:640,4,1,128,8 b=f32:1x2x1x1x1 axes=0,2,3,4",
                      channels},
        AlgorithmCase{"DynamicBatch",
                      "norm_affine x=f32:5x3x4x16x9:1800,4,1,108,12 w=f32:1x3x4x1x1 scale=f32:5x3x4x1x1:14,4,1,1,1 "
                      "axes=2,3,4 n=?",
                      channels},
        AlgorithmCase{"Region",
                      "norm_affine x=f16:2x2x6x15x9:1200,6,1,130,14 w=f32:1x2x6x1x1:40,19,3,1,1 "
                      "scale=f32:2x2x6x1x1:1,2,5,1,1 shift=f32:2x2x6x1x1:90,40,6,1,1 axes=2,3,4",
                      channels},
        AlgorithmCase{"RegionInBf16", "norm_affine x=bf16:2x2x6x15x9:1800,6,1,130,13 axes=2,3,4", channels},
        AlgorithmCase{"PackedInBf16", "norm_affine x=bf16:2x24x5x8:nhwc w=bf16:1x24x1x1 axes=1,2,3", channels},
        AlgorithmCase{"Packed", "norm_affine x=f32:2x16x5x9:nhwc b=f32:1x16x1x1 axes=1,2,3", channels},
        AlgorithmCase{"OneGroup", "norm_affine x=f16:2x12x15x9:nhwc w=f32:1x12x1x1 axes=1,2,3", channels},
        AlgorithmCase{"GroupsOfBlocks",
                      "norm_affine x=f32:2x3x2x4x16x9:3456,4,1728,1,108,12 w=f32:1x3x1x4x1x1 axes=3,4,5", channels},
        AlgorithmCase{"ManyChannels", "norm_affine x=f16:1x2x300x4x4:9600,300,1,2400,600 b=f32:1x2x300x1x1 axes=2,3,4",
                      channels},
        AlgorithmCase{"EmptyBatch", "norm_affine x=f32:0x3x4x16x9:1728,4,1,108,12 axes=2,3,4", channels}),
    case_name);

TEST(NormAffineOfChannels, RefusesRowsWhoseRunsAreApart) {
  const std::string name = "norm_affine_channels";
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4 axes=1"), "no dimension of the axes is the innermost of x");
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:5x3x40:120,40,1 axes=2"), "rows are single runs of neighbours");
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4x5x6 axes=2,3,4"),
            "runs of rows are not side by side in all operands");
  // Parameters and results do not say how x is taken.
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4x5x6:360,4,1,72,12 w=f32:1x3x1x1x1 axes=2,3,4"), "none");
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4x0x6:0,4,1,72,12 axes=2,3,4"), "rows must not be empty");
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4x5x6:0,4,1,72,12 axes=2,3,4"), "rows of x share elements");
  EXPECT_EQ(refusal_of(name, "norm_affine x=f32:2x3x4x5x6:4,4,1,72,12 axes=2,3,4"), "rows of x share elements");
}

TEST(NormAffineOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    expect_defaults_match({"", "norm_affine x=bf16:2x2x4x16x9:1152,4,1,72,8 w=bf16:1x2x4x1x1 axes=2,3,4", channels},
                          target_of(major, minor));
  }
}

INSTANTIATE_TEST_SUITE_P(
    NormAffineConfigs, PairwiseMatch,
    testing::Values(cover("norm_affine_simple", "norm_affine x=f32:5x33 w=f32:1x33"),
                    cover("norm_affine_simple", "norm_affine x=f16:3x5x7x2:nhwc b=f16:1x5x1x1 mode=rms axes=1,2,3"),
                    cover("norm_affine_blocks",
                          "norm_affine x=f16:2x3x8x24x10 w=f32:1x3x8x1x1 b=f32:1x3x8x1x1 axes=2,3,4"),
                    cover("norm_affine_blocks", "norm_affine x=f32:8x12x6x12:nhwc w=f32:1x12x1x1 axes=0,2,3 mode=rms"),
                    cover("norm_affine_channels",
                          "norm_affine x=f16:2x3x8x16x9:3456,8,1,216,24 w=f32:1x3x8x1x1 b=f32:1x3x8x1x1 axes=2,3,4"),
                    cover("norm_affine_channels",
                          "norm_affine x=f32:2x3x5x16x33:8000,5,1,500,15 b=f32:1x3x5x1x1 axes=2,3,4 mode=rms")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(NormAffineWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"norm_affine_simple"}, "norm_affine x=f16:3x264 w=f32:1x264"),
                                         wide({"norm_affine_blocks"},
                                              "norm_affine x=f32:2x3x2x2x19 w=f32:1x1x2x1x1 axes=2,3,4"),
                                         wide({"norm_affine_channels"},
                                              "norm_affine x=f32:2x3x4x9x5:540,4,1,60,12 w=f32:1x3x4x1x1 axes=2,3,4")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::norm_affine_test
