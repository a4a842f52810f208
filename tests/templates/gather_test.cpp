// Every algorithm for gather against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::gather_test {
namespace {

const std::vector<std::string> all = {"gather_simple", "gather_vector"};

class GatherTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(GatherTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GatherTest,
    testing::Values(AlgorithmCase{"RowsOfATable", "gather x=f32:9x24 indices=i32:5x1", all},
                    AlgorithmCase{"RowsOfOddLength", "gather x=f16:9x23 indices=i32:5x1 alpha=any beta=any", all},
                    AlgorithmCase{"OneTableForAllImages", "gather x=bf16:1x9x16 indices=i32:8x5x1 axis=1 n=?", all},
                    AlgorithmCase{"Columns", "gather x=f32:3x7x11 indices=i32:1x1x24 axis=-1", all},
                    AlgorithmCase{"Channels", "gather x=f16:2x24x5x7 indices=i32:1x8x1x1 axis=1", all},
                    AlgorithmCase{"ChannelsLast", "gather x=bf16:2x24x5x7:nhwc indices=i32:1x8x1x1 axis=1", all},
                    AlgorithmCase{"RowsOfChannelsLast", "gather x=u8:2x24x5x7:nhwc indices=i32:1x1x9x1 axis=2", all},
                    AlgorithmCase{"EachItsOwn", "gather x=f32:6x9 indices=i32:6x16 axis=1 n=?", all},
                    AlgorithmCase{"EachItsOwnAcross", "gather x=i8:9x6x4 indices=i32:5x6x4 axis=0", all},
                    AlgorithmCase{"BothRepeat", "gather x=f32:3x7x1 indices=i32:1x5x4 axis=1", all},
                    AlgorithmCase{"OneDimension", "gather x=i32:37 indices=i32:64", all},
                    AlgorithmCase{"Bytes", "gather x=u8:9x32 indices=i32:5x1 y=u8:5x32:48,1", all},
                    AlgorithmCase{"Fp8", "gather x=f8e4m3:9x32 indices=i32:5x1", all},
                    AlgorithmCase{"OtherFp8", "gather x=f8e5m2:9x6 indices=i32:9x4 axis=1 y=f8e5m2:9x4:6,1", all},
                    AlgorithmCase{"IntegersToHalves", "gather x=i32:9x8 indices=i32:5x1 y=f16:5x8", all},
                    AlgorithmCase{"FloatsToBytes", "gather x=f32:9x8 indices=i32:5x1 y=i8:5x8 alpha=any", all},
                    AlgorithmCase{"Regions", "gather x=f32:9x6:7,1 indices=i32:5x6:11,1 y=f32:5x6:13,1", all},
                    AlgorithmCase{"RegionsInF16", "gather x=f16:9x6:7,1 indices=i32:5x1:3,1 y=f16:5x6:13,1", all},
                    AlgorithmCase{"RegionsInBF16", "gather x=bf16:9x6:2,20 indices=i32:5x6:1,7 y=bf16:5x6:1,9", all},
                    AlgorithmCase{"RegionsOfIntegers", "gather x=i32:9x6:7,1 indices=i32:5x1 y=i32:5x6:13,1", all},
                    AlgorithmCase{"RegionsOfBytes", "gather x=i8:9x6:7,1 indices=i32:5x1 y=i8:5x6:13,1", all},
                    AlgorithmCase{"FiveDimensions", "gather x=f32:2x3x4x5x6 indices=i32:2x1x7x1x6 axis=2", all},
                    AlgorithmCase{"NothingAtAll", "gather x=f32:0x6 indices=i32:0x1", all},
                    AlgorithmCase{"NothingToTake", "gather x=f32:9x6 indices=i32:0x1", all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(GatherConfigs, PairwiseMatch,
                         testing::Values(cover("gather_simple", "gather x=f16:9x33 indices=i32:5x1"),
                                         cover("gather_simple", "gather x=f32:5x9x7 indices=i32:5x4x7:28,1,4 axis=1"),
                                         cover("gather_vector", "gather x=f16:19x64 indices=i32:301x1 axis=0"),
                                         cover("gather_vector",
                                               "gather x=u8:7x19x3 indices=i32:7x512x1 axis=1 y=f32:7x512x3:nwc")),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(GatherWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(all, "gather x=f32:4x8x3 indices=i32:4x6x1 axis=1 n=?")), cover_name);

}  // namespace
}  // namespace kiln::testing_support::gather_test
