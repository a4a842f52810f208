// The default configuration of every algorithm for cross entropy and its gradient against the reference, on logits that
// are awkward in one way each; pairwise covers of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::cross_entropy_test {
namespace {

using Names = std::vector<std::string>;

const Names along = {"cross_entropy_forward_simple", "cross_entropy_forward_rows"};
const Names across = {"cross_entropy_forward_simple", "cross_entropy_forward_strided"};
const Names gradient_along = {"cross_entropy_backward_simple", "cross_entropy_backward_rows"};
const Names gradient_across = {"cross_entropy_backward_simple", "cross_entropy_backward_strided"};
const Names gradient_both = {"cross_entropy_backward_simple", "cross_entropy_backward_rows",
                             "cross_entropy_backward_strided"};

class CrossEntropy : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(CrossEntropy, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, CrossEntropy,
    testing::Values(
        AlgorithmCase{"SingleElement", "cross_entropy_forward x=f32:1x1", along},
        AlgorithmCase{"Primes", "cross_entropy_forward x=f32:37x13 weights=f32:13:2 n=?", along},
        AlgorithmCase{"OneEach", "cross_entropy_forward x=f32:37x13 reduction=none alpha=any beta=any", along},
        AlgorithmCase{"Sum", "cross_entropy_forward x=f16:9x24:32,1 loss=f16:1 reduction=sum beta=1", along},
        AlgorithmCase{"ManyClasses",
                      "cross_entropy_forward x=f16:3x2051 losses=bf16:3 reduction=none ignore=0 smoothing=any", along},
        AlgorithmCase{"Images", "cross_entropy_forward x=f32:2x5x7x6", across},
        AlgorithmCase{"ImagesOneEach",
                      "cross_entropy_forward x=f16:2x21x9x10 losses=f32:2x9x10:200,1,20 reduction=none alpha=any",
                      across},
        AlgorithmCase{"ChannelsLast", "cross_entropy_forward x=bf16:2x12x3x4:nhwc reduction=sum", along},
        AlgorithmCase{"ThreeD", "cross_entropy_forward x=f32:2x3x2x3x5 reduction=none", across},
        AlgorithmCase{"OddStrides",
                      "cross_entropy_forward x=f32:4x6x5:100,11,2@4 targets=i32:4x5:7,1 losses=f32:4x5:1,9 "
                      "reduction=none",
                      across},
        AlgorithmCase{"EmptyBatch", "cross_entropy_forward x=f32:0x6 beta=any", along},
        AlgorithmCase{"WeightedImages", "cross_entropy_forward x=bf16:2x5x7x6 weights=f32:5", across},
        AlgorithmCase{"WeightedAndSmooth",
                      "cross_entropy_forward x=bf16:5x1030:1040,1 weights=f32:1030 smoothing=any n=?", along},
        AlgorithmCase{"WeightedAndSmoothImages",
                      "cross_entropy_forward x=f32:3x6x5 weights=f32:6 smoothing=any reduction=none alpha=any beta=any",
                      across},
        AlgorithmCase{"AlphaZero", "cross_entropy_forward x=f32:3x6 alpha=0 beta=any", along}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Backward, CrossEntropy,
    testing::Values(
        AlgorithmCase{"SingleElement", "cross_entropy_backward x=f32:1x1", gradient_along},
        AlgorithmCase{"Primes", "cross_entropy_backward x=f32:37x13 weights=f32:13:2 dloss=f32:1", gradient_along},
        AlgorithmCase{"OneEach",
                      "cross_entropy_backward x=f32:37x13 dlosses=f32:37 reduction=none alpha=any beta=any n=?",
                      gradient_along},
        AlgorithmCase{
            "Sum", "cross_entropy_backward x=f16:9x24:32,1 dloss=f16:1 dx=f32:9x24 reduction=sum smoothing=any beta=1",
            gradient_along},
        AlgorithmCase{"LongRows", "cross_entropy_backward x=f32:2x2052 ignore=3", gradient_along},
        AlgorithmCase{"Images", "cross_entropy_backward x=f32:2x5x7x6 dloss=bf16:1", gradient_across},
        AlgorithmCase{"ImagesOneEach",
                      "cross_entropy_backward x=f16:2x21x9x10 dlosses=f32:2x9x10:200,1,20 reduction=none",
                      gradient_across},
        AlgorithmCase{"ChannelsLast", "cross_entropy_backward x=bf16:2x12x3x4:nhwc", gradient_along},
        AlgorithmCase{"ThreeD", "cross_entropy_backward x=f32:2x3x2x3x5 reduction=none", gradient_across},
        AlgorithmCase{"OddStrides",
                      "cross_entropy_backward x=f32:4x6x5:100,11,2@4 targets=i32:4x5:7,1 dx=f32:4x6x5:1,40,4 "
                      "reduction=sum",
                      gradient_across},
        AlgorithmCase{"EmptyBatch", "cross_entropy_backward x=f32:0x6", gradient_along},
        AlgorithmCase{"WeightedImages", "cross_entropy_backward x=bf16:2x5x7x6 weights=f32:5 dloss=f32:1",
                      gradient_across},
        AlgorithmCase{"WeightedAndSmooth",
                      "cross_entropy_backward x=bf16:5x1030:1040,1 weights=f32:1030 smoothing=any dloss=f32:1",
                      gradient_along},
        AlgorithmCase{"WeightedAndSmoothLayouts",
                      "cross_entropy_backward x=f32:2x12x3x4:nhwc weights=f32:12 dx=f32:2x12x3x4:nchw smoothing=any",
                      gradient_both},
        AlgorithmCase{"AlphaZero", "cross_entropy_backward x=f32:3x6 alpha=0 beta=any", gradient_along}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    CrossEntropyConfigs, PairwiseMatch,
    testing::Values(cover("cross_entropy_forward_simple", "cross_entropy_forward x=bf16:3x5x7 weights=f32:5"),
                    cover("cross_entropy_forward_rows", "cross_entropy_forward x=f32:3x7 weights=f32:7"),
                    cover("cross_entropy_forward_strided", "cross_entropy_forward x=f16:3x19x5"),
                    cover("cross_entropy_backward_simple", "cross_entropy_backward x=bf16:3x5x7 weights=f32:5"),
                    cover("cross_entropy_backward_rows", "cross_entropy_backward x=f32:3x7"),
                    cover("cross_entropy_backward_strided", "cross_entropy_backward x=f16:3x19x5 weights=f32:19"),
                    cover("cross_entropy_forward_simple", "cross_entropy_forward x=f32:70x3"),
                    cover("cross_entropy_forward_rows", "cross_entropy_forward x=f16:11x72"),
                    cover("cross_entropy_forward_strided",
                          "cross_entropy_forward x=bf16:2x9x70:704,72,1 weights=f32:9 smoothing=any"),
                    cover("cross_entropy_backward_simple", "cross_entropy_backward x=f16:70x3"),
                    cover("cross_entropy_backward_rows",
                          "cross_entropy_backward x=f16:11x40 weights=f32:40 smoothing=any"),
                    cover("cross_entropy_backward_strided", "cross_entropy_backward x=bf16:2x9x70:704,72,1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(CrossEntropyWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(along, "cross_entropy_forward x=f32:2x12x3x4:nhwc"),
                                         wide({"cross_entropy_forward_strided"},
                                              "cross_entropy_forward x=f32:4x5x3x3 reduction=sum smoothing=any n=?"),
                                         wide(gradient_both,
                                              "cross_entropy_backward x=f32:2x12x3x4:nhwc dx=f32:2x12x3x4:nchw")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::cross_entropy_test
