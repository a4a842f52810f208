// Every algorithm of reduce against the reference, on shapes that are awkward in one way each.
#include "kiln/generator/operations/reduce.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::reduce_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"reduce_simple"};
const Names all = {"reduce_simple", "reduce_blocks"};

class ReduceModes : public testing::TestWithParam<ReduceMode> {};

// Along rows, across them, and with the positions of what is picked.
TEST_P(ReduceModes, MatchTheReference) {
  const std::string_view mode = to_string(GetParam());
  expect_defaults_match({"", fmt::format("reduce x=f32:5x37 axes=1 mode={}", mode), all});
  expect_some_defaults_match(
      {"", fmt::format("reduce x=f16:2x24x3x5:nhwc axes=0,2,3 mode={}", mode), {"reduce_blocks"}});
  expect_defaults_match({"", fmt::format("reduce x=bf16:3x0x2 axes=1 mode={}", mode), trusted});
  if (!has_indices(GetParam())) return;
  expect_defaults_match({"", fmt::format("reduce x=f32:5x37 indices=i32:5x1 axes=1 mode={}", mode), all});
  expect_some_defaults_match(
      {"", fmt::format("reduce x=i8:2x24x3x5:nhwc indices=i32:1x24x1x1 axes=0,2,3 mode={}", mode), {"reduce_blocks"}});
  expect_defaults_match({"", fmt::format("reduce x=bf16:3x0x2 indices=i32:3x1x2 axes=1 mode={}", mode), trusted});
}

INSTANTIATE_TEST_SUITE_P(All, ReduceModes, testing::ValuesIn(reduce_modes()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class ReduceDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ReduceDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ReduceDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "reduce x=f32:1 axes=0", all},
        AlgorithmCase{"RowsOfOne", "reduce x=u8:7x1:3,1 axes=1", all},
        AlgorithmCase{"EverythingOfALongVector", "reduce x=bf16:4104 mode=norm2", all},
        AlgorithmCase{"Vectors", "reduce x=f16:3x1000@2 axes=1 mode=mean beta=1", all},
        AlgorithmCase{"Blend", "reduce x=f32:3x268 axes=1 alpha=any beta=any", all},
        AlgorithmCase{"AlphaZero", "reduce x=f16:3x40 axes=1 alpha=0 beta=1", all},
        AlgorithmCase{"DynamicBatch", "reduce x=f32:8x132 axes=1 n=?", all},
        AlgorithmCase{"DynamicBatchAcross", "reduce x=f16:4x6x3x8 indices=i32:4x1x3x8 axes=1 mode=amax n=?", all},
        AlgorithmCase{"EmptyBatch", "reduce x=f32:0x132 axes=1", all},
        AlgorithmCase{"OverAnEmptyBatch", "reduce x=f32:0x13 indices=i32:1x13 axes=0 mode=min", trusted},
        AlgorithmCase{"BytesToIntegers", "reduce x=u8:5x48 y=i32:5x1 axes=1", all},
        AlgorithmCase{"IntegersSaturate", "reduce x=i8:5x48 y=i8:5x1 axes=1", all},
        AlgorithmCase{"WideIntegers", "reduce x=i32:5x33 indices=i32:1x33 axes=0 mode=max", all},
        AlgorithmCase{"ToAWiderType", "reduce x=f16:5x33x4 y=f32:1x33x1 axes=0,2", all},
        AlgorithmCase{"OuterAndInnerAlong", "reduce x=f32:5x6x7x8 indices=i32:5x1x7x1 axes=1,3 mode=min", all},
        AlgorithmCase{"FiveDimensions", "reduce x=f16:2x3x5x2x4 indices=i32:2x1x5x1x1 axes=1,3,4 mode=amax", all},
        AlgorithmCase{"ASubRegion", "reduce x=i32:2x3x5x8:300,90,12,1 y=i32:2x1x5x1:20,7,3,1 axes=1,3", all},
        AlgorithmCase{"ASubRegionAcross", "reduce x=bf16:4x6x16:200,30,1 axes=0,1 mode=norm1", all},
        AlgorithmCase{"EveryThirdElement", "reduce x=f16:5x37:120,3 indices=i32:5x1:2,1 axes=1 mode=min", all},
        AlgorithmCase{"Repeated", "reduce x=f32:5x16:0,1 axes=0", all},
        AlgorithmCase{"LastAxis", "reduce x=i8:2x3x19:80,24,1 axes=-1", all}),
    case_name);

TEST(ReduceOn, OtherArchitecturesMatchesTheReference) {
  for (const auto& [major, minor] : {std::pair{7, 5}, std::pair{12, 0}}) {
    const Target target = target_of(major, minor);
    expect_defaults_match({"", "reduce x=bf16:3x268 indices=i32:3x1 axes=1 mode=max", all}, target);
  }
}

INSTANTIATE_TEST_SUITE_P(
    ReduceConfigs, PairwiseMatch,
    testing::Values(cover("reduce_simple", "reduce x=f32:3x41 axes=1 mode=norm2"),
                    cover("reduce_simple", "reduce x=f16:2x5x3x7:nhwc indices=i32:1x5x1x1 axes=0,2,3 mode=min"),
                    cover("reduce_blocks", "reduce x=f16:3x1544 indices=i32:3x1 axes=1 mode=max"),
                    cover("reduce_blocks", "reduce x=f32:8x12x6x12:nhwc y=f32:1x12x1x1 axes=0,2,3 mode=add")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(ReduceWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"reduce_simple"}, "reduce x=f16:3x264 axes=1"),
                                         wide({"reduce_blocks"},
                                              "reduce x=f32:5x6x7x8 indices=i32:1x6x1x8 axes=0,2 mode=max")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::reduce_test
