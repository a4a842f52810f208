// Every algorithm of reduce_backward against the reference, on shapes that are awkward in one way each.
#include "kiln/generator/operations/reduce_backward.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::reduce_backward_test {
namespace {

const std::vector<std::string> trusted = {"reduce_backward_simple"},
                               all = {"reduce_backward_simple", "reduce_backward_blocks"};

// A request of a gradient: with the operands that its mode reads.
std::string gradient(ReduceMode mode, const std::string& dtype, const std::string& whole, const std::string& reduced,
                     const std::string& axes) {
  std::string request = fmt::format("reduce_backward dy={}:{}", dtype, reduced);
  if (gradient_reads_x(mode)) request += fmt::format(" x={}:{}", dtype, whole);
  if (gradient_reads_y(mode)) request += fmt::format(" y={}:{}", dtype, reduced);
  if (has_indices(mode)) request += fmt::format(" indices=i32:{}", reduced);
  return request + fmt::format(" dx={}:{} axes={} mode={}", dtype, whole, axes, to_string(mode));
}

class ReduceGradients : public testing::TestWithParam<ReduceMode> {};

// Along rows, across them, along several axes.
TEST_P(ReduceGradients, MatchTheReference) {
  expect_defaults_match({"", gradient(GetParam(), "f32", "5x37", "5x1", "1"), all});
  expect_some_defaults_match({"", gradient(GetParam(), "f16", "2x24x3x5:nhwc", "1x24x1x1", "0,2,3"), all});
  expect_defaults_match({"", gradient(GetParam(), "bf16", "6x12x8", "6x1x8", "1"), all});
  expect_defaults_match({"", gradient(GetParam(), "f32", "3x1x5", "3x1x5", "1"), all});
  expect_defaults_match({"", gradient(GetParam(), "f32", "3x0x2", "3x1x2", "1"), trusted});
}

INSTANTIATE_TEST_SUITE_P(All, ReduceGradients, testing::ValuesIn(reduce_modes()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class ReduceBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ReduceBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto along = "reduce_backward dy=f16:3x1 x=f16:3x1544 dx=f16:3x1544 axes=1 mode=norm1";
constexpr auto across =
    "reduce_backward dy=f32:1x12x1x1 indices=i32:1x12x1x1 dx=f32:8x12x6x12:nhwc axes=0,2,3 mode=max";

INSTANTIATE_TEST_SUITE_P(
    Shapes, ReduceBackwardDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "reduce_backward dy=f32:1 dx=f32:1 axes=0", all},
        AlgorithmCase{"Everything", "reduce_backward dy=f32:1x1 dx=bf16:3x1368 mode=mean", all},
        AlgorithmCase{"ALongRow", along, all}, AlgorithmCase{"Channels", across, all},
        AlgorithmCase{"Blend", "reduce_backward dy=f32:3x1 dx=f32:3x268 axes=1 alpha=any beta=any", all},
        AlgorithmCase{"BatchOfAnySize", "reduce_backward dy=f32:8x1 x=f32:8x132 y=f32:8x1 axes=1 mode=norm2 n=?", all},
        AlgorithmCase{"BatchOfAnySizeAcross",
                      "reduce_backward dy=f16:4x1x3x8 x=f16:4x6x3x8 indices=i32:4x1x3x8 axes=1 mode=amax n=?", all},
        AlgorithmCase{"EmptyBatch", "reduce_backward dy=f32:0x1 dx=f32:0x132 axes=1", all},
        AlgorithmCase{"OuterAndInner",
                      "reduce_backward dy=f32:5x1x7x1 indices=i32:5x1x7x1 dx=f32:5x6x7x8 axes=1,3 mode=min", all},
        AlgorithmCase{"FiveDimensions",
                      "reduce_backward dy=f16:2x1x5x1x1 x=f16:2x3x5x2x4 y=f32:2x1x5x1x1 axes=1,3,4 mode=mul", all},
        AlgorithmCase{
            "SubRegion",
            "reduce_backward dy=f32:2x1x5x1:20,7,3,1 x=f32:2x3x5x8:300,90,12,1 dx=f32:2x3x5x8:280,80,9,1 axes=1,3 "
            "mode=norm1",
            all},
        AlgorithmCase{"SubRegionOfF16",
                      "reduce_backward dy=f16:5x1:2,1 x=f16:5x37:120,3 dx=f16:5x37:50,1 axes=1 mode=norm1", all},
        AlgorithmCase{"SubRegionOfBF16",
                      "reduce_backward dy=bf16:1x1x16:30,30,1 x=bf16:4x6x16:200,30,1 dx=bf16:4x6x16:220,20,1 axes=0,1 "
                      "mode=norm1",
                      all},
        AlgorithmCase{"RowsOfBF16", "reduce_backward dy=bf16:5x1 x=bf16:5x40 dx=bf16:5x40 axes=1 mode=norm1", all},
        AlgorithmCase{"LastAxis", "reduce_backward dy=bf16:2x3x1 dx=f32:2x3x19:80,24,1 axes=-1", all}),
    case_name);

// Rows with one 0, with several and with none: products of the others.
TEST(ReduceBackwardOf, ProductsOfRowsWithZeros) {
  for (const char* request : {"reduce_backward dy=f32:64x1 x=f32:64x3 y=f32:64x1 axes=1 mode=mul",
                              "reduce_backward dy=f32:1x40 x=f32:4x40 y=f32:1x40 axes=0 mode=mul"}) {
    expect_defaults_match({"", request, all});
  }
}

INSTANTIATE_TEST_SUITE_P(ReduceBackwardConfigs, PairwiseMatch,
                         testing::ValuesIn(covers({"reduce_backward_simple", "reduce_backward_blocks"},
                                                  {along, across})),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(
    ReduceBackwardWithWideOffsets, WideIndexMatch,
    testing::Values(wide(all, "reduce_backward dy=f32:5x1x7x1 indices=i32:5x1x7x1 dx=f32:5x6x7x8 axes=1,3 mode=min")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::reduce_backward_test
