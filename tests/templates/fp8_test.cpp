// Storage in 8 bits, f8e4m3 and f8e5m2, of every operation that takes it, against the reference, on shapes that are
// awkward in a few ways each.
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "user_code_cases.h"

namespace kiln::testing_support::fp8_test {
namespace {

class Fp8 : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Fp8, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, Fp8,
    testing::Values(
        AlgorithmCase{"E4m3Primes",
                      "conv_forward x=f8e4m3:2x5x11x13:nchw w=f8e4m3:7x5x3x3:nchw pad=1,1",
                      {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"}},
        AlgorithmCase{"E5m2ChannelsLast",
                      "conv_forward x=f8e5m2:2x6x7x16:nhwc w=f8e5m2:24x6x3x2:nhwc stride=2,1 dilation=1,2 beta=any",
                      {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"}},
        AlgorithmCase{"Stages",
                      "conv_forward x=f8e4m3:2x32x5x6:nhwc w=f8e5m2:40x32x1x1:nhwc y=f16:2x40x5x6:nhwc "
                      "bias=f8e4m3:40 residual=f8e5m2:2x40x5x6:nhwc epilogue=bias+add+relu",
                      {"conv_simple", "conv_direct", "conv_1x1", "conv_implicit_gemm_splitk"}},
        AlgorithmCase{"Depthwise",
                      "conv_forward x=f8e5m2:2x4x13x11:nchw w=f8e4m3:4x1x3x3:nchw groups=4 pad=1",
                      {"conv_simple", "conv_direct", "conv_depthwise_nchw"}},
        AlgorithmCase{"Regions",
                      "local_conv_forward x=f8e4m3:2x3x4x5 w=f8e4m3:80x3x3x3 pad=1",
                      {"local_conv_forward_simple", "local_conv_forward_implicit_gemm", "local_conv_forward_dots"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Regions, Fp8,
    testing::Values(AlgorithmCase{"OfE4m3",
                                  "conv_forward x=f8e4m3:2x8x7x9:800,1,112,12@4 w=f8e4m3:16x8x3x3:120,1,36,12@4 "
                                  "y=f8e4m3:2x16x7x9:1600,1,200,20@4 pad=1",
                                  {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk",
                                   "conv_tensor", "conv_tensor_staged"}},
                    AlgorithmCase{"OfE5m2",
                                  "conv_forward x=f8e5m2:2x8x7x9:830,1,117,13 w=f8e5m2:16x8x3x3:80,9,3,1 "
                                  "y=f8e5m2:2x16x7x9:1600,1,200,20 pad=1",
                                  {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk",
                                   "conv_tensor_staged"}},
                    AlgorithmCase{"Pointwise",
                                  "conv_forward x=f8e4m3:2x32x5x6:1400,1,240,36@4 w=f8e4m3:40x32x1x1:36,1,1,1@4 "
                                  "y=f8e4m3:2x40x5x6:1500,1,270,44@4",
                                  {"conv_1x1", "conv_tensor"}},
                    AlgorithmCase{
                        "GradientsOfData",
                        "conv_backward_data dy=f8e5m2:2x12x5x7:600,1,100,12@4 w=f8e4m3:12x6x3x3:1,144,48,16@4 "
                        "dx=f8e5m2:2x6x9x13:900,1,96,7 stride=2 pad=1",
                        {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm",
                         "conv_backward_data_implicit_gemm_splitk"}},
                    AlgorithmCase{"Products",
                                  "gemm a=f8e4m3:37x29:31,1 b=f8e4m3:29x41:45,1 c=f8e4m3:37x41:50,1",
                                  {"gemm_simple", "gemm_tiled", "gemm_splitk", "gemm_tensor_staged"}},
                    AlgorithmCase{"ThinProducts",
                                  "gemm a=f8e4m3:2x200:210,1 b=f8e4m3:200x64:70,1 c=f8e4m3:2x64:66,1",
                                  {"gemm_thin", "gemm_thin_splitk"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Gradients, Fp8,
    testing::Values(
        AlgorithmCase{"OfData",
                      "conv_backward_data dy=f8e5m2:2x12x5x7:nchw w=f8e4m3:12x6x3x3:nchw dx=f8e5m2:2x6x9x13:nchw "
                      "stride=2 pad=1",
                      {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm",
                       "conv_backward_data_implicit_gemm_splitk"}},
        AlgorithmCase{
            "OfFilters",
            "conv_backward_filter x=f8e4m3:3x8x7x5:nhwc dy=f8e5m2:3x16x7x5:nhwc dw=f8e4m3:16x8x3x3:nhwc pad=1",
            {"conv_backward_filter_simple", "conv_backward_filter_direct", "conv_backward_filter_implicit_gemm",
             "conv_backward_filter_implicit_gemm_splitk"}},
        AlgorithmCase{"OfBiases",
                      "conv_backward_bias dy=f8e5m2:3x5x7x9 db=f8e4m3:5",
                      {"conv_backward_bias_simple", "conv_backward_bias_split"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Products, Fp8,
    testing::Values(
        AlgorithmCase{
            "E4m3Primes", "gemm a=f8e4m3:37x29 b=f8e4m3:29x41 alpha=any", {"gemm_simple", "gemm_tiled", "gemm_splitk"}},
        AlgorithmCase{"E5m2Primes", "gemm a=f8e5m2:37x29 b=f8e4m3:29x41", {"gemm_simple", "gemm_tiled", "gemm_splitk"}},
        AlgorithmCase{"E5m2BTransposed",
                      "gemm a=f8e5m2:40x48 b=f8e4m3:48x72:1,48 c=bf16:40x72 epilogue=bias",
                      {"gemm_simple", "gemm_tiled", "gemm_splitk"}},
        AlgorithmCase{"E5m2OddPitches",
                      "gemm a=f8e5m2:33x35:37,1@1 b=f8e5m2:35x34:39,1@1 c=f8e5m2:33x34:41,1@1 beta=any",
                      {"gemm_simple", "gemm_tiled", "gemm_splitk"}},
        AlgorithmCase{"VectorTimesMatrix",
                      "gemm a=f8e4m3:1x264 b=f8e4m3:264x68 c=f32:1x68",
                      {"gemm_simple", "gemm_tiled", "gemm_splitk", "gemm_thin", "gemm_thin_splitk"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Rows, Fp8,
    testing::Values(AlgorithmCase{"E4m3",
                                  "softmax_forward x=f8e4m3:5x37:nc axis=1",
                                  {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online"}},
                    AlgorithmCase{
                        "E5m2Log",
                        "softmax_forward x=f8e5m2:3x528:nc axis=1 mode=log",
                        {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split"}},
                    AlgorithmCase{"Gradient",
                                  "softmax_backward y=f8e4m3:5x48 dy=f8e5m2:5x48 dx=f8e5m2:5x48 axis=1",
                                  {"softmax_backward_simple", "softmax_backward_rows"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Elements, Fp8,
    testing::Values(AlgorithmCase{"E4m3Swish",
                                  "activation_forward x=f8e4m3:3x5x7x11:nhwc mode=swish",
                                  {"activation_forward_simple", "activation_forward_vector"}},
                    AlgorithmCase{"E5m2Relu",
                                  "activation_forward x=f8e5m2:8x16 y=f8e5m2:8x16:24,1@8 mode=relu alpha=any",
                                  {"activation_forward_simple", "activation_forward_vector"}},
                    AlgorithmCase{"Derivative",
                                  "activation_backward x=f8e4m3:5x13 dy=f8e5m2:5x13 dx=f8e5m2:5x13 mode=tanh",
                                  {"activation_backward_simple", "activation_backward_vector"}},
                    AlgorithmCase{"CastToE4m3",
                                  "tensor_transform x=f32:3x5x7 y=f8e4m3:3x5x7 alpha=any",
                                  {"tensor_transform_simple", "tensor_transform_vector"}},
                    AlgorithmCase{"E4m3CastToE5m2",
                                  "tensor_transform x=f8e4m3:4x33 y=f8e5m2:4x33 beta=any",
                                  {"tensor_transform_simple", "tensor_transform_vector"}},
                    AlgorithmCase{"IntegersCastToE4m3",
                                  "tensor_transform x=i32:6x16 y=f8e4m3:6x16",
                                  {"tensor_transform_simple", "tensor_transform_vector"}},
                    // Bits are copied: infinities stay.
                    AlgorithmCase{
                        "E5m2Copy",
                        "tensor_transform x=f8e5m2:2x33x5x3:nchw y=f8e5m2:2x33x5x3:nhwc",
                        {"tensor_transform_simple", "tensor_transform_vector", "tensor_transform_transposed"}},
                    AlgorithmCase{"E4m3Padded",
                                  "tensor_transform x=f8e4m3:2x3x5 y=f8e4m3:2x5x9 pad=0,1,2,0,1,2",
                                  {"tensor_transform_simple", "tensor_transform_vector"}}),
    case_name);

// Types that user code reads and writes.
TEST(Fp8UserCode, MatchesTheReference) {
  const Expressions known = {
      {"gated", Expression("--- prologue\nx * scale[c]\n---\nacc * gate + bias", {"bias", "gate", "scale"})}};
  expect_served_right(
      "conv_forward x=f8e4m3:1x16x5x6:nhwc w=f8e4m3:24x16x1x1:nhwc epilogue=user:gated epilogue.bias=f8e5m2:24 "
      "epilogue.gate=f8e4m3:1x24x5x6:nhwc prologue.scale=f8e5m2:16",
      {"conv_simple", "conv_direct"}, known);
}

// Rounding below 8.9 is arithmetic, not an instruction.
TEST(Fp8OnOlderDevices, MatchesTheReference) {
  expect_defaults_match(
      {"", "tensor_transform x=f32:4x32 y=f8e5m2:4x32", {"tensor_transform_simple", "tensor_transform_vector"}},
      target_of(7, 5));
}

}  // namespace
}  // namespace kiln::testing_support::fp8_test
