// Every algorithm for scatter against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::scatter_test {
namespace {

const std::vector<std::string> sums = {"scatter_simple", "scatter_exact"}, products = {"scatter_simple"},
                               extremes = {"scatter_simple", "scatter_extremes"},
                               sums_of_slices = {"scatter_simple", "scatter_exact", "scatter_lists"};

class ScatterTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ScatterTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto rows = "scatter updates=f32:31x24 indices=i32:31x1 y=f32:9x24";
constexpr auto least_of_rows = "scatter updates=f32:31x24 indices=i32:31x1 y=f32:9x24 mode=min";
constexpr auto each_its_own = "scatter updates=f16:6x40 indices=i32:6x40 y=f16:6x9 axis=1";

INSTANTIATE_TEST_SUITE_P(
    Sums, ScatterTest,
    testing::Values(
        AlgorithmCase{"RowsOfATable", rows, sums_of_slices}, AlgorithmCase{"EachItsOwn", each_its_own, sums},
        AlgorithmCase{"RowsOfBF16", "scatter updates=bf16:31x7 indices=i32:31x1 y=bf16:9x7", sums_of_slices},
        AlgorithmCase{"ToF32", "scatter updates=bf16:31x7 indices=i32:31x1 y=f32:9x7 alpha=any beta=any",
                      sums_of_slices},
        AlgorithmCase{"OneTableForEachImage", "scatter updates=f32:8x5x6 indices=i32:8x5x1 y=f32:8x9x6 axis=1 n=?",
                      sums},
        AlgorithmCase{"Columns", "scatter updates=f32:3x7x24 indices=i32:1x1x24 y=f32:3x7x11 axis=-1", sums_of_slices},
        AlgorithmCase{"Across", "scatter updates=f32:9x6x4 indices=i32:9x6x4 y=f32:5x6x4", sums},
        AlgorithmCase{"ManyAtOne", "scatter updates=f32:3000x2 indices=i32:3000x1 y=f32:2x2", sums_of_slices},
        AlgorithmCase{"OneDimension", "scatter updates=f32:64 indices=i32:64 y=f32:37", sums_of_slices},
        AlgorithmCase{"OneElement", "scatter updates=f32:1 indices=i32:1 y=f32:1 beta=1", sums_of_slices},
        AlgorithmCase{"Regions", "scatter updates=f32:5x6:7,1 indices=i32:5x6:11,1 y=f32:9x6:13,1", sums},
        AlgorithmCase{"RegionsInF16", "scatter updates=f16:5x6:7,1 indices=i32:5x1:3,1 y=f16:9x6:13,1", sums_of_slices},
        AlgorithmCase{"RegionsInBF16", "scatter updates=bf16:5x6:2,20 indices=i32:5x6:1,7 y=bf16:9x6:1,9", sums},
        AlgorithmCase{"RowsInRegionsOfF32", "scatter updates=f32:5x6:7,1 indices=i32:5x1:3,1 y=f32:9x6:13,1",
                      sums_of_slices},
        AlgorithmCase{"RowsInRegionsOfBF16", "scatter updates=bf16:5x6:7,1 indices=i32:5x1:3,1 y=bf16:9x6:13,1",
                      sums_of_slices},
        AlgorithmCase{"RowsOfF16", "scatter updates=f16:31x7 indices=i32:31x1 y=f16:9x7", sums_of_slices},
        AlgorithmCase{"RowsOfImages", "scatter updates=f32:4x6x3 indices=i32:1x6x1 y=f32:4x8x3 axis=1 n=?",
                      sums_of_slices},
        AlgorithmCase{"FiveDimensions", "scatter updates=f32:2x3x7x5x6 indices=i32:2x1x7x1x6 y=f32:2x3x4x5x6 axis=2",
                      sums},
        AlgorithmCase{"ChannelsLast", "scatter updates=f32:2x8x5x7:nhwc indices=i32:1x8x1x1 y=f32:2x24x5x7:nhwc axis=1",
                      sums_of_slices},
        AlgorithmCase{"NoUpdates", "scatter updates=f32:0x6 indices=i32:0x1 y=f32:3x6 alpha=any beta=any",
                      sums_of_slices},
        AlgorithmCase{"NothingAtAll", "scatter updates=f32:4x0 indices=i32:4x1 y=f32:3x0", sums_of_slices},
        AlgorithmCase{"NoPositions", "scatter updates=f32:4x2 indices=i32:4x1 y=f32:0x2", sums_of_slices}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Others, ScatterTest,
    testing::Values(
        AlgorithmCase{"Product", "scatter updates=f32:31x7 indices=i32:31x1 y=f32:9x7 mode=mul", products},
        AlgorithmCase{"Least", "scatter updates=f16:31x7 indices=i32:31x1 y=f32:9x7 mode=min", extremes},
        AlgorithmCase{"Largest", "scatter updates=f32:6x40 indices=i32:6x40 y=f16:6x9 axis=1 mode=max", extremes},
        AlgorithmCase{"LargestOfNothing", "scatter updates=f32:0x6 indices=i32:0x1 y=f32:3x6 mode=max", extremes},
        AlgorithmCase{"LeastOfRows", least_of_rows, extremes},
        AlgorithmCase{"LeastOfImages",
                      "scatter updates=bf16:4x6x3 indices=i32:4x6x1 y=bf16:4x8x3 axis=1 mode=min n=? beta=any",
                      extremes},
        AlgorithmCase{"LargestInRegions", "scatter updates=f32:5x6:7,1 indices=i32:5x6:11,1 y=f32:9x6:13,1 mode=max",
                      extremes},
        AlgorithmCase{"LargestInRegionsOfF16",
                      "scatter updates=f16:5x6:7,1 indices=i32:5x1:3,1 y=f16:9x6:13,1 mode=max", extremes},
        AlgorithmCase{"LargestInRegionsOfBF16",
                      "scatter updates=bf16:5x6:2,20 indices=i32:5x6:1,7 y=bf16:9x6:1,9 mode=max", extremes},
        AlgorithmCase{"LargestOfChannelsLast",
                      "scatter updates=f16:2x8x5x7:nhwc indices=i32:1x8x1x1 y=f16:2x24x5x7:nhwc axis=1 mode=max",
                      extremes}),
    case_name);

INSTANTIATE_TEST_SUITE_P(ScatterConfigs, PairwiseMatch, testing::ValuesIn(covers(sums, {rows, each_its_own})),
                         cover_name);
INSTANTIATE_TEST_SUITE_P(
    ScatterListsConfigs, PairwiseMatch,
    testing::ValuesIn(covers({"scatter_lists"},
                             {rows, "scatter updates=f16:3x7x64 indices=i32:1x1x64 y=f16:3x7x5 axis=-1"})),
    cover_name);
INSTANTIATE_TEST_SUITE_P(
    ScatterExtremesConfigs, PairwiseMatch,
    testing::ValuesIn(covers({"scatter_extremes"},
                             {least_of_rows, "scatter updates=f16:6x40 indices=i32:6x40 y=f16:6x9 axis=1 mode=max"})),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ScatterWithWideOffsets, WideIndexMatch,
    testing::Values(wide(sums, "scatter updates=f32:4x6x3 indices=i32:4x6x1 y=f32:4x8x3 axis=1 n=?"),
                    wide({"scatter_lists"}, "scatter updates=f32:4x6x3 indices=i32:1x6x1 y=f32:4x8x3 axis=1 n=?"),
                    wide({"scatter_extremes"},
                         "scatter updates=f32:4x6x3 indices=i32:4x6x1 y=f32:4x8x3 axis=1 mode=max n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::scatter_test
