// Every algorithm of norm_forward and norm_inference against the reference, on shapes that are awkward in one way each.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::norm_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"norm_forward_simple"};
const Names forward = {"norm_forward_simple", "norm_forward_blocks"};
const Names interleaved = {"norm_forward_simple", "norm_forward_blocks", "norm_forward_channels"};
const Names inference = {"norm_inference_simple", "norm_inference_blocks"};

class NormDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(NormDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

// A row is the last dimensions.
INSTANTIATE_TEST_SUITE_P(
    Layer, NormDefaults,
    testing::Values(
        AlgorithmCase{"RowsOfOne", "norm_forward x=f16:7x1 w=f32:1x1 b=f32:1x1", forward},
        AlgorithmCase{"Primes", "norm_forward x=f16:5x37 w=f16:1x37 b=f16:1x37", forward},
        AlgorithmCase{"VectorsRms", "norm_forward x=f16:3x1000 inv_deviation=f32:3x1 b=f32:1x1000 mode=rms", forward},
        AlgorithmCase{"LongAndOdd", "norm_forward x=f16:2x4099", forward},
        AlgorithmCase{"LongRows", "norm_forward x=f32:2x8200 mean=f32:2x1 inv_deviation=f32:2x1", forward},
        AlgorithmCase{"AlphaZero", "norm_forward x=f16:3x40 alpha=0 beta=1 mean=f32:3x1", forward},
        AlgorithmCase{"DynamicBatch", "norm_forward x=f32:8x132 w=f32:1x132 mean=f32:8x1 alpha=any beta=any n=?",
                      forward},
        AlgorithmCase{"EmptyBatch", "norm_forward x=f32:0x132 w=f32:1x132", forward},
        AlgorithmCase{"EmptyRows", "norm_forward x=f32:3x0 mean=f32:3x1 inv_deviation=f32:3x1", trusted},
        AlgorithmCase{"MixedTypes", "norm_forward x=bf16:3x132 w=f32:1x132 b=bf16:1x132 y=f32:3x132", forward},
        AlgorithmCase{"PoorlyAligned", "norm_forward x=f32:3x132:nc@4 w=f16:1x132:nc@2 mode=rms beta=1", forward},
        AlgorithmCase{"ThreeAxes", "norm_forward x=f32:2x3x5x7 w=f32:1x3x5x7 b=f32:1x3x5x7 axes=1,2,3", forward},
        AlgorithmCase{"ThreeAxesChannelsLast", "norm_forward x=f16:2x8x5x3:nhwc w=f32:1x8x5x3 axes=1,2,3", forward},
        AlgorithmCase{"ResidualAndSwish", "norm_forward x=f16:3x40 w=f16:1x40 epilogue=add activation=swish", forward}),
    case_name);

// A row is the pixels of a channel, or of a group of channels.
INSTANTIATE_TEST_SUITE_P(
    InstanceAndGroup, NormDefaults,
    testing::Values(
        AlgorithmCase{"Instance", "norm_forward x=f32:2x5x6x7 w=f32:1x5x1x1 b=f32:1x5x1x1 axes=2,3", forward},
        AlgorithmCase{"InstanceChannelsLast", "norm_forward x=f16:2x24x6x7:nhwc w=f32:1x24x1x1 axes=2,3", forward},
        AlgorithmCase{"InstanceOfC3", "norm_forward x=f32:2x3x6x7:nhwc mean=f32:2x3x1x1 axes=2,3 n=?", forward},
        AlgorithmCase{"Instance1D", "norm_forward x=bf16:3x7x64 axes=2 activation=hard_sigmoid", forward},
        AlgorithmCase{"Group", "norm_forward x=f32:2x4x6x3x5 w=f32:1x4x6x1x1 b=f32:1x4x6x1x1 axes=2,3,4", forward},
        AlgorithmCase{"GroupOfPlanesWithGaps",
                      "norm_forward x=f32:2x2x3x3x2x4:800,288,96,32,8,1 y=f32:2x2x3x3x2x4 w=f32:1x2x3x1x1x1 "
                      "mean=f32:2x2x1x1x1x1 axes=2,3,4,5",
                      forward},
        AlgorithmCase{"OneOfSixAxes", "norm_forward x=f16:2x2x3x2x3x8:900,400,120,50,16,1 axes=5 n=?", forward},
        AlgorithmCase{"SixAxes", "norm_forward x=f32:2x2x3x2x3x4:900,400,120,50,16,3 axes=0,1,2,3,4,5", forward},
        AlgorithmCase{"GroupChannelsLast",
                      "norm_forward x=bf16:2x4x8x3x5:480,8,1,160,32 w=f32:1x4x8x1x1 b=f32:1x4x8x1x1 axes=2,3,4",
                      forward}),
    case_name);

// A row is runs of neighbours, between which those of other rows stand.
INSTANTIATE_TEST_SUITE_P(
    GroupsChannelsLast, NormDefaults,
    testing::Values(
        AlgorithmCase{"OfFive",
                      "norm_forward x=f16:2x3x5x16x9:2160,5,1,135,15 w=f16:1x3x5x1x1 mean=f32:2x3x1x1x1 "
                      "inv_deviation=f32:2x3x1x1x1 axes=2,3,4",
                      interleaved},
        AlgorithmCase{"Rms",
                      "norm_forward x=f32:2x3x8x16x9:3456,8,1,216,24 inv_deviation=f32:2x3x1x1x1 w=f32:1x3x8x1x1 "
                      "b=f32:1x3x8x1x1 axes=2,3,4 mode=rms alpha=any beta=any",
                      interleaved},
        AlgorithmCase{"ResidualAndGelu",
                      "norm_forward x=f16:2x3x4x16x9:1728,4,1,108,12 y=f32:2x3x4x16x9:1728,4,1,108,12 "
                      "residual=f32:2x3x4x16x9 axes=2,3,4 epilogue=add activation=gelu",
                      interleaved},
        AlgorithmCase{"OfAllImages",
                      "norm_forward x=f32:3x2x4x5x16:640,4,1,128,8 running_mean=f32:1x2x1x1x1 mean=f32:1x2x1x1x1 "
                      "running_variance=f32:1x2x1x1x1 axes=0,2,3,4 epilogue=relu",
                      interleaved},
        AlgorithmCase{"DynamicBatch",
                      "norm_forward x=f32:5x3x4x16x9:1800,4,1,108,12 y=f32:5x3x4x16x9:1800,4,1,108,12 "
                      "mean=f32:5x3x1x1x1:7,2,1,1,1 inv_deviation=f32:5x3x1x1x1 w=f32:1x3x4x1x1 axes=2,3,4 n=?",
                      interleaved},
        AlgorithmCase{"OfARegion",
                      "norm_forward x=f16:2x2x6x15x9:1200,6,1,130,14 y=f32:2x2x6x15x9:1620,6,1,108,12 axes=2,3,4 "
                      "mean=f32:2x2x1x1x1",
                      interleaved},
        AlgorithmCase{"OfARegionInBf16", "norm_forward x=bf16:2x2x6x15x9:1800,6,1,130,13 axes=2,3,4", interleaved},
        AlgorithmCase{"PackedInBf16", "norm_forward x=bf16:2x24x5x8:nhwc axes=1,2,3 activation=swish", interleaved},
        AlgorithmCase{"Packed", "norm_forward x=f32:2x16x5x9:nhwc b=f32:1x16x1x1 axes=1,2,3", interleaved},
        AlgorithmCase{"OneGroup", "norm_forward x=f16:2x12x15x9:nhwc w=f32:1x12x1x1 mean=f32:2x1x1x1 axes=1,2,3",
                      interleaved},
        AlgorithmCase{"GroupsOfBlocks",
                      "norm_forward x=f32:2x3x2x4x16x9:3456,4,1728,1,108,12 w=f32:1x3x1x4x1x1 "
                      "y=f32:2x3x2x4x16x9:3456,4,1728,1,108,12 mean=f32:2x3x2x1x1x1 axes=3,4,5",
                      interleaved},
        AlgorithmCase{"ManyChannels", "norm_forward x=f16:1x2x300x4x4:9600,300,1,2400,600 b=f32:1x2x300x1x1 axes=2,3,4",
                      interleaved},
        AlgorithmCase{"EmptyBatch", "norm_forward x=f32:0x3x4x16x9:1728,4,1,108,12 axes=2,3,4", interleaved}),
    case_name);

TEST(NormOfChannels, RefusesRowsWhoseRunsAreApart) {
  EXPECT_EQ(refusal_of("norm_forward_channels", "norm_forward x=f32:2x3x4 axes=1"),
            "no dimension of the axes is the innermost of x");
  EXPECT_EQ(refusal_of("norm_forward_channels", "norm_forward x=f32:5x3x40:120,40,1 axes=2"),
            "rows are single runs of neighbours");
  EXPECT_EQ(refusal_of("norm_forward_channels", "norm_forward x=f32:2x3x4x5x6 axes=2,3,4"),
            "runs of rows are not side by side in all operands");
  EXPECT_EQ(
      refusal_of("norm_forward_channels", "norm_forward x=f32:2x3x4x5x6:360,4,1,72,12 w=f32:1x3x1x1x1 axes=2,3,4"),
      "runs of rows are not side by side in all operands");
  EXPECT_EQ(refusal_of("norm_forward_channels", "norm_forward x=f32:2x3x4x0x6:0,4,1,72,12 axes=2,3,4"),
            "rows must not be empty");
  EXPECT_EQ(refusal_of("norm_forward_channels",
                       "norm_forward x=f32:2x3x4x5x6:0,4,1,72,12 y=f32:2x3x4x5x6:360,4,1,72,12 axes=2,3,4"),
            "rows of x share elements");
}

// A row is what all images have at one channel, or at one place.
INSTANTIATE_TEST_SUITE_P(
    Batch, NormDefaults,
    testing::Values(
        AlgorithmCase{"Spatial",
                      "norm_forward x=f32:3x5x6x7 w=f32:1x5x1x1 b=f32:1x5x1x1 mean=f32:1x5x1x1 "
                      "inv_deviation=f32:1x5x1x1 running_mean=f32:1x5x1x1 running_variance=f32:1x5x1x1 axes=0,2,3",
                      forward},
        AlgorithmCase{"SpatialChannelsLast",
                      "norm_forward x=f16:3x24x6x8:nhwc w=f32:1x24x1x1 b=f32:1x24x1x1 mean=f32:1x24x1x1 "
                      "inv_deviation=f32:1x24x1x1 running_mean=f32:1x24x1x1 running_variance=f32:1x24x1x1 axes=0,2,3 "
                      "epilogue=add+relu",
                      forward},
        AlgorithmCase{"SpatialOneElement",
                      "norm_forward x=f32:1x5x1x1 running_mean=f32:1x5x1x1 running_variance=f32:1x5x1x1 axes=0,2,3",
                      forward},
        AlgorithmCase{"Spatial3D", "norm_forward x=f32:2x3x2x3x5 w=f32:1x3x1x1x1 axes=0,2,3,4 epilogue=relu", forward},
        AlgorithmCase{"PerActivation",
                      "norm_forward x=f16:9x5x2x8 w=f32:1x5x2x8 b=f32:1x5x2x8 running_mean=f32:1x5x2x8 "
                      "running_variance=f32:1x5x2x8 axes=0",
                      forward},
        AlgorithmCase{
            "ASubRegion",
            "norm_forward x=f32:3x4x5x8:300,70,12,1 y=f32:3x4x5x8:400,100,16,1 residual=f32:3x4x5x8:1,3,12,60 "
            "axes=0,2,3 epilogue=add",
            forward},
        AlgorithmCase{"MixedLayouts", "norm_forward x=f32:2x8x3x4:nchw y=f32:2x8x3x4:nhwc w=f32:1x8x1x1 axes=0,2,3",
                      forward},
        AlgorithmCase{"OfAnEmptyBatch", "norm_forward x=f32:0x5 mean=f32:1x5 inv_deviation=f32:1x5 axes=0", trusted}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Inference, NormDefaults,
    testing::Values(
        AlgorithmCase{"Spatial", "norm_inference x=f32:3x5x6x7:300,60,9,1 w=f32:1x5x1x1 b=f32:1x5x1x1", inference},
        AlgorithmCase{"ChannelsLast", "norm_inference x=f16:3x24x6x8:1500,1,200,24 w=f32:1x24x1x1 epilogue=add+relu",
                      inference},
        AlgorithmCase{"DynamicBatch", "norm_inference x=bf16:4x6x3x8 b=f32:1x6x1x1 epilogue=relu n=?", inference},
        AlgorithmCase{"PerActivation", "norm_inference x=bf16:9x40:48,1 w=f32:1x40 axes=0 alpha=any beta=any",
                      inference},
        AlgorithmCase{"EmptyBatch", "norm_inference x=f32:0x6 axes=1", inference},
        AlgorithmCase{"OneRow", "norm_inference x=f32:2x3x8 axes=0,1,2 epilogue=add activation=clip", inference}),
    case_name);

TEST(NormOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    const Target target = target_of(major, minor);
    expect_defaults_match({"", "norm_forward x=bf16:2x7x3x4:nhwc w=bf16:1x7x1x1 axes=0,2,3", forward}, target);
  }
}

INSTANTIATE_TEST_SUITE_P(
    NormConfigs, PairwiseMatch,
    testing::Values(cover("norm_inference_blocks", "norm_inference x=f32:1x3x5x1 w=f32:1x3x1x1 b=f32:1x3x1x1"),
                    cover("norm_forward_simple", "norm_forward x=f32:5x33 w=f32:1x33"),
                    cover("norm_forward_simple", "norm_forward x=f16:3x5x7x2:nhwc mode=rms axes=1,2,3"),
                    cover("norm_inference_simple", "norm_inference x=f32:3x11x5x7 w=f32:1x11x1x1"),
                    cover("norm_inference_simple", "norm_inference x=f16:2x5x7:nwc axes=0,2 epilogue=relu"),
                    cover("norm_forward_blocks",
                          "norm_forward x=f16:3x1544 w=f32:1x1544 mean=f32:3x1 inv_deviation=f32:3x1"),
                    cover("norm_forward_blocks",
                          "norm_forward x=f32:8x12x6x12:nhwc w=f32:1x12x1x1 running_mean=f32:1x12x1x1 "
                          "running_variance=f32:1x12x1x1 axes=0,2,3 epilogue=add activation=gelu"),
                    cover("norm_forward_channels",
                          "norm_forward x=f16:2x3x8x16x9:3456,8,1,216,24 w=f32:1x3x8x1x1 mean=f32:2x3x1x1x1 "
                          "axes=2,3,4 epilogue=add activation=swish"),
                    cover("norm_forward_channels",
                          "norm_forward x=f32:2x3x5x16x33:8000,5,1,500,15 b=f32:1x3x5x1x1 axes=2,3,4 mode=rms"),
                    cover("norm_inference_blocks", "norm_inference x=f16:3x24x5x7:nhwc w=f32:1x24x1x1 epilogue=relu")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    NormWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"norm_forward_simple"}, "norm_forward x=f16:3x264"),
                    wide({"norm_forward_blocks"}, "norm_forward x=f32:2x3x2x2x19 w=f32:1x1x1x1x19 mode=rms"),
                    wide({"norm_forward_channels"},
                         "norm_forward x=f32:2x3x4x9x5:540,4,1,60,12 mean=f32:2x3x1x1x1 axes=2,3,4"),
                    wide(inference, "norm_inference x=f32:2x21x5x8")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::norm_test
