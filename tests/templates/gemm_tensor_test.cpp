// Matrix products on tensor cores against the reference: defaults on shapes that are awkward in a few ways each,
// pairwise covers of the configurations, 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::gemm_tensor_test {
namespace {

using Names = std::vector<std::string>;

const Names all = {"gemm_tensor", "gemm_tensor_splitk", "gemm_tensor_staged"};
const Names whole_sums = {"gemm_tensor", "gemm_tensor_staged"};
const Names staged = {"gemm_tensor_staged"};
const Names persistent = {"gemm_tensor_persistent"};

// Runs the algorithms `served_by` alone.
class GemmTensor : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(GemmTensor, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, GemmTensor,
    testing::Values(
        AlgorithmCase{"RowMajor", "gemm a=f16:50x134 b=f16:134x66 epilogue=bias+relu", all},
        AlgorithmCase{"TransposedB", "gemm a=bf16:33x104 b=bf16:104x17:1,104 c=f32:33x17", all},
        AlgorithmCase{"OneRow", "gemm a=f16:1x200 b=f16:200x64 alpha=any beta=any", all},
        AlgorithmCase{"ShortDepth", "gemm a=f16:130x8 b=f16:8x130", whole_sums},
        AlgorithmCase{"Batch", "gemm a=f16:3x20x100 b=f16:3x100x24 epilogue=bias+add", all},
        AlgorithmCase{"BatchThatSharesB", "gemm a=bf16:2x3x20x136 b=bf16:1x1x136x24", all},
        AlgorithmCase{"Regions", "gemm a=f16:37x130:140,1@4 b=f16:130x40:48,1@4 c=f16:37x40:50,1@2", all},
        AlgorithmCase{"RegionsInBF16", "gemm a=bf16:37x130:140,1@4 b=bf16:130x40:48,1@4 c=bf16:37x40:1,44@2", all},
        AlgorithmCase{"TransposedA", "gemm a=f16:40x33:1,40 b=f16:33x24 epilogue=relu", staged},
        AlgorithmCase{"OddDepth", "gemm a=bf16:35x33 b=bf16:33x21 epilogue=bias", staged},
        AlgorithmCase{"OddRegions", "gemm a=f16:35x33:41,1@2 b=f16:33x21:1,35@2 c=f16:35x21:23,1@2", staged},
        AlgorithmCase{"OddRegionsInBF16", "gemm a=bf16:35x33:41,1@2 b=bf16:33x21:1,35@2 c=bf16:35x21:23,1@2", staged}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ShortDepths, GemmTensor,
    testing::Values(
        AlgorithmCase{"RowMajor", "gemm a=f16:150x134 b=f16:134x66 epilogue=bias+relu", persistent},
        AlgorithmCase{"TransposedB", "gemm a=bf16:133x104 b=bf16:104x17:1,104 c=f32:133x17", persistent},
        AlgorithmCase{"BatchThatSharesB", "gemm a=bf16:2x3x70x136 b=bf16:1x1x136x24 alpha=any beta=any", persistent},
        AlgorithmCase{"Regions", "gemm a=f16:137x130:140,1@4 b=f16:130x40:48,1@4 c=f16:137x40:50,1@2", persistent},
        AlgorithmCase{"RegionsAsTf32", "gemm a=f32:137x67:70,1 b=f32:67x40:48,1 c=f32:137x40:1,141 tf32", persistent},
        AlgorithmCase{"AsTf32", "gemm a=f32:150x67 b=f32:67x35 epilogue=bias tf32", persistent}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    AsTf32, GemmTensor,
    testing::Values(AlgorithmCase{"RowMajor", "gemm a=f32:50x131 b=f32:131x67 epilogue=bias+relu tf32", all},
                    AlgorithmCase{"TransposedB", "gemm a=f32:33x104 b=f32:104x17:1,104 c=f16:33x17 tf32", all},
                    AlgorithmCase{"OneRow", "gemm a=f32:1x200 b=f32:200x64 alpha=any beta=any tf32", all},
                    AlgorithmCase{"ShortDepth", "gemm a=f32:130x3 b=f32:3x130 tf32", whole_sums},
                    AlgorithmCase{"BatchThatSharesB", "gemm a=f32:2x3x20x136 b=f32:1x1x136x24 tf32", all},
                    AlgorithmCase{"TransposedA", "gemm a=f32:40x33:1,40 b=f32:33x24 epilogue=relu tf32", staged},
                    AlgorithmCase{"OddRegions", "gemm a=f32:35x33:41,1 b=f32:33x21:1,35 c=f32:35x21:23,1 tf32",
                                  whole_sums}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    GemmTensorConfigs, PairwiseMatch,
    testing::Values(cover("gemm_tensor", "gemm a=f16:140x72 b=f16:72x136 epilogue=bias+add"),
                    cover("gemm_tensor", "gemm a=bf16:2x66x40:40,80,1 b=bf16:1x40x36:1440,1,40 c=f32:2x66x36"),
                    cover("gemm_tensor_persistent", "gemm a=f16:290x40 b=f16:40x132 c=f32:290x132:1,292 beta=any"),
                    cover("gemm_tensor_persistent", "gemm a=bf16:2x300x72 b=bf16:2x72x136:9800,1,72 epilogue=bias+add"),
                    cover("gemm_tensor_splitk", "gemm a=f16:66x300 b=f16:300x72 beta=any"),
                    cover("gemm_tensor_splitk", "gemm a=bf16:2x34x600 b=bf16:2x600x36:21600,1,600"),
                    cover("gemm_tensor_staged", "gemm a=f16:140x36:1,140 b=f16:36x136 epilogue=relu"),
                    cover("gemm_tensor_staged", "gemm a=bf16:66x37 b=bf16:37x34:1,37"),
                    cover("gemm_tensor", "gemm a=f32:140x40 b=f32:40x136 epilogue=bias tf32"),
                    cover("gemm_tensor_staged", "gemm a=f32:68x36:1,68 b=f32:36x72 tf32")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(GemmTensorWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"gemm_tensor_persistent"}, "gemm a=f16:2x70x96 b=f16:2x96x24 beta=any"),
                                         wide({"gemm_tensor", "gemm_tensor_splitk", "gemm_tensor_staged"},
                                              "gemm a=f16:2x20x200 b=f16:2x200x24 epilogue=bias+add beta=any")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::gemm_tensor_test
