// User epilogues in every kernel: against the trusted kernel and what the user's code makes of its result.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/error.h"
#include "kiln/execution/compile.h"
#include "kiln/execution/user_code_error.h"
#include "user_code_cases.h"
#include "variant_check.h"

namespace kiln::user_code_test {
namespace {

using testing::HasSubstr;
using testing_support::built_in_catalogue;
using testing_support::check_as;
using testing_support::TestDevice;

const Expressions& expressions() {
  static const Expressions all = {
      {"silu", Expression("acc * sigmoid(acc)")},
      {"affine", Expression("acc * slope[k] + bias[k]", {"bias", "slope"})},
      {"gated", Expression("const float v = acc + bias;\nreturn v > 0.0f ? v * gate : slope * v;", {"bias", "gate"},
                           {"unused", "slope"})},
      {"helped",
       Expression("__device__ float twice(float v) {\n  return 2.0f * v;\n}\n---\ntwice(relu(acc)) + gate", {"gate"})},
      {"both", Expression("--- prologue\nx * x + shift\n---\nrelu(acc) + gate", {"gate"}, {"shift"})},
      {"channels", Expression("k < 3 ? acc : -acc")},
      {"layer", Expression("(acc + bias[n]) * gate + (n < 3 ? 1.0f : other)", {"bias", "gate", "other"})},
      {"pooled", Expression("acc * gate + (c % 2 == 0 ? bias[c] : 0.0f)", {"bias", "gate"})},
      {"many", Expression("acc * t0 + t1 * t2 - t3 + t4 * t5 + fmaxf(t6, t7)",
                          {"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"})},
      {"scaled", Expression("log2f(1.0f + fabsf(acc)) * scale + gate", {"gate"}, {"scale"})}};
  return all;
}

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, expressions());
}

TEST(UserEpilogue, OfConvolutionsInLogicalOrder) {
  expect_served_right(
      "conv_forward x=f32:2x3x7x9 w=f32:5x3x3x2 pad=1 epilogue=user:affine epilogue.bias=f32:5 epilogue.slope=f16:5:2",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
}

TEST(UserEpilogue, OfConvolutionsInChannelsLastHalf) {
  expect_served_right(
      "conv_forward x=f16:1x16x5x6:nhwc w=f16:24x16x1x1:nhwc epilogue=user:gated epilogue.bias=bf16:1x24x5x6:nchw "
      "epilogue.gate=f16:1x24x5x6:nhwc",
      {"conv_simple", "conv_direct", "conv_1x1"});
}

TEST(UserEpilogue, OfLocalConvolutions) {
  expect_served_right(
      "local_conv_forward x=f32:2x3x4x5 w=f32:80x3x3x3 pad=1 epilogue=user:gated epilogue.bias=f32:1x4x4x1 "
      "epilogue.gate=f16:2x4x4x5:nhwc",
      {"local_conv_forward_simple", "local_conv_forward_implicit_gemm", "local_conv_forward_dots"});
}

TEST(UserEpilogue, OfConvolutionsByLargeWindows) {
  expect_served_right(
      "conv_forward x=f32:2x4x6x20 w=f32:4x1x5x9 pad=2,4 groups=4 epilogue=user:helped epilogue.gate=f32:2x4x6x20:nhwc",
      {"conv_depthwise_windows"});
}

TEST(UserEpilogue, OfPackedConvolutions) {
  expect_served_right(
      "conv_forward x=f16:2x11x4x5 w=f16:8x11x3x3 pad=1 epilogue=user:gated epilogue.bias=f32:1x8x4x1 "
      "epilogue.gate=f16:2x8x4x5:nhwc",
      {"conv_tensor_packed"});
}

TEST(UserEpilogue, OfMatrixProducts) {
  expect_served_right(
      "gemm a=f32:35x40 b=f32:40x37 epilogue=user:layer epilogue.bias=f16:37:2 epilogue.gate=bf16:35x37:1,36 "
      "epilogue.other=u8:35x1",
      {"gemm_simple", "gemm_tiled", "gemm_splitk"});
}

// Tensors that lie as y does come to shared memory before the sums; unaligned ones, and those that repeat, do not.
TEST(UserEpilogue, OfTensorsOnTensorCores) {
  expect_served_right(
      "conv_forward x=f16:2x64x9x7:nhwc w=f16:72x64x3x3:nhwc pad=1 epilogue=user:many epilogue.t0=f32:2x72x9x7:nhwc "
      "epilogue.t1=f16:2x72x9x7:nhwc epilogue.t2=u8:2x72x9x7:nhwc epilogue.t3=i8:2x72x9x7:nhwc@1 epilogue.t4=bf16:72 "
      "epilogue.t5=f16:1x1x9x7 epilogue.t6=f32:2x72x9x7:nchw epilogue.t7=f32:2x72x9x7:nhwc@4",
      {"conv_tensor", "conv_tensor_halo", "conv_tensor_staged", "conv_tensor_splitk"});
  expect_served_right(
      "conv_forward x=u8:2x64x9x7:nhwc w=i8:72x64x3x3:nhwc y=u8:2x72x9x7:nhwc pad=1 epilogue=user:gated "
      "epilogue.bias=f32:2x72x9x7:nhwc epilogue.gate=i8:2x72x9x7:nhwc",
      {"conv_tensor", "conv_tensor_staged", "conv_tensor_splitk"});
  expect_served_right(
      "gemm a=f16:135x304 b=f16:304x136 c=f32:135x136 epilogue=user:layer epilogue.bias=f16:136 "
      "epilogue.gate=f32:135x136 epilogue.other=u8:135x136",
      {"gemm_tensor", "gemm_tensor_staged", "gemm_tensor_splitk"});
}

TEST(UserEpilogue, OfWinogradConvolutions) {
  expect_served_right(
      "conv_forward x=f32:2x3x7x8 w=f32:5x3x3x3 pad=1 fast epilogue=user:gated epilogue.bias=f32:2x5x1x8 "
      "epilogue.gate=f16:2x5x7x8:nhwc",
      {"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused", "conv_winograd_4x4_fused"});
}

TEST(UserEpilogue, OfDepthwiseConvolutions) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right(
        "conv_forward x=f32:2x8x6x8:" + order + " w=f32:8x1x3x3:" + order +
            " pad=1 groups=8 epilogue=user:helped epilogue.gate=f32:2x8x6x8:" + (order == "nchw" ? "nhwc" : "nchw"),
        {"conv_simple", "conv_depthwise_" + order});
  }
  expect_served_right(
      "conv_forward x=f16:2x8x6x20:nhwc w=f16:8x1x5x9 pad=2,4 groups=8 epilogue=user:helped "
      "epilogue.gate=f32:2x8x6x20",
      {"conv_simple", "conv_depthwise_tensor"});
}

TEST(UserEpilogue, OfSplitConvolutionsAndBlends) {
  expect_served_right(
      "conv_forward x=bf16:1x96x3x3:nhwc w=bf16:7x96x3x3:nhwc y=f32:1x7x1x1:nhwc alpha=any beta=any "
      "epilogue=user:scaled epilogue.gate=i8:1x1x1x1",
      {"conv_simple", "conv_implicit_gemm_splitk"});
}

TEST(UserEpilogue, SeesTheChannelOfGroups) {
  expect_served_right("conv_forward x=f32:1x6x5x5 w=f32:8x3x3x3 groups=2 epilogue=user:channels",
                      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
}

TEST(UserEpilogue, OfPooling) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right("pool_forward x=f16:2x8x9x8:" + order + " y=f16:2x8x4x4:" + order +
                            " mode=avg window=2,2 stride=2,2 epilogue=user:pooled epilogue.bias=f32:8 "
                            "epilogue.gate=bf16:2x8x4x4:" +
                            (order == "nchw" ? "nhwc" : "nchw"),
                        {"pool_simple", "pool_" + order});
    expect_served_right("pool_forward x=f32:3x5x4x4:" + order +
                            " mode=max window=global beta=1 epilogue=user:pooled epilogue.bias=f32:5 "
                            "epilogue.gate=f32:3x1x1x1",
                        {"pool_simple", "pool_global_" + order});
  }
}

TEST(UserEpilogue, OfSoftmax) {
  expect_served_right("softmax_forward x=f32:5x64 epilogue=user:helped epilogue.gate=f16:5x64:1,6",
                      {"softmax_simple", "softmax_warp"});
  expect_served_right("softmax_forward x=f16:2x8192 mode=log epilogue=user:helped epilogue.gate=f32:2x8192@4",
                      {"softmax_simple", "softmax_block", "softmax_online", "softmax_split"});
}

TEST(UserEpilogue, OfActivationsGradients) {
  expect_served_right(
      "activation_backward dy=f16:2x3x5x7:nhwc x=f16:2x3x5x7 mode=tanh beta=any epilogue=user:both "
      "epilogue.gate=f16:1x3x1x7",
      {"activation_backward_simple", "activation_backward_vector"});
}

// Offsets of tensors, channels and padding in other ranks, and y where it lies in a larger tensor.
TEST(UserEpilogue, OfOneAndThreeSpatialDimensions) {
  expect_served_right(
      "conv_forward x=f32:2x3x17 w=f32:5x3x3 pad=1 epilogue=user:gated epilogue.bias=f32:5 epilogue.gate=f16:2x1x17",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "conv_forward x=f32:1x4x3x5x7:ndhwc w=f32:6x4x2x3x1:ndhwc pad=0,1,0 epilogue=user:gated "
      "epilogue.bias=f32:1x6x2x1x7:ndhwc epilogue.gate=f32:1x6x2x5x7:ncdhw",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "pool_forward x=f32:2x3x5x4x6 mode=avg window=2,3,1 epilogue=user:pooled epilogue.bias=f32:3 "
      "epilogue.gate=f32:2x3x4x2x6:400,130,32,8,1",
      {"pool_simple", "pool_nchw"});
}

TEST(UserEpilogue, OfRegionsOfLargerTensors) {
  expect_served_right(
      "conv_forward x=f32:2x3x7x9:600,150,13,1 w=f32:5x3x3x3 y=f32:2x5x7x9:1300,117,11,1 pad=1 "
      "epilogue=user:gated epilogue.bias=f32:5:3 epilogue.gate=f16:2x5x7x9:1,400,50,5",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "pool_forward x=f16:2x5x9x8:900,1,97,7 y=f16:2x5x3x3:500,100,7,2 mode=max window=3 stride=3 "
      "pad=0,0,0,1 epilogue=user:pooled epilogue.bias=f32:5 epilogue.gate=bf16:2x5x3x3:500,100,7,2",
      {"pool_simple"});
}

TEST(UserEpilogue, OfActivations) {
  expect_served_right(
      "activation_forward x=f16:5x37 mode=identity epilogue=user:gated epilogue.bias=i8:1x37 "
      "epilogue.gate=f32:5x37@4",
      {"activation_forward_simple", "activation_forward_vector"});
  // Accesses of y cross its rows; those of a larger tensor, transposed, repeating along either dimension or both, of
  // y's strides, without alignment, and of every other element do not.
  expect_served_right(
      "activation_forward x=f16:6x10 mode=relu epilogue=user:many epilogue.t0=f32:6x10:12,1 epilogue.t1=f16:6x10:1,8 "
      "epilogue.t2=u8:6x1 epilogue.t3=i8:1x10 epilogue.t4=bf16:1x1 epilogue.t5=i32:6x10 epilogue.t6=f32:6x10@4 "
      "epilogue.t7=f16:6x10:30,2",
      {"activation_forward_simple", "activation_forward_vector"});
}

// Results are rounded to integers once, at the end, and saturate; the code gives both more and less than they hold.
TEST(UserEpilogue, OfChainsOnIntegers) {
  const std::string code = " epilogue=user:gated epilogue.bias=i32:2x7x3x5:nchw epilogue.gate=u8:1x7x1x5";
  expect_served_right("activation_forward x=u8:2x7x3x5:nchw y=i8:2x7x3x5:nhwc mode=identity" + code,
                      {"activation_forward_simple", "activation_forward_vector", "activation_forward_transposed"});
  expect_served_right("activation_forward x=i32:2x7x3x5 y=u8:2x7x3x5 mode=identity alpha=any beta=any" + code,
                      {"activation_forward_simple", "activation_forward_vector"});
}

TEST(UserEpilogue, OfDynamicBatches) {
  expect_served_right(
      "conv_forward x=f32:4x3x5x5 w=f32:2x3x3x3 epilogue=user:gated epilogue.bias=f32:1x2x3x3 "
      "epilogue.gate=f32:4x2x3x3:nhwc n=?",
      {"conv_simple", "conv_implicit_gemm"});
}

TEST(UserEpilogue, OfAnEmptyBatch) {
  expect_served_right(
      "conv_forward x=f32:0x3x5x5 w=f32:2x3x3x3 epilogue=user:gated epilogue.bias=f32:1x2x1x3 "
      "epilogue.gate=f32:0x2x3x3:nhwc",
      {"conv_simple"});
}

// ---- what must be noticed

Request conv_with(const std::string& epilogue) {
  return Request::parse("conv_forward x=f32:2x3x7x7 w=f32:4x3x3x3 epilogue=user:" + epilogue, expressions());
}

TEST(CheckOfUserEpilogues, FindsAnotherExpression) {
  EXPECT_TRUE(check_as(conv_with("silu"), conv_with("silu")));
  EXPECT_FALSE(check_as(conv_with("silu"), conv_with("channels")));
  EXPECT_FALSE(check_as(conv_with("channels"), conv_with("silu")));
}

TEST(CheckOfUserEpilogues, FindsExchangedTensors) {
  const auto request = [](const char* text) {
    return Request::parse(
        "conv_forward x=f32:2x3x7x7 w=f32:4x3x3x3 epilogue=user:e epilogue.bias=f32:4 epilogue.slope=f32:4",
        {{"e", Expression(text, {"bias", "slope"})}});
  };
  EXPECT_FALSE(check_as(request("acc * slope + bias"), request("acc * bias + slope")));
  // A remark for readers of the check: two ways to write one thing are the same thing.
  EXPECT_TRUE(check_as(request("acc * slope + bias"), request("bias + slope * acc")));
}

TEST(CheckOfUserEpilogues, FindsATensorReadAtTheStridesOfTheResult) {
  const auto request = [](const std::string& layout) {
    return Request::parse(
        "activation_forward x=f32:6x8 mode=identity epilogue=user:helped epilogue.gate=f32:6x8:" + layout,
        expressions());
  };
  EXPECT_FALSE(check_as(request("1,6"), request("8,1")));
}

TEST(CheckOfUserEpilogues, FindsAWrongConvolution) {
  const Request mirrored =
      Request::parse("conv_forward x=f32:2x3x7x7 w=f32:4x3x3x3 mode=convolution epilogue=user:silu", expressions());
  EXPECT_FALSE(check_as(conv_with("silu"), mirrored));
}

// ---- mistakes in the code

std::string compile_error_of(const std::string& text) {
  const Request request = Request::parse("softmax_forward x=f32:3x4 epilogue=user:e", {{"e", Expression(text)}});
  const TestDevice& device = TestDevice::get();
  const Choice choice{"softmax_simple", Config::parse("THREADS=128")};
  try {
    execution::compile(*device.nvrtc, built_in_catalogue().program(request, device.target, choice), device.target);
  } catch (const execution::UserCodeError& error) {
    EXPECT_EQ(error.code(), ErrorCode::compile_failed);
    return error.message();
  }
  return "compiles";
}

TEST(MistakesInUserCode, AreShownInTheUsersLines) {
  EXPECT_EQ(compile_error_of("acc\n  * sigmoidd(acc)"),
            "the user code does not compile:\n"
            "line 2, column 5: identifier \"sigmoidd\" is undefined\n"
            "    * sigmoidd(acc)\n"
            "      ^");
}

TEST(MistakesInUserCode, InFunctionsAreShownToo) {
  EXPECT_THAT(compile_error_of("\n__device__ float f(float v) { return v + nothing; }\n---\nf(acc)"),
              HasSubstr("line 2, column 42: identifier \"nothing\" is undefined"));
  EXPECT_THAT(compile_error_of("__device__ float f(float v) { return v; }\n---\nconst float v = f(acc);\nreturn g(v);"),
              HasSubstr("line 4, column 8: identifier \"g\" is undefined"));
}

TEST(MistakesInUserCode, IncludeAMissingReturn) {
  EXPECT_THAT(compile_error_of("acc + 1;"), HasSubstr("without a return"));
}

TEST(MistakesInUserCode, IncludeValuesThatAnOperationLacks) {
  EXPECT_THAT(compile_error_of("acc * k"), HasSubstr("identifier \"k\" is undefined"));
  EXPECT_THAT(compile_error_of("--- prologue\nx * c"), HasSubstr("identifier \"c\" is undefined"));
}

TEST(UserCode, WhoseTextIsUnknownMakesNoKernel) {
  const Request request = Request::parse("softmax_forward x=f32:3x4 epilogue=user:" + std::string(32, 'a'));
  try {
    (void)built_in_catalogue().program(request, TestDevice::get().target,
                                       {"softmax_simple", Config::parse("THREADS=128")});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("is not known"));
    EXPECT_THAT(error.hint(), HasSubstr("--expression"));
  }
}

}  // namespace
}  // namespace kiln::user_code_test
