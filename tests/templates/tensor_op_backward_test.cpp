// Every algorithm of tensor_op_backward against the reference.
#include "kiln/generator/operations/tensor_op_backward.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::tensor_op_backward_test {
namespace {

const std::vector<std::string> trusted = {"tensor_op_backward_simple"},
                               whole = {"tensor_op_backward_simple", "tensor_op_backward_vector"},
                               sums = {"tensor_op_backward_simple", "tensor_op_backward_blocks"};

// A request of a gradient, with the inputs that it reads; the input whose gradient it is has the extents `own`.
std::string gradient(TensorOpMode mode, TensorOpInput by, const std::string& dtype, const std::string& extents,
                     const std::string& own) {
  const auto input = [&](TensorOpInput which) {
    return fmt::format(" {}={}:{}", to_string(which), dtype, which == by ? own : extents);
  };
  std::string request = fmt::format("tensor_op_backward dy={}:{}", dtype, extents);
  if (gradient_reads_a(mode, by)) request += input(TensorOpInput::a);
  if (gradient_reads_b(mode, by)) request += input(TensorOpInput::b);
  return request + fmt::format(" dx={}:{} mode={} input={}", dtype, own, to_string(mode), to_string(by));
}

class TensorOpGradients : public testing::TestWithParam<TensorOpMode> {};

// Gradients of each input, of every element, and added up along rows and across them.
TEST_P(TensorOpGradients, MatchTheReference) {
  for (const TensorOpInput by : {TensorOpInput::a, TensorOpInput::b, TensorOpInput::c}) {
    if (!has_gradient(GetParam(), by)) continue;
    expect_defaults_match({"", gradient(GetParam(), by, "f32", "5x37", "5x37"), whole});
    expect_defaults_match({"", gradient(GetParam(), by, "f32", "5x37", "5x1"), sums});
    expect_some_defaults_match({"", gradient(GetParam(), by, "f16", "2x24x3x5:nhwc", "1x24x1x1"), sums});
    expect_defaults_match({"", gradient(GetParam(), by, "bf16", "2x24x3", "2x24x3"), whole});
  }
}

INSTANTIATE_TEST_SUITE_P(All, TensorOpGradients, testing::ValuesIn(tensor_op_modes()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class TensorOpBackwardDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorOpBackwardDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto along = "tensor_op_backward dy=f16:3x1544 b=f16:3x1544 dx=f16:3x1 mode=mul";
constexpr auto across = "tensor_op_backward dy=f32:8x12x6x12:nhwc a=f32:8x12x6x12:nhwc b=f32:1x12x1x1 mode=div input=b";
constexpr auto elements = "tensor_op_backward dy=f32:3x268 a=f32:3x268 b=f32:1x268 mode=pow";

INSTANTIATE_TEST_SUITE_P(
    Shapes, TensorOpBackwardDefaults,
    testing::Values(
        AlgorithmCase{"SingleElement", "tensor_op_backward dy=f32:1 dx=f32:1 mode=add", whole},
        AlgorithmCase{"SumsOfALongRow", along, sums}, AlgorithmCase{"SumsOfChannels", across, sums},
        AlgorithmCase{"OtherRepeats", elements, whole},
        AlgorithmCase{"Everything", "tensor_op_backward dy=bf16:4104 b=f32:4104 dx=f32:1 mode=mul", sums},
        AlgorithmCase{"Blend", "tensor_op_backward dy=f32:3x268 dx=f32:3x268 mode=neg alpha=any beta=any", whole},
        AlgorithmCase{"BlendOfSums", "tensor_op_backward dy=f32:3x268 dx=f32:1x268 mode=sub input=b alpha=any beta=any",
                      sums},
        AlgorithmCase{"BatchOfAnySize", "tensor_op_backward dy=f32:8x132 a=f32:8x132 mode=exp n=?", whole},
        AlgorithmCase{"SumsOfABatchOfAnySize", "tensor_op_backward dy=f32:8x132 b=f32:1x132 dx=f32:8x1 mode=mul n=?",
                      sums},
        AlgorithmCase{"EmptyBatch", "tensor_op_backward dy=f32:0x132 dx=f32:0x132 mode=add", whole},
        AlgorithmCase{"OverAnEmptyBatch", "tensor_op_backward dy=f32:0x13 dx=f32:1x13 mode=add", trusted},
        AlgorithmCase{"OuterAndInner", "tensor_op_backward dy=f32:5x6x7x8 b=f32:1x6x1x8 dx=f32:5x1x7x1 mode=mul", sums},
        AlgorithmCase{"Regions", "tensor_op_backward dy=f32:5x37:120,3 a=f32:5x37:90,1 dx=f32:5x37:50,1 mode=log",
                      whole},
        AlgorithmCase{"RegionsOfF16", "tensor_op_backward dy=f16:5x37:120,3 a=f16:5x37:90,1 dx=f16:5x37:50,1 mode=abs",
                      whole},
        AlgorithmCase{"RegionsOfBF16",
                      "tensor_op_backward dy=bf16:5x37:120,3 a=bf16:5x37:90,1 dx=bf16:5x37:50,1 mode=abs", whole},
        AlgorithmCase{"SumsOfRegions", "tensor_op_backward dy=f32:5x37:120,3 b=f32:5x37:90,1 dx=f32:5x1:2,1 mode=mul",
                      sums},
        AlgorithmCase{"SumsOfRegionsOfF16",
                      "tensor_op_backward dy=f16:4x6x16:200,30,1 b=f16:4x6x16:200,20,1 dx=f16:1x1x16:9,9,1 mode=mul",
                      sums},
        AlgorithmCase{"SumsOfRegionsOfBF16",
                      "tensor_op_backward dy=bf16:4x6x16:200,30,1 b=bf16:4x6x16:200,20,1 dx=bf16:1x1x16:9,9,1 mode=mul",
                      sums},
        AlgorithmCase{"ElementsOfBF16", "tensor_op_backward dy=bf16:5x40 b=bf16:5x40 dx=bf16:5x40 mode=mul", whole},
        AlgorithmCase{"SumsOfBF16", "tensor_op_backward dy=bf16:5x40 b=bf16:5x40 dx=bf16:5x1 mode=mul", sums}),
    case_name);

INSTANTIATE_TEST_SUITE_P(TensorOpBackwardConfigs, PairwiseMatch,
                         testing::Values(cover("tensor_op_backward_simple", elements),
                                         cover("tensor_op_backward_simple", across),
                                         cover("tensor_op_backward_vector", elements),
                                         cover("tensor_op_backward_vector",
                                               "tensor_op_backward dy=f16:2x24x3x5 a=f16:2x24x3x5:nhwc mode=sqrt"),
                                         cover("tensor_op_backward_blocks", along),
                                         cover("tensor_op_backward_blocks", across)),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(
    TensorOpBackwardWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide({"tensor_op_backward_simple"}, "tensor_op_backward dy=f16:3x264 b=f16:3x264 dx=f16:3x264 mode=mul"),
        wide({"tensor_op_backward_vector"}, "tensor_op_backward dy=f16:3x264 b=f16:3x264 dx=f16:3x264 mode=mul"),
        wide({"tensor_op_backward_blocks"}, "tensor_op_backward dy=f32:5x6x7x8 b=f32:1x6x1x8 dx=f32:5x1x7x1 mode=mul")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::tensor_op_backward_test
