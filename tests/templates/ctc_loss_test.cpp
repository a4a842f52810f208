// Every algorithm for CTC loss against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::ctc_loss_test {
namespace {

using Names = std::vector<std::string>;

const Names all = {"ctc_loss_forward_simple", "ctc_loss_forward_block"};
const Names gradients = {"ctc_loss_backward_simple", "ctc_loss_backward_block"};

class CtcLossTest : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(CtcLossTest, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

constexpr auto with_all =
    "ctc_loss_forward x=f32:5x23x11 targets=i32:5x7 input_lengths=i32:5 target_lengths=i32:5 loss=f32:5 "
    "prefixes=f32:5x23x15 blank=3";
constexpr auto long_targets =
    "ctc_loss_forward x=f16:2x90x5 targets=i32:2x70 target_lengths=i32:2 loss=f32:2 prefixes=f32:2x90x141 "
    "input=log_probabilities infinite=zero";
constexpr auto gradient_with_all =
    "ctc_loss_backward x=f32:5x23x11 targets=i32:5x7 input_lengths=i32:5 target_lengths=i32:5 dloss=f32:5 "
    "prefixes=f32:5x23x15 dx=f32:5x23x11 blank=3";
constexpr auto gradient_of_long_targets =
    "ctc_loss_backward x=f16:2x40x5 targets=i32:2x70 target_lengths=i32:2 prefixes=f32:2x40x141 dx=f32:2x40x5 "
    "input=log_probabilities infinite=zero";

INSTANTIATE_TEST_SUITE_P(
    Shapes, CtcLossTest,
    testing::Values(
        AlgorithmCase{"Scores", "ctc_loss_forward x=f32:3x12x6 targets=i32:3x4", all},
        AlgorithmCase{"WithAll", with_all, all}, AlgorithmCase{"LongTargets", long_targets, all},
        AlgorithmCase{"Half", "ctc_loss_forward x=f16:3x12x6 targets=i32:3x4 blank=5 alpha=any beta=any", all},
        AlgorithmCase{"BF16", "ctc_loss_forward x=bf16:3x12x7 targets=i32:3x4 loss=f16:3 prefixes=f32:3x12x9", all},
        AlgorithmCase{"StepsOutside",  // T,N,C in memory
                      "ctc_loss_forward x=f32:3x12x6:6,18,1 targets=i32:3x4:1,3 input_lengths=i32:3:2 "
                      "target_lengths=i32:3:3 loss=f32:3:5 prefixes=f32:3x12x9:9,27,1",
                      all},
        AlgorithmCase{"ClassesApart",
                      "ctc_loss_forward x=f32:3x12x6:100,1,13 targets=i32:3x4 prefixes=f32:3x12x9:200,1,13", all},
        AlgorithmCase{"ManyImages",
                      "ctc_loss_forward x=f32:40x3x4 targets=i32:40x2 input_lengths=i32:40 target_lengths=i32:40", all},
        AlgorithmCase{"LabelsThatAreNone", "ctc_loss_forward x=f32:2x3x1 targets=i32:2x1 prefixes=f32:2x3x3", all},
        AlgorithmCase{"InfiniteProbabilities",
                      "ctc_loss_forward x=f32:64x3x3 targets=i32:64x3 prefixes=f32:64x3x7 input=log_probabilities",
                      all},
        AlgorithmCase{"OneClassOfAnyProbability",
                      "ctc_loss_forward x=f32:64x4x1 targets=i32:64x0 prefixes=f32:64x4x1 input=log_probabilities",
                      all},
        AlgorithmCase{"Regions",
                      "ctc_loss_forward x=f32:3x12x6:100,7,1 targets=i32:3x4:6,1 loss=f32:3 "
                      "prefixes=f32:3x12x9:130,10,1",
                      all},
        AlgorithmCase{"RegionsInF16",
                      "ctc_loss_forward x=f16:3x12x6:100,7,1 targets=i32:3x4:6,1 loss=f16:3:2 "
                      "prefixes=f32:3x12x9:130,10,1",
                      all},
        AlgorithmCase{"RegionsInBF16", "ctc_loss_forward x=bf16:3x12x6:100,7,1 targets=i32:3x4:6,1 loss=bf16:3:2", all},
        AlgorithmCase{"FewerStepsThanLabels", "ctc_loss_forward x=f32:2x3x6 targets=i32:2x5 infinite=zero", all},
        AlgorithmCase{"OneClass", "ctc_loss_forward x=f32:2x3x1 targets=i32:2x0", all},
        AlgorithmCase{"TwoClasses", "ctc_loss_forward x=f32:2x9x2 targets=i32:2x4", all},
        AlgorithmCase{"ManyClasses", "ctc_loss_forward x=f32:1x3x5003 targets=i32:1x2", all},
        AlgorithmCase{"NoLabels", "ctc_loss_forward x=f32:2x5x4 targets=i32:2x0 prefixes=f32:2x5x1", all},
        AlgorithmCase{"NoSteps", "ctc_loss_forward x=f32:2x0x4 targets=i32:2x3 target_lengths=i32:2", all},
        AlgorithmCase{"NoStepsAndNoLabels", "ctc_loss_forward x=f32:2x0x4 targets=i32:2x0", all},
        AlgorithmCase{"OneStep", "ctc_loss_forward x=f32:4x1x4 targets=i32:4x1 target_lengths=i32:4 prefixes=f32:4x1x3",
                      all},
        AlgorithmCase{"EmptyBatch", "ctc_loss_forward x=f32:0x5x4 targets=i32:0x3", all},
        AlgorithmCase{"DynamicBatch",
                      "ctc_loss_forward x=f32:8x9x5 targets=i32:8x3 input_lengths=i32:8 prefixes=f32:8x9x7 n=?", all}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Gradients, CtcLossTest,
    testing::Values(
        AlgorithmCase{"Scores", "ctc_loss_backward x=f32:3x12x6 targets=i32:3x4 prefixes=f32:3x12x9", gradients},
        AlgorithmCase{"WithAll", gradient_with_all, gradients},
        AlgorithmCase{"LongTargets", gradient_of_long_targets, gradients},
        AlgorithmCase{"Half",
                      "ctc_loss_backward x=f16:3x12x6 targets=i32:3x4 prefixes=f32:3x12x9 blank=5 alpha=any beta=any",
                      gradients},
        AlgorithmCase{"BF16",
                      "ctc_loss_backward x=bf16:3x12x7 targets=i32:3x4 dloss=f16:3 prefixes=f32:3x12x9 dx=f32:3x12x7",
                      gradients},
        AlgorithmCase{"StepsOutside",
                      "ctc_loss_backward x=f32:3x12x6:6,18,1 targets=i32:3x4:1,3 input_lengths=i32:3:2 "
                      "target_lengths=i32:3:3 dloss=f32:3:5 prefixes=f32:3x12x9:9,27,1 dx=f32:3x12x6:6,18,1",
                      gradients},
        AlgorithmCase{"ClassesApart",
                      "ctc_loss_backward x=f32:3x12x6:100,1,13 targets=i32:3x4 prefixes=f32:3x12x9:200,1,13 "
                      "dx=f32:3x12x6:6,18,1",
                      gradients},
        AlgorithmCase{"ClassesOfTheGradientApart",
                      "ctc_loss_backward x=f32:3x12x6 targets=i32:3x4 prefixes=f32:3x12x9 dx=f32:3x12x6:100,1,13",
                      gradients},
        AlgorithmCase{"ManyImages",
                      "ctc_loss_backward x=f32:40x3x4 targets=i32:40x2 input_lengths=i32:40 target_lengths=i32:40 "
                      "prefixes=f32:40x3x5",
                      gradients},
        AlgorithmCase{"InfiniteProbabilities",
                      "ctc_loss_backward x=f32:64x3x3 targets=i32:64x3 prefixes=f32:64x3x7 input=log_probabilities",
                      gradients},
        AlgorithmCase{"OneClassOfAnyProbability",
                      "ctc_loss_backward x=f32:64x4x1 targets=i32:64x0 prefixes=f32:64x4x1 input=log_probabilities",
                      gradients},
        AlgorithmCase{"MoreLabelsThanThreads",
                      "ctc_loss_backward x=f32:1x141x180 targets=i32:1x140 prefixes=f32:1x141x281", gradients},
        AlgorithmCase{"ManyLabelsOfFewClasses",
                      "ctc_loss_backward x=f16:2x160x5 targets=i32:2x70 prefixes=f32:2x160x141 dx=f32:2x160x5 "
                      "input=log_probabilities infinite=zero",
                      gradients},
        AlgorithmCase{"ManyClassesOfLabels", "ctc_loss_backward x=f32:1x24x5003 targets=i32:1x9 prefixes=f32:1x24x19",
                      gradients},
        AlgorithmCase{"Regions",
                      "ctc_loss_backward x=f32:3x12x6:100,7,1 targets=i32:3x4:6,1 prefixes=f32:3x12x9:130,10,1 "
                      "dx=f32:3x12x6:100,7,1",
                      gradients},
        AlgorithmCase{"RegionsInF16",
                      "ctc_loss_backward x=f16:3x12x6:100,7,1 targets=i32:3x4 prefixes=f32:3x12x9 "
                      "dx=f16:3x12x6:100,7,1",
                      gradients},
        AlgorithmCase{"RegionsInBF16",
                      "ctc_loss_backward x=bf16:3x12x6:100,7,1 targets=i32:3x4 prefixes=f32:3x12x9 "
                      "dx=bf16:3x12x6:100,7,1",
                      gradients},
        AlgorithmCase{"FewerStepsThanLabels",
                      "ctc_loss_backward x=f32:2x3x6 targets=i32:2x5 prefixes=f32:2x3x11 infinite=zero", gradients},
        AlgorithmCase{"OneClass", "ctc_loss_backward x=f32:2x4x1 targets=i32:2x2 prefixes=f32:2x4x5", gradients},
        AlgorithmCase{"TwoClasses", "ctc_loss_backward x=f32:2x9x2 targets=i32:2x4 prefixes=f32:2x9x9", gradients},
        AlgorithmCase{"ManyClasses", "ctc_loss_backward x=f32:1x3x5003 targets=i32:1x2 prefixes=f32:1x3x5", gradients},
        AlgorithmCase{"NoLabels", "ctc_loss_backward x=f32:2x5x4 targets=i32:2x0 prefixes=f32:2x5x1", gradients},
        AlgorithmCase{"NoSteps", "ctc_loss_backward x=f32:2x0x4 targets=i32:2x3 prefixes=f32:2x0x7", gradients},
        AlgorithmCase{"OneStep",
                      "ctc_loss_backward x=f32:4x1x4 targets=i32:4x1 target_lengths=i32:4 prefixes=f32:4x1x3",
                      gradients},
        AlgorithmCase{"EmptyBatch", "ctc_loss_backward x=f32:0x5x4 targets=i32:0x3 prefixes=f32:0x5x7", gradients},
        AlgorithmCase{"DynamicBatch",
                      "ctc_loss_backward x=f32:8x9x5 targets=i32:8x3 input_lengths=i32:8 prefixes=f32:8x9x7 n=?",
                      gradients}),
    case_name);

INSTANTIATE_TEST_SUITE_P(CtcLossConfigs, PairwiseMatch, testing::ValuesIn(covers(all, {with_all, long_targets})),
                         cover_name);
INSTANTIATE_TEST_SUITE_P(CtcLossGradientConfigs, PairwiseMatch,
                         testing::ValuesIn(covers(gradients, {gradient_with_all, gradient_of_long_targets})),
                         cover_name);
INSTANTIATE_TEST_SUITE_P(
    CtcLossWithWideOffsets, WideIndexMatch,
    testing::Values(
        wide(all, "ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 input_lengths=i32:4 prefixes=f32:4x9x7 n=?"),
        wide(gradients, "ctc_loss_backward x=f32:4x9x5 targets=i32:4x3 input_lengths=i32:4 prefixes=f32:4x9x7 n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::ctc_loss_test
