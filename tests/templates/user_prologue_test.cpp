// User prologues in every kernel, alone and with epilogues: against the trusted kernel on what the prologue gave.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/generator/operation.h"
#include "user_code_cases.h"
#include "variant_check.h"

namespace kiln::user_prologue_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::check_as;

const Expressions& prologues() {
  static const Expressions all = {
      {"normalise", Expression("--- prologue\n(x - mean[c]) * (c == 1 ? 0.25f : scale)", {"mean"}, {"scale"})},
      {"both", Expression("__device__ float f(float v) {\n  return v * v;\n}\n--- prologue\nf(x) + 1.0f\n---\n"
                          "silu(acc) * s",
                          {}, {"s"})},
      {"masked", Expression("--- prologue\nx < 0.25f ? -1.0f / 0.0f : x * scale", {}, {"scale"})},
      {"squared", Expression("--- prologue\nx * x * s - x\n---\nacc * t + gate", {"gate"}, {"s", "t"})},
      {"features", Expression("--- prologue\n(c % 3 == 1 ? scale : 1.0f) * x + shift", {"shift"}, {"scale"})},
      {"rounded", Expression("--- rounded prologue\n(x - mean[c]) * 0.37f + shift", {"mean"}, {"shift"})},
      {"curved", Expression("--- rounded prologue\nsilu(x * s) + 0.1f\n---\nacc * s", {}, {"s"})},
      {"layer",
       Expression("--- prologue\nrelu(x * factor[c]) + (c < 5 ? s : 0.0f)\n---\n(acc + bias[n]) * gate - t + other",
                  {"factor", "bias", "gate", "other"}, {"s", "t"})}};
  return all;
}

// A prologue that gives something else than 0 for 0 shows whether padding stays zero.
void expect_prologue_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, prologues());
}

TEST(UserPrologue, OfConvolutionsLeavesPaddingZero) {
  expect_prologue_right(
      "conv_forward x=f32:2x6x7x9 w=f32:4x3x3x2 pad=2,1 groups=2 epilogue=user:normalise prologue.mean=f16:6:2",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_prologue_right("conv_forward x=f16:1x8x5x6:nhwc w=f16:16x8x3x3:nhwc pad=1 epilogue=user:both",
                        {"conv_simple", "conv_direct", "conv_implicit_gemm"});
}

// One product, and a result of more digits: what is not rounded is far off.
TEST(RoundedPrologue, RoundsInEveryKernel) {
  for (const std::string type : {"f16", "bf16", "f8e4m3"}) {
    const std::string x = "x=" + type + ":", w = " w=" + type + ":";
    expect_prologue_right("conv_forward " + x + "2x1x5x7" + w + "1x1x1x1 y=f32:2x1x5x7 epilogue=user:curved",
                          {"conv_simple", "conv_direct", "conv_1x1", "conv_tensor_staged"});
  }
  expect_prologue_right("conv_forward x=i8:2x1x5x7 w=i8:1x1x1x1 y=f32:2x1x5x7 epilogue=user:curved",
                        {"conv_simple", "conv_direct", "conv_1x1"});
  expect_prologue_right("softmax_forward x=f16:5x131 y=f32:5x131 mode=log epilogue=user:curved",
                        {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online", "softmax_split"});
  expect_prologue_right("reduce x=bf16:5x131 y=f32:5x1 axes=1 mode=max epilogue=user:curved",
                        {"reduce_simple", "reduce_blocks"});
  expect_prologue_right("norm_forward x=f16:5x131 y=f32:5x131 epilogue=user:curved",
                        {"norm_forward_simple", "norm_forward_blocks"});
  expect_prologue_right("pool_forward x=f16:2x8x6x6:nhwc y=f32:2x8x5x5:nhwc mode=avg window=2 epilogue=user:curved",
                        {"pool_simple", "pool_nhwc"});
  expect_prologue_right("activation_forward x=f16:2x7x3x5 y=f32:2x7x3x5 mode=identity epilogue=user:curved",
                        {"activation_forward_simple", "activation_forward_vector"});
}

TEST(RoundedPrologue, OfConvolutionsOnTensorCoresLeavesPaddingZero) {
  const std::string code = " epilogue=user:rounded prologue.mean=f32:";
  expect_prologue_right("conv_forward x=f16:2x24x7x9:nhwc w=f16:40x24x3x3:nhwc pad=1" + code + "24",
                        {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_tensor_staged"});
  expect_prologue_right("conv_forward x=bf16:2x6x7x9 w=bf16:10x3x3x2 pad=2,1 groups=2 stride=2" + code + "6:2",
                        {"conv_simple", "conv_tensor_staged"});
  expect_prologue_right("conv_forward x=f16:2x24x7x9 w=f16:40x24x1x1 fast" + code + "24",
                        {"conv_1x1", "conv_tensor_staged", "conv_tensor_staged_f16_sums"});
  expect_prologue_right("conv_forward x=f32:2x24x7x9 w=f32:40x24x3x3 pad=1 tf32" + code + "24",
                        {"conv_implicit_gemm", "conv_tensor_staged"});
  expect_prologue_right(
      "conv_forward x=f8e4m3:1x32x5x5:nhwc w=f8e4m3:16x32x3x3:nhwc y=f16:1x16x5x5:nhwc pad=1" + code + "32",
      {"conv_simple", "conv_tensor_staged"});
}

TEST(RoundedPrologue, OfGradientsAndProductsOnTensorCores) {
  expect_prologue_right(
      "conv_backward_data dy=f16:2x16x5x7 w=f16:16x24x3x3 dx=f16:2x24x5x7 pad=1 epilogue=user:rounded "
      "prologue.mean=f32:16",
      {"conv_backward_data_simple", "conv_backward_data_tensor_staged"});
  expect_prologue_right(
      "conv_backward_filter x=f16:4x24x5x7:nhwc dy=f16:4x16x5x7:nhwc dw=f32:16x24x3x3:nhwc pad=1 epilogue=user:rounded "
      "prologue.mean=f32:24",
      {"conv_backward_filter_simple", "conv_backward_filter_tensor_staged",
       "conv_backward_filter_tensor_staged_splitk"});
  expect_prologue_right("gemm a=bf16:35x40:1,36 b=bf16:40x37 epilogue=user:rounded prologue.mean=f32:40",
                        {"gemm_simple", "gemm_tiled", "gemm_tensor_staged"});
}

TEST(UserPrologue, OfConvolutionsReadsTensorsOfImages) {
  const std::string code = " epilogue=user:normalise prologue.mean=";
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_prologue_right("conv_forward x=f16:3x12x5x7:" + order + " w=f16:8x6x3x3 groups=2 pad=1" + code + "f32:3x12",
                          {"conv_simple", "conv_implicit_gemm"});
    expect_prologue_right("conv_forward x=f32:3x24x4x6:" + order + " w=f32:8x24x1x1" + code + "f16:3x24:30,1",
                          {"conv_simple", "conv_1x1"});
  }
  expect_prologue_right("conv_forward x=f32:2x96x3x3 w=f32:7x96x3x3 n=?" + code + "f32:2x96:1,2",
                        {"conv_simple", "conv_implicit_gemm_splitk"});
  expect_prologue_right("conv_forward x=f32:4x1x3x3 w=f32:8x1x1x1" + code + "f32:4x1", {"conv_1x1"});
  const std::string rounded = " epilogue=user:rounded prologue.mean=";
  expect_prologue_right("conv_forward x=f16:3x24x7x9:nhwc w=f16:40x24x3x3:nhwc pad=1" + rounded + "f32:3x24",
                        {"conv_simple", "conv_implicit_gemm", "conv_tensor_staged"});
  expect_prologue_right("conv_forward x=bf16:3x24x4x6 w=bf16:40x24x1x1" + rounded + "f32:3x24",
                        {"conv_1x1", "conv_tensor_staged"});
}

TEST(UserPrologue, OfImagesIsRefusedByKernelsThatKnowNone) {
  const Request request = Request::parse(
      "conv_forward x=f32:2x8x7x9 w=f32:8x1x3x3 groups=8 epilogue=user:normalise prologue.mean=f32:2x8", prologues());
  const BoundAlgorithm bound =
      built_in_catalogue().find("conv_depthwise_nchw")->on(request, testing_support::target_of(8, 0));
  EXPECT_EQ(bound.refusal(), "its kernels read tensors of a prologue by channels alone, not by images");
}

TEST(RoundedPrologue, IsWhatTensorCoresTake) {
  const auto refusal = [](const std::string& algorithm, const std::string& code) {
    const Request request = Request::parse(
        "conv_forward x=f16:2x24x7x9:nhwc w=f16:40x24x3x3:nhwc pad=1 prologue.mean=f32:24 epilogue=user:" + code,
        prologues());
    const BoundAlgorithm bound = built_in_catalogue().find(algorithm)->on(request, testing_support::target_of(8, 0));
    return bound.refusal().value_or("serves it");
  };
  EXPECT_EQ(refusal("conv_tensor_staged", "rounded"), "serves it");
  EXPECT_EQ(refusal("conv_tensor_staged", "normalise"),
            "its kernels keep x in f16: they take a prologue that is rounded to it (--- rounded prologue)");
  EXPECT_EQ(refusal("conv_tensor", "rounded"), "its kernels take no prologue");
}

TEST(UserPrologue, OfWinogradConvolutionsLeavesPaddingZero) {
  expect_prologue_right(
      "conv_forward x=f32:1x6x5x7:nhwc w=f32:4x3x3x3:nhwc groups=2 pad=1 fast epilogue=user:both",
      {"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused", "conv_winograd_4x4_fused"});
}

TEST(UserPrologue, OfDepthwiseConvolutionsLeavesPaddingZero) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_prologue_right("conv_forward x=f16:2x8x6x8:" + order + " w=f16:16x1x3x3:" + order +
                              " pad=1 groups=8 epilogue=user:normalise prologue.mean=bf16:8",
                          {"conv_simple", "conv_depthwise_" + order});
  }
}

TEST(UserPrologue, OfConvolutionsByLargeWindowsLeavesPaddingZero) {
  expect_prologue_right(
      "conv_forward x=f32:2x3x6x20 w=f32:6x1x5x9 pad=2,4 groups=3 epilogue=user:normalise prologue.mean=bf16:3",
      {"conv_simple", "conv_depthwise_windows"});
  expect_prologue_right(
      "conv_forward x=f16:1x4x6x20 w=f16:6x2x5x9 pad=2,4 groups=2 epilogue=user:normalise prologue.mean=bf16:4",
      {"conv_depthwise_windows"});
}

TEST(UserPrologue, OfOneAndThreeSpatialDimensionsLeavesPaddingZero) {
  expect_prologue_right(
      "conv_forward x=f32:2x3x11 w=f32:5x3x5 pad=2 dilation=2 epilogue=user:normalise prologue.mean=f32:3",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_prologue_right(
      "conv_forward x=f32:1x4x3x5x4 w=f32:6x4x3x3x3 pad=1 epilogue=user:normalise prologue.mean=f32:4",
      {"conv_simple", "conv_direct", "conv_implicit_gemm"});
  expect_prologue_right(
      "pool_forward x=f32:1x3x4x5x4 mode=avg window=3 pad=1 stride=2 epilogue=user:normalise prologue.mean=f32:3",
      {"pool_simple", "pool_nchw"});
}

TEST(UserPrologue, OfPointwiseAndSplitConvolutions) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_prologue_right("conv_forward x=f16:1x24x4x6:" + order + " w=f16:8x24x1x1:" + order +
                              " epilogue=user:normalise prologue.mean=f16:24",
                          {"conv_simple", "conv_1x1"});
    expect_prologue_right("conv_forward x=f32:1x96x3x3:" + order + " w=f32:7x96x3x3:" + order + " epilogue=user:both",
                          {"conv_simple", "conv_implicit_gemm_splitk"});
  }
}

TEST(UserPrologue, OfPoolingLeavesPaddingOut) {
  for (const std::string order : {"nchw", "nhwc"}) {
    const std::string mode = order == "nchw" ? "max" : "avg_padded";
    expect_prologue_right("pool_forward x=f16:2x8x9x8:" + order + " mode=" + mode +
                              " window=3,3 pad=1,1 stride=2,2 epilogue=user:normalise prologue.mean=f32:8",
                          {"pool_simple", "pool_" + order});
    expect_prologue_right("pool_forward x=f32:3x5x4x4:" + order + " mode=avg window=global epilogue=user:both",
                          {"pool_simple", "pool_global_" + order});
  }
}

// One more configuration than the default.
void expect_right(const std::string& line, const std::string& algorithm, const std::string& config) {
  EXPECT_TRUE(testing_support::matches_reference(built_in_catalogue(), Request::parse(line, prologues()),
                                                 {algorithm, Config::parse(config)}));
}

TEST(UserPrologue, OfSoftmaxOfRows) {
  const std::vector<std::string> all = {"softmax_simple", "softmax_warp", "softmax_block", "softmax_online",
                                        "softmax_split"};
  expect_prologue_right("softmax_forward x=f32:5x131:200,1 epilogue=user:masked n=?", all);
  const std::string both =
      "softmax_forward x=f16:3x1040 y=f32:3x1040 mode=log epilogue=user:squared epilogue.gate=bf16:3x1040";
  expect_prologue_right(both, all);
  expect_right(both, "softmax_block", "KEEP_SHARED=1,VECTOR=8,THREADS=64");  // f32 of f16
}

TEST(UserPrologue, OfSoftmaxAcrossRows) {
  const std::string line =
      "softmax_forward x=bf16:2x7x3x5 axis=1 alpha=any beta=any epilogue=user:squared epilogue.gate=i32:1x7x3x1";
  expect_prologue_right(line, {"softmax_simple", "softmax_strided"});
  expect_right(line, "softmax_strided", "KEEP=0,VECTOR=1,AXIS_LANES=2,INNER_LANES=16");
}

TEST(UserPrologue, OfSoftmaxOfOneElement) {
  expect_prologue_right("softmax_forward x=f16:1 axis=0 mode=log epilogue=user:masked", {"softmax_simple"});
}

TEST(UserPrologue, OfActivations) {
  expect_prologue_right("activation_forward x=f32:5x37:40,1 y=f32:5x37 mode=identity epilogue=user:masked n=?",
                        {"activation_forward_simple", "activation_forward_vector"});
  expect_prologue_right(
      "activation_forward x=f16:2x7x3x5:nchw y=f16:2x7x3x5:nhwc mode=swish alpha=any beta=any epilogue=user:squared "
      "epilogue.gate=f32:2x7x3x5:nchw",
      {"activation_forward_simple", "activation_forward_vector", "activation_forward_transposed"});
}

TEST(UserPrologue, OfMatrixProducts) {
  expect_prologue_right("gemm a=f32:35x40:1,36 b=f32:40x37 epilogue=user:features prologue.shift=u8:40:2 n=?",
                        {"gemm_simple", "gemm_tiled", "gemm_splitk"});
  // a is used again for every product of the batch, whose elements of the gate and of other are their own.
  expect_prologue_right(
      "gemm a=f16:1x3x6x80 b=f16:2x3x80x12 c=f16:2x3x6x12 epilogue=user:layer epilogue.bias=f32:12 "
      "epilogue.gate=f16:2x3x6x12 epilogue.other=f32:2x1x6x12:6,1,12,1 prologue.factor=f16:80@2",
      {"gemm_simple", "gemm_tiled", "gemm_splitk", "gemm_thin", "gemm_thin_splitk"});
  expect_prologue_right("gemm a=f32:3x0 b=f32:0x12 beta=any epilogue=user:features prologue.shift=f32:0",
                        {"gemm_simple"});
}

// a is the thin operand or the wide one, and lanes run along K or along the lines.
TEST(UserPrologue, OfThinMatrixProducts) {
  for (const char* shape : {"a=f16:1x2640 b=f16:2640x19:1,2640 c=f16:1x19 prologue.shift=f32:2640",
                            "a=f32:67x2052 b=f32:2052x3 prologue.shift=f16:2052",
                            "a=bf16:72x500:1,72 b=bf16:500x1 c=f32:72x1 prologue.shift=f32:500"}) {
    const Request request = Request::parse(std::string("gemm epilogue=user:features ") + shape, prologues());
    for (const char* algorithm : {"gemm_thin", "gemm_thin_splitk"}) {
      const auto config =
          built_in_catalogue().find(algorithm)->on(request, testing_support::TestDevice::get().target).first_legal();
      ASSERT_TRUE(config) << shape;
      EXPECT_TRUE(testing_support::matches_reference(built_in_catalogue(), request, {algorithm, *config}));
    }
  }
}

// ---- what must be noticed

TEST(CheckOfUserPrologues, FindsExchangedTensors) {
  const auto request = [](const char* text) {
    return Request::parse("gemm a=f32:9x11 b=f32:11x5 epilogue=user:e prologue.s=f32:11 prologue.t=f32:11",
                          {{"e", Expression(text, {"s", "t"})}});
  };
  EXPECT_FALSE(check_as(request("--- prologue\nx * s + t"), request("--- prologue\nx * t + s")));
  // Two ways to write one thing are the same thing.
  EXPECT_TRUE(check_as(request("--- prologue\nx * s + t"), request("--- prologue\nt + s[c] * x")));
}

TEST(CheckOfUserPrologues, FindsAMissingOneAndAWrongChannel) {
  for (const std::string line :
       {"pool_backward dy=f32:2x3x4x4 x=f32:2x3x8x8 window=2 stride=2", "softmax_forward x=f32:3x37 mode=log",
        "activation_forward x=f32:5x7 mode=swish", "gemm a=f32:9x11 b=f32:11x5"}) {
    const auto request = [&](const std::string& text) {
      return Request::parse(line + " epilogue=user:e", {{"e", Expression(text)}});
    };
    const bool has_channels = !operation(request("acc").operation).channel_name().empty();
    const Request right = request(has_channels ? "--- prologue\nx * x + c" : "--- prologue\nx * x");
    EXPECT_FALSE(check_as(right, request("acc"))) << line;
    if (!has_channels) continue;
    EXPECT_FALSE(check_as(right, request("--- prologue\nx * x"))) << line;
  }
}

}  // namespace
}  // namespace kiln::user_prologue_test
