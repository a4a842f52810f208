// Activations forward and backward by every algorithm against the reference: every function, and for the mechanism that
// they share, shapes, strides and types that are awkward in one way each.
#include "kiln/generator/operations/activation.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::activation_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"activation_forward_simple", "activation_forward_vector"};
const Names forward_across = {"activation_forward_simple", "activation_forward_vector",
                              "activation_forward_transposed"};
const Names backward = {"activation_backward_simple", "activation_backward_vector"};
const Names backward_across = {"activation_backward_simple", "activation_backward_vector",
                               "activation_backward_transposed"};

// The functions stand in one header, whichever kernel calls them.
class ActivationFunction : public testing::TestWithParam<ActivationMode> {
 protected:
  static std::string line(const char* rest) { return fmt::format("{} mode={}", rest, to_string(GetParam())); }
};

TEST_P(ActivationFunction, MatchesTheReference) {
  expect_some_defaults_match({"", line("activation_forward x=f32:13x37"), {"activation_forward_vector"}});
}

TEST_P(ActivationFunction, HasADerivativeThatMatchesTheReference) {
  expect_some_defaults_match(
      {"", line("activation_backward x=f32:13x37 dy=f32:13x37"), {"activation_backward_vector"}});
}

TEST_P(ActivationFunction, HasADerivativeFromItsResult) {
  if (!has_derivative_from_y(GetParam())) return;
  expect_some_defaults_match(
      {"", line("activation_backward y=f32:13x37 dy=f32:13x37"), {"activation_backward_vector"}});
}

INSTANTIATE_TEST_SUITE_P(All, ActivationFunction, testing::ValuesIn(activation_modes()),
                         [](const auto& test) { return std::string(to_string(test.param)); });

class PointwiseDefaults : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(PointwiseDefaults, MatchTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, PointwiseDefaults,
    testing::Values(
        AlgorithmCase{"EmptyInside", "activation_forward x=f16:3x0x3 mode=sigmoid", forward},
        AlgorithmCase{"WholeVectors", "activation_forward x=f16:4x3x8x8 mode=gelu", forward},
        AlgorithmCase{"OddAndContiguous", "activation_forward x=bf16:3x5x7x11:nhwc mode=swish", forward},
        AlgorithmCase{"PoorlyAligned", "activation_forward x=f16:8x16@2 y=f16:8x16@4 mode=tanh", forward},
        AlgorithmCase{"Blend", "activation_forward x=i8:3x5x7 mode=identity alpha=any beta=any", forward},
        AlgorithmCase{"AlphaZero", "activation_forward x=f32:3x5 mode=relu alpha=0 beta=1", forward},
        AlgorithmCase{"MixedTypes", "activation_forward x=f16:3x40 y=f32:3x40 mode=softplus beta=1", forward},
        AlgorithmCase{"Integers", "activation_forward x=i32:3x40 y=i8:3x40 mode=identity alpha=any", forward},
        AlgorithmCase{"RowsWithGaps", "activation_forward x=f32:5x12:16,1 y=f32:5x12:20,1 mode=mish", forward},
        AlgorithmCase{"SubRegion", "activation_forward x=f32:2x6x3x3:200,30,7,2 y=f32:2x6x3x3:100,15,5,1 mode=selu",
                      forward},
        AlgorithmCase{"SparseResult", "activation_forward x=i8:4x6 y=i8:4x6:24,3 mode=identity", forward},
        AlgorithmCase{"RepeatedInput", "activation_forward x=u8:4x6x8:0,1,0 y=u8:4x6x8 mode=identity", forward},
        AlgorithmCase{"FiveDimensions", "activation_forward x=f16:2x3x5x2x7:ndhwc y=f16:2x3x5x2x7:ndhwc mode=relu",
                      forward},
        AlgorithmCase{"DynamicBatch", "activation_forward x=f32:8x3x5 mode=hard_swish n=?", forward},
        AlgorithmCase{"DynamicBatchWithGaps", "activation_forward x=f16:8x4x8:80,16,1 mode=hard_sigmoid n=?", forward},
        AlgorithmCase{"DynamicBatchInnermost", "activation_forward x=f32:8x6:1,8 y=f32:8x6:1,9 mode=relu n=?", forward},
        AlgorithmCase{"DynamicBatchOfOne", "activation_forward x=u8:1 mode=identity n=?", forward}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Across, PointwiseDefaults,
    testing::Values(
        AlgorithmCase{"ChannelsToTheFront", "activation_forward x=bf16:3x40x6x6:nhwc y=bf16:3x40x6x6:nchw mode=relu",
                      forward_across},
        AlgorithmCase{"Matrix", "activation_forward x=bf16:65x33:cn y=bf16:65x33 mode=identity alpha=any beta=any",
                      forward_across},
        AlgorithmCase{"ReversedCube", "activation_forward x=f32:5x34x35:1,5,170 y=f32:5x34x35 mode=relu",
                      forward_across},
        AlgorithmCase{"WithGaps", "activation_forward x=f16:2x7x5x4:161,1,32,8 y=f16:2x7x5x4:150,21,4,1 mode=relu",
                      forward_across},
        AlgorithmCase{"DynamicBatchAcross", "activation_forward x=f32:5x33:cn y=f32:5x33 mode=relu n=?", forward},
        AlgorithmCase{"Empty", "activation_forward x=f32:0x33x2x3:nchw y=f32:0x33x2x3:nhwc mode=relu", forward_across},
        AlgorithmCase{"DynamicBatch", "activation_forward x=f32:4x37x5x9:nchw y=f32:4x37x5x9:nhwc mode=relu n=?",
                      forward_across},
        AlgorithmCase{"GradientsThatLieOtherwise",
                      "activation_backward x=bf16:2x35x5x3:nchw dy=f32:2x35x5x3:nhwc dx=f32:2x35x5x3:nhwc mode=gelu",
                      backward_across},
        AlgorithmCase{"BothInputs",
                      "activation_backward y=f32:2x9x3x11:nhwc dy=f32:2x9x3x11:nhwc dx=f32:2x9x3x11:nchw mode=tanh "
                      "alpha=any beta=any",
                      backward_across}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Backward, PointwiseDefaults,
    testing::Values(
        AlgorithmCase{"MixedTypes", "activation_backward x=f16:3x40 dy=f32:3x40 dx=bf16:3x40 mode=gelu_tanh", backward},
        AlgorithmCase{"RepeatedGradient", "activation_backward x=f32:3x40 dy=f32:3x40:1,0 dx=f32:3x40 mode=mish",
                      backward},
        AlgorithmCase{"DynamicBatch", "activation_backward x=f16:8x24 dy=f16:8x24 mode=swish beta=1 n=?", backward},
        AlgorithmCase{"Empty", "activation_backward x=f16:0x24 dy=f16:0x24 mode=swish", backward}),
    case_name);

class ActivationOn : public testing::TestWithParam<std::pair<int, int>> {};

TEST_P(ActivationOn, MatchesTheReference) {
  const Target target = target_of(GetParam().first, GetParam().second);
  expect_defaults_match({"", "activation_forward x=bf16:3x37 mode=gelu", forward}, target);
  expect_defaults_match(
      {"", "activation_backward x=bf16:2x35x5x3:nchw dy=bf16:2x35x5x3:nhwc mode=softplus", backward_across}, target);
}

INSTANTIATE_TEST_SUITE_P(Architectures, ActivationOn, testing::Values(std::pair{7, 5}, std::pair{12, 0}),
                         [](const auto& test) {
                           return "Sm" + std::to_string(test.param.first * 10 + test.param.second);
                         });

INSTANTIATE_TEST_SUITE_P(
    PointwiseConfigs, PairwiseMatch,
    testing::Values(
        cover("activation_forward_simple", "activation_forward x=f32:3x5x7 mode=selu"),
        cover("activation_forward_simple", "activation_forward x=f16:2x5x3x7:nhwc y=f32:2x5x3x7 mode=mish"),
        cover("activation_backward_simple",
              "activation_backward x=f16:3x5x7:96,16,1 dy=f16:3x5x7:96,16,1 dx=f16:3x5x7:96,16,1 mode=softplus"),
        cover("activation_backward_simple",
              "activation_backward x=bf16:67x3:cn dy=bf16:67x3 dx=bf16:67x3 mode=gelu beta=any"),
        cover("activation_forward_vector", "activation_forward x=f32:3x16x9x8:nhwc mode=elu"),
        cover("activation_backward_vector", "activation_backward x=f32:7x4x17 dy=f32:7x4x17 dx=f32:7x4x17 mode=tanh"),
        cover("activation_forward_vector", "activation_forward x=f16:33x1009 mode=relu"),
        cover("activation_backward_vector",
              "activation_backward x=f16:33x16x64:2048,64,1 dy=f16:33x16x64:1024,0,1 dx=f32:33x16x64 "
              "mode=leaky_relu"),
        cover("activation_forward_transposed", "activation_forward x=u8:67x34:cn y=u8:67x34 mode=identity"),
        cover("activation_backward_transposed",
              "activation_backward x=f16:2x37x5x9:nchw dy=f16:2x37x5x9:nhwc dx=f16:2x37x5x9:nhwc mode=swish"),
        cover("activation_forward_transposed", "activation_forward x=f16:2x37x5x9:nchw y=f16:2x37x5x9:nhwc mode=relu"),
        cover("activation_backward_transposed",
              "activation_backward x=f32:67x34:cn dy=f16:67x34 dx=f16:67x34 mode=relu beta=1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(PointwiseWithWideOffsets, WideIndexMatch,
                         testing::Values(wide(forward_across,
                                              "activation_forward x=f16:2x37x5x9:nchw y=f16:2x37x5x9:nhwc mode=relu"),
                                         wide(backward_across,
                                              "activation_backward y=f32:2x9x3x11:nhwc dy=f32:2x9x3x11:nhwc "
                                              "dx=f32:2x9x3x11:nchw mode=tanh alpha=any beta=any")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::activation_test
