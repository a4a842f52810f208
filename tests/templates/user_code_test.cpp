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

namespace kiln {
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
      {"channels", Expression("k < 3 ? acc : -acc")},
      {"layer", Expression("(acc + bias[n]) * gate + (n < 3 ? 1.0f : 0.0f)", {"bias", "gate"})},
      {"pooled", Expression("acc * gate + (c % 2 == 0 ? bias[c] : 0.0f)", {"bias", "gate"})},
      {"scaled", Expression("log2f(1.0f + fabsf(acc)) * scale", {}, {"scale"})}};
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
      "conv_forward x=f16:1x16x5x6:nhwc w=f16:24x16x1x1:nhwc epilogue=user:gated epilogue.bias=f32:24 "
      "epilogue.gate=f16:1x24x5x6:nhwc",
      {"conv_simple", "conv_direct", "conv_1x1"});
}

TEST(UserEpilogue, OfMatrixProducts) {
  expect_served_right(
      "gemm a=f32:35x40 b=f32:40x37 epilogue=user:layer epilogue.bias=f16:37:2 epilogue.gate=bf16:35x37",
      {"gemm_simple", "gemm_tiled", "gemm_splitk"});
}

TEST(UserEpilogue, OfWinogradConvolutions) {
  expect_served_right(
      "conv_forward x=f32:2x3x7x8 w=f32:5x3x3x3 pad=1 fast epilogue=user:gated epilogue.bias=f32:5 "
      "epilogue.gate=f16:2x5x7x8",
      {"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused", "conv_winograd_4x4_fused"});
}

TEST(UserEpilogue, OfDepthwiseConvolutions) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right("conv_forward x=f32:2x8x6x8:" + order + " w=f32:8x1x3x3:" + order +
                            " pad=1 groups=8 epilogue=user:helped epilogue.gate=f32:2x8x6x8:" + order,
                        {"conv_simple", "conv_depthwise_" + order});
  }
}

TEST(UserEpilogue, OfSplitConvolutionsAndBlends) {
  expect_served_right(
      "conv_forward x=bf16:1x96x3x3:nhwc w=bf16:7x96x3x3:nhwc y=f32:1x7x1x1:nhwc alpha=any beta=any "
      "epilogue=user:scaled",
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
                            order,
                        {"pool_simple", "pool_" + order});
    expect_served_right("pool_forward x=f32:3x5x4x4:" + order +
                            " mode=max window=global beta=1 epilogue=user:pooled epilogue.bias=f32:5 "
                            "epilogue.gate=f32:3x5x1x1:" +
                            order,
                        {"pool_simple", "pool_global_" + order});
  }
}

TEST(UserEpilogue, OfSoftmax) {
  expect_served_right("softmax_forward x=f32:5x64 epilogue=user:helped epilogue.gate=f16:5x64",
                      {"softmax_simple", "softmax_warp"});
  expect_served_right("softmax_forward x=f16:2x8192 mode=log epilogue=user:helped epilogue.gate=f32:2x8192@4",
                      {"softmax_simple", "softmax_block", "softmax_online", "softmax_split"});
}

// Offsets of tensors, channels and padding in other ranks, and y where it lies in a larger tensor.
TEST(UserEpilogue, OfOneAndThreeSpatialDimensions) {
  expect_served_right(
      "conv_forward x=f32:2x3x17 w=f32:5x3x3 pad=1 epilogue=user:gated epilogue.bias=f32:5 epilogue.gate=f16:2x5x17",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "conv_forward x=f32:1x4x3x5x7:ndhwc w=f32:6x4x2x3x1:ndhwc pad=0,1,0 epilogue=user:gated "
      "epilogue.bias=f32:6 epilogue.gate=f32:1x6x2x5x7:ndhwc",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "pool_forward x=f32:2x3x5x4x6 mode=avg window=2,3,1 epilogue=user:pooled epilogue.bias=f32:3 "
      "epilogue.gate=f32:2x3x4x2x6",
      {"pool_simple", "pool_nchw"});
}

TEST(UserEpilogue, OfRegionsOfLargerTensors) {
  expect_served_right(
      "conv_forward x=f32:2x3x7x9:600,150,13,1 w=f32:5x3x3x3 y=f32:2x5x7x9:1300,117,11,1 pad=1 "
      "epilogue=user:gated epilogue.bias=f32:5:3 epilogue.gate=f16:2x5x7x9:1300,117,11,1",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_served_right(
      "pool_forward x=f16:2x5x9x8:900,1,97,7 y=f16:2x5x3x3:500,100,7,2 mode=max window=3 stride=3 "
      "pad=0,0,0,1 epilogue=user:pooled epilogue.bias=f32:5 epilogue.gate=bf16:2x5x3x3:500,100,7,2",
      {"pool_simple"});
}

TEST(UserEpilogue, OfActivations) {
  expect_served_right("activation_forward x=f16:5x37 mode=identity epilogue=user:helped epilogue.gate=f32:5x37@4",
                      {"activation_forward_simple", "activation_forward_vector"});
  expect_served_right("activation_forward x=f32:6x8 mode=relu epilogue=user:helped epilogue.gate=f32:6x8:1,6",
                      {"activation_forward_simple"});
}

TEST(UserEpilogue, OfDynamicBatches) {
  expect_served_right("conv_forward x=f32:4x3x5x5 w=f32:2x3x3x3 epilogue=user:helped epilogue.gate=f32:4x2x3x3 n=?",
                      {"conv_simple", "conv_implicit_gemm"});
}

TEST(UserEpilogue, OfAnEmptyBatch) {
  expect_served_right("conv_forward x=f32:0x3x5x5 w=f32:2x3x3x3 epilogue=user:silu", {"conv_simple"});
}

TEST(UserEpilogue, ReadsTensorsOfOtherStridesInTheTrustedKernelOnly) {
  const std::string line =
      "pool_forward x=f32:1x3x6x6 mode=max window=2,2 stride=2,2 epilogue=user:helped epilogue.gate=f32:1x3x3x3:nhwc";
  expect_served_right(line, {"pool_simple"});
  const auto reason =
      built_in_catalogue().find("pool_nchw")->refusal(Request::parse(line, expressions()), TestDevice::get().target);
  EXPECT_EQ(reason, "epilogue.gate has other strides than y");
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
  // What the reader of the check should know: two ways to write one thing are the same thing.
  EXPECT_TRUE(check_as(request("acc * slope + bias"), request("bias + slope * acc")));
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
}  // namespace kiln
