// Kernels on tensor cores against the reference where emulated devices add matrix products as chips do: every type on
// the oldest and the newest arithmetic that has it.
#include <gtest/gtest.h>

#include <cstdlib>

#include "algorithm_cases.h"
#include "before_tests.h"

namespace kiln::testing_support::tensor_hardware_test {
namespace {

[[maybe_unused]] const bool is_set = [] {
  before_tests().push_back([] { setenv("KILN_EMULATOR_TENSOR", "hardware", 1); });
  return true;
}();

class TensorHardware : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorHardware, OfAmpereMatchesTheReference) {
  expect_some_defaults_match(GetParam(), target_of(8, 0));
}

TEST_P(TensorHardware, OfHopperMatchesTheReference) {
  expect_some_defaults_match(GetParam(), target_of(9, 0));
}

INSTANTIATE_TEST_SUITE_P(
    Types, TensorHardware,
    testing::Values(
        AlgorithmCase{"ConvolutionOfF16",
                      "conv_forward x=f16:1x24x5x6:nhwc w=f16:10x24x3x3:nhwc pad=1 epilogue=bias",
                      {"conv_tensor"}},
        AlgorithmCase{"HalosOfBF16",
                      "conv_forward x=bf16:1x24x5x6:nhwc w=bf16:10x24x3x3:nhwc pad=1 epilogue=bias",
                      {"conv_tensor_halo"}},
        AlgorithmCase{"HalosOfTf32ByInput",
                      "conv_backward_data dy=f32:1x20x5x6:nhwc w=f32:20x10x3x3:nhwc pad=1 tf32",
                      {"conv_backward_data_tensor_halo"}},
        AlgorithmCase{"FirstLayerOfBF16",
                      "conv_forward x=bf16:1x3x9x11:nhwc w=bf16:10x3x5x5:nhwc pad=2 stride=2 epilogue=bias",
                      {"conv_tensor_patch"}},
        AlgorithmCase{"GradientByInputOfFewChannels",
                      "conv_backward_data dy=f16:1x6x9x11:nhwc w=f16:6x10x5x5:nhwc pad=2 epilogue=bias",
                      {"conv_backward_data_tensor_patch"}},
        AlgorithmCase{"DepthwiseConvolution",
                      "conv_forward x=f16:1x10x9x19:nhwc w=f16:10x1x9x11:nhwc pad=4,5 groups=10 epilogue=bias",
                      {"conv_depthwise_tensor"}},
        AlgorithmCase{
            "GradientByFilterOfADepthwiseConvolution",
            "conv_backward_filter x=f16:2x10x9x19:nhwc dy=f16:2x10x9x19:nhwc dw=f32:10x1x9x11 pad=4,5 groups=10",
            {"conv_backward_filter_depthwise_tensor"}},
        AlgorithmCase{
            "GradientByFilterOfAFirstLayer",
            "conv_backward_filter x=f16:2x3x9x11:nhwc dy=f16:2x10x5x6:nhwc dw=f32:10x3x5x5:nhwc pad=2 stride=2",
            {"conv_backward_filter_tensor_patch"}},
        AlgorithmCase{"PackedConvolution",
                      "conv_forward x=f16:1x21x5x6 w=f16:10x21x3x3 pad=1 epilogue=bias",
                      {"conv_tensor_packed"}},
        AlgorithmCase{"PackedGradientByInput",
                      "conv_backward_data dy=bf16:1x19x5x6 w=bf16:19x10x3x3 pad=1",
                      {"conv_backward_data_tensor_packed"}},
        AlgorithmCase{"PackedGradientByFilter",
                      "conv_backward_filter x=f16:2x8x9x17 dy=f16:2x16x9x17 dw=f32:16x8x3x3 pad=1",
                      {"conv_backward_filter_tensor_splitk_packed"}},
        AlgorithmCase{"ConvolutionOfTf32",
                      "conv_forward x=f32:1x19x5x6:nhwc w=f32:10x19x3x3:nhwc pad=1 epilogue=bias tf32",
                      {"conv_tensor", "conv_tensor_staged"}},
        AlgorithmCase{"GradientByInputOfTf32",
                      "conv_backward_data dy=f32:1x19x5x6:nhwc w=f32:19x10x3x3:nhwc pad=1 tf32",
                      {"conv_backward_data_tensor"}},
        AlgorithmCase{"GradientByFilterOfTf32",
                      "conv_backward_filter x=f32:2x7x5x6:nhwc dy=f32:2x10x5x6:nhwc dw=f32:10x7x3x3:nhwc pad=1 tf32",
                      {"conv_backward_filter_tensor"}},
        AlgorithmCase{"ShortDepthOfF16",
                      "conv_forward x=f16:3x40x5x9:nhwc w=f16:10x40x1x1:nhwc epilogue=bias",
                      {"conv_tensor_persistent"}},
        AlgorithmCase{"ProductOfBF16", "gemm a=bf16:20x300 b=bf16:300x24", {"gemm_tensor"}},
        AlgorithmCase{"ProductOfTf32", "gemm a=f32:20x301 b=f32:301x24 tf32", {"gemm_tensor", "gemm_tensor_splitk"}}),
    case_name);

// Products of fp8 have instructions of their own on 8.9, whose sums keep 13 bits, and are those of f16 on 9.0.
class TensorHardwareOfFp8 : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorHardwareOfFp8, OfAdaMatchesTheReference) {
  expect_some_defaults_match(GetParam(), target_of(8, 9));
}

TEST_P(TensorHardwareOfFp8, OfHopperMatchesTheReference) {
  expect_some_defaults_match(GetParam(), target_of(9, 0));
}

INSTANTIATE_TEST_SUITE_P(
    Types, TensorHardwareOfFp8,
    testing::Values(
        AlgorithmCase{"Convolution",
                      "conv_forward x=f8e4m3:1x80x5x6:nhwc w=f8e4m3:10x80x3x3:nhwc y=f32:1x10x5x6:nhwc pad=1",
                      {"conv_tensor", "conv_tensor_staged"}},
        AlgorithmCase{"LongProduct", "gemm a=f8e5m2:20x1040 b=f8e4m3:1040x24:1,1040 c=f32:20x24", {"gemm_tensor"}},
        AlgorithmCase{
            "LongFastProduct", "gemm a=f8e5m2:20x1040 b=f8e4m3:1040x24:1,1040 c=f32:20x24 fast", {"gemm_tensor"}}),
    case_name);

}  // namespace
}  // namespace kiln::testing_support::tensor_hardware_test
