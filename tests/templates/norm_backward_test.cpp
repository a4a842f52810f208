// Every algorithm of norm_backward against the reference, on shapes that are awkward in one way each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::norm_backward_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"norm_backward_simple"};
const Names all = {"norm_backward_simple", "norm_backward_blocks"};

class NormBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(NormBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Layer, NormBackwardDefaults,
    testing::Values(
        AlgorithmCase{"Primes", "norm_backward dy=f16:5x37 w=f16:1x37 dw=f32:1x37 db=f32:1x37", all},
        AlgorithmCase{"Vectors", "norm_backward dy=bf16:67x96 w=f32:1x96 dw=bf16:1x96 db=f32:1x96", all},
        AlgorithmCase{"OnlyDb", "norm_backward dy=f32:9x8 db=f32:1x8", all},
        AlgorithmCase{"LongRows", "norm_backward dy=f32:2x8200 w=f32:1x8200", all},
        AlgorithmCase{"Blend",
                      "norm_backward dy=f32:3x268 dw=f32:1x268 db=f32:1x268 dresidual=f32:3x268 alpha=any beta=any "
                      "parameter_alpha=any parameter_beta=any dresidual_alpha=any dresidual_beta=any",
                      all},
        AlgorithmCase{"AddsToDx", "norm_backward dy=f16:3x40:48,1 w=f16:1x40 dw=f16:1x40 mode=rms beta=1", all},
        AlgorithmCase{"AlphaZero",
                      "norm_backward dy=f16:3x40 dw=f32:1x40 dresidual=f16:3x40 alpha=0 parameter_alpha=0 "
                      "parameter_beta=1 dresidual_alpha=0",
                      all},
        AlgorithmCase{"DynamicBatch", "norm_backward dy=f32:8x132 w=f32:1x132 n=?", all},
        AlgorithmCase{"EmptyBatch", "norm_backward dy=f32:0x132 dw=f32:1x132", trusted},
        AlgorithmCase{"EmptyRows", "norm_backward dy=f32:3x0 w=f32:1x0 dw=f32:1x0", trusted},
        AlgorithmCase{"MixedTypes", "norm_backward dy=f16:3x132 x=f32:3x132 dx=bf16:3x132 db=f16:1x132", all},
        AlgorithmCase{"ThreeAxes",
                      "norm_backward dy=f32:4x3x5x4 w=f32:1x3x5x4 b=f32:1x3x5x4 dw=f32:1x3x5x4 axes=1,2,3 "
                      "activation=hard_sigmoid",
                      all},
        AlgorithmCase{"ReluAndResidual",
                      "norm_backward dy=f16:3x40 y=f16:3x40 w=f32:1x40 dw=f32:1x40 dresidual=f16:3x40 dresidual_beta=1",
                      all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    OtherAxes, NormBackwardDefaults,
    testing::Values(
        AlgorithmCase{"Instance",
                      "norm_backward dy=f32:3x5x6x7 w=f32:1x5x1x1 dw=f32:1x5x1x1 db=f32:1x5x1x1 axes=2,3 "
                      "parameter_alpha=any",
                      all},
        AlgorithmCase{"InstanceChannelsLast",
                      "norm_backward dy=f16:3x24x6x8:nhwc w=f32:1x24x1x1 dw=f32:1x24x1x1 axes=2,3", all},
        AlgorithmCase{"Group",
                      "norm_backward dy=f32:2x4x6x3x5 w=f32:1x4x6x1x1 dw=f32:1x4x6x1x1 db=f32:1x4x6x1x1 axes=2,3,4",
                      all},
        AlgorithmCase{"GroupOfPlanesWithGaps",
                      "norm_backward dy=f32:2x2x3x3x2x4:800,288,96,32,8,1 x=f32:2x2x3x3x2x4 w=f32:1x2x3x1x1x1 "
                      "dw=f32:1x2x3x1x1x1 axes=2,3,4,5",
                      all},
        AlgorithmCase{
            "Batch",
            "norm_backward dy=f32:3x5x6x7 w=f32:1x5x1x1 dw=f32:1x5x1x1 db=f32:1x5x1x1 axes=0,2,3 parameter_beta=any",
            all},
        AlgorithmCase{"BatchChannelsLast",
                      "norm_backward dy=f16:3x24x6x8:nhwc y=f16:3x24x6x8:nhwc w=f32:1x24x1x1 dw=f32:1x24x1x1 "
                      "db=f32:1x24x1x1 dresidual=f16:3x24x6x8:nhwc axes=0,2,3 dresidual_alpha=any dresidual_beta=1",
                      all},
        AlgorithmCase{
            "PerActivation",
            "norm_backward dy=f16:9x5x2x8 w=f32:1x5x2x8 b=bf16:1x5x1x1 residual=f16:9x5x2x8 dw=f32:1x5x2x8 axes=0 "
            "activation=gelu",
            all},
        AlgorithmCase{"ASubRegion",
                      "norm_backward dy=f32:3x4x5x8:300,70,12,1 x=f32:3x4x5x8:1,3,12,60 dx=f32:3x4x5x8:400,100,16,1 "
                      "dw=f32:1x4x1x1:9,2,1,1 axes=0,2,3",
                      all},
        AlgorithmCase{"MixedLayouts",
                      "norm_backward dy=f32:2x8x3x4:nchw x=f32:2x8x3x4:nhwc residual=f32:2x8x3x4:nhwc "
                      "db=f32:1x8x1x1 axes=0,2,3 activation=clip",
                      all},
        AlgorithmCase{"BatchBehindAnActivation",
                      "norm_backward dy=f16:3x24x6x8:nhwc w=f32:1x24x1x1 b=f32:1x24x1x1 residual=bf16:3x24x6x8:nhwc "
                      "dw=f32:1x24x1x1 db=f32:1x24x1x1 dresidual=f16:3x24x6x8:nhwc axes=0,2,3 activation=swish",
                      all},
        AlgorithmCase{"MeanSquaresBehindAnActivation",
                      "norm_backward dy=bf16:8x40:48,1 w=f32:1x40 mode=rms activation=mish n=?", all}),
    case_name);

TEST(NormBackwardOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    const Target target = target_of(major, minor);
    expect_defaults_match({"", "norm_backward dy=bf16:2x7x3x4:nhwc w=bf16:1x7x1x1 dw=bf16:1x7x1x1 axes=0,2,3", all},
                          target);
  }
}

INSTANTIATE_TEST_SUITE_P(
    NormBackwardConfigs, PairwiseMatch,
    testing::Values(
        cover("norm_backward_simple", "norm_backward dy=f32:5x33 w=f32:1x33"),
        cover("norm_backward_simple", "norm_backward dy=f16:3x5x7x2:nhwc mode=rms axes=1,2,3"),
        cover("norm_backward_blocks", "norm_backward dy=f16:3x1544 w=f32:1x1544 dw=f32:1x1544 db=f32:1x1544"),
        cover("norm_backward_blocks",
              "norm_backward dy=f16:8x12x6x12:nhwc residual=f16:8x12x6x12:nhwc w=f32:1x12x1x1 b=f32:1x12x1x1 "
              "dw=f32:1x12x1x1 db=f32:1x12x1x1 axes=0,2,3 parameter_beta=1 activation=swish")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(NormBackwardWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"norm_backward_simple"}, "norm_backward dy=f16:3x264 dw=f32:1x264"),
                                         wide({"norm_backward_blocks"},
                                              "norm_backward dy=f32:4x24 w=f32:1x1 dw=f32:1x1 db=f32:1x1")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::norm_backward_test
