// Every algorithm for dropout against the reference: the same mask in every layout, by every kernel.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::dropout_test {
namespace {

const std::vector<std::string> both = {"dropout_simple", "dropout_vector"};

class DropoutTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(DropoutTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, DropoutTest,
    testing::Values(AlgorithmCase{"Contiguous", "dropout x=f32:3x7x11x13", both},
                    AlgorithmCase{"Half", "dropout x=f16:5x24x8 alpha=any beta=any", both},
                    AlgorithmCase{"ChannelsLast", "dropout x=bf16:2x24x5x7:nhwc", both},
                    AlgorithmCase{"TwoLayouts", "dropout x=f32:2x8x5x7:nchw y=f16:2x8x5x7:nhwc", both},
                    AlgorithmCase{"OddRows", "dropout x=f32:5x6:7,1 y=f32:5x6:9,1", both},
                    AlgorithmCase{"SubRegion", "dropout x=f16:4x3x8:200,50,2@4 y=f16:4x3x8:400,33,1@4 beta=1", both},
                    AlgorithmCase{"FiveDimensions", "dropout x=f32:2x3x2x5x4:ndhwc", both},
                    AlgorithmCase{"EmptyBatch", "dropout x=f32:0x6", both},
                    AlgorithmCase{"DynamicBatch", "dropout x=f32:8x5x3 n=?", both},
                    AlgorithmCase{"AlphaZero", "dropout x=f32:37 alpha=0 beta=any", both}),
    case_name);

INSTANTIATE_TEST_SUITE_P(DropoutConfigs, PairwiseMatch,
                         testing::Values(cover("dropout_simple", "dropout x=f16:5x33x3"),
                                         cover("dropout_simple", "dropout x=f32:3x5x7"),
                                         cover("dropout_vector", "dropout x=f16:6x96x40"),
                                         cover("dropout_vector", "dropout x=f32:3x16x9x8:nhwc")),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(DropoutWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(both, "dropout x=f32:4x8x3x3:nhwc n=?")), cover_name);

}  // namespace
}  // namespace kiln::testing_support::dropout_test
