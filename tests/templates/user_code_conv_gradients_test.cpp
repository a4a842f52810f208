// User code in the kernels of a convolution's gradients: against the trusted kernel on what the prologue gave, and what
// the epilogue makes of its result.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "user_code_cases.h"
#include "variant_check.h"

namespace kiln::user_code_conv_gradients_test {
namespace {

using testing_support::built_in_catalogue;
using testing_support::check_as;
using testing_support::VariantChecker;

const Expressions& expressions() {
  static const Expressions all = {
      {"affine", Expression("(c < 3 ? acc : -acc) * slope[c] + bias[c]", {"bias", "slope"})},
      {"whole", Expression("--- prologue\n(x + mean[c]) * (c == 1 ? 0.25f : slope) + 1.0f\n---\n"
                           "const float v = acc + shift;\nreturn v > 0.0f && c != 1 ? v * gate : slope * v;",
                           {"mean", "shift", "gate"}, {"unused", "slope"})},
      {"entered", Expression("--- prologue\n(x + mean) * (c % 3 == 1 ? 0.25f : slope) + 1.0f\n---\n"
                             "log2f(1.0f + fabsf(acc)) * slope + gate",
                             {"mean", "gate"}, {"unused", "slope"})},
      {"doubled", Expression("--- prologue\nx * x + c\n---\n2.0f * acc")},
      {"flat", Expression("--- prologue\nx * x\n---\n2.0f * acc")},
      {"early", Expression("--- prologue\nx * x + c")}};
  return all;
}

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, expressions());
}

// ---- by the input: padding, and what lies between the elements of a strided dy, stay zero whatever a prologue makes
// of 0. Stages stand in the cases of conv_backward_data_test.cpp and the like.

TEST(UserCodeOfDataGradients, OfConvolutionsInLogicalOrder) {
  expect_served_right(
      "conv_backward_data dy=f32:2x5x7x9 w=f32:5x6x3x2 pad=1 epilogue=user:affine epilogue.bias=f32:6 "
      "epilogue.slope=f16:6:2",
      {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm"});
}

TEST(UserCodeOfDataGradients, OfSplitConvolutionsAndBlends) {
  expect_served_right(
      "conv_backward_data dy=f16:1x40x3x5:nhwc w=f16:40x24x3x3:nhwc pad=1 alpha=any beta=any epilogue=user:whole "
      "prologue.mean=f16:40 epilogue.shift=bf16:1x24x1x5 epilogue.gate=f16:1x24x3x5:nhwc",
      {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm",
       "conv_backward_data_implicit_gemm_splitk"});
}

// The classes of taps write every other element each, here of a larger tensor; one class has no taps.
TEST(UserCodeOfDataGradients, OfStridesInRegionsOfLargerTensors) {
  expect_served_right(
      "conv_backward_data dy=bf16:2x8x3x4:1600,160,16,1 w=bf16:8x6x3x1:200,20,5,1 dx=bf16:2x6x6x8:2000,160,24,2 "
      "pad=1,0 stride=2 epilogue=user:whole prologue.mean=f32:8 epilogue.shift=f32:2x6x6x8:2000,160,24,2 "
      "epilogue.gate=f16:2x6x6x8:nhwc",
      {"conv_backward_data_simple", "conv_backward_data_direct", "conv_backward_data_implicit_gemm"});
}

TEST(UserCodeOfDataGradients, OfWinogradConvolutions) {
  expect_served_right(
      "conv_backward_data dy=f32:2x4x7x8 w=f32:4x3x3x3 groups=2 pad=1 fast epilogue=user:whole prologue.mean=f16:4:2 "
      "epilogue.shift=f32:2x6x1x8 epilogue.gate=f16:2x6x7x8:nhwc",
      {"conv_backward_data_winograd_2x2", "conv_backward_data_winograd_4x4", "conv_backward_data_winograd_2x2_fused",
       "conv_backward_data_winograd_4x4_fused"});
}

TEST(UserCodeOfDataGradients, OfDepthwiseConvolutions) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right("conv_backward_data dy=f32:2x8x5x8:" + order + " w=f32:8x1x3x3:" + order +
                            " pad=1 stride=2,1 groups=8 epilogue=user:whole prologue.mean=bf16:8 epilogue.shift=f32:8 "
                            "epilogue.gate=f32:2x8x9x8:" +
                            (order == "nchw" ? "nhwc" : "nchw"),
                        {"conv_backward_data_simple", "conv_backward_data_depthwise_" + order});
  }
  expect_served_right(
      "conv_backward_data dy=f16:2x8x5x18:nhwc w=f16:8x1x3x7 pad=1,3 groups=8 epilogue=user:affine "
      "epilogue.bias=f32:8 epilogue.slope=f16:8",
      {"conv_backward_data_simple", "conv_backward_data_depthwise_tensor"});
}

TEST(UserCodeOfDataGradients, OfDynamicBatches) {
  expect_served_right(
      "conv_backward_data dy=f32:4x4x3x5 w=f32:4x3x3x3 groups=2 pad=1 stride=1,2 n=? epilogue=user:whole "
      "prologue.mean=f32:4 epilogue.shift=f32:1x6x3x1 epilogue.gate=f32:4x6x3x9:nhwc",
      {"conv_backward_data_simple", "conv_backward_data_implicit_gemm"});
}

TEST(UserCodeOfDataGradients, OfLocalConvolutions) {
  expect_served_right(
      "local_conv_backward_data dy=f32:2x4x4x5 w=f32:24x3x3x3 pad=1 grid=3,2 epilogue=user:whole prologue.mean=f32:4 "
      "epilogue.shift=f32:1x3x4x1 epilogue.gate=f16:2x3x4x5:nhwc",
      {"local_conv_backward_data_simple", "local_conv_backward_data_implicit_gemm",
       "local_conv_backward_data_columns"});
}

// ---- by the filter and the bias: dw and db know no channels, but prologues do, and padding of x stays zero

TEST(UserCodeOfFilterGradients, OfConvolutions) {
  expect_served_right(
      "conv_backward_filter x=f32:2x3x7x9 dy=f32:2x5x7x10 dw=f16:5x3x3x2:200,1,25,5 pad=1 mode=convolution "
      "epilogue=user:entered prologue.mean=f16:3:2 epilogue.gate=bf16:5x1x3x2",
      {"conv_backward_filter_simple", "conv_backward_filter_direct", "conv_backward_filter_implicit_gemm",
       "conv_backward_filter_depthwise_nchw"});
}

TEST(UserCodeOfFilterGradients, OfSmallGroups) {
  expect_served_right(
      "conv_backward_filter x=f32:2x6x7x9 dy=f16:2x4x7x9 dw=f32:4x3x3x3 pad=1 groups=2 epilogue=user:entered "
      "prologue.mean=f16:6:2 epilogue.gate=bf16:4x1x3x3",
      {"conv_backward_filter_depthwise_nchw"});
}

TEST(UserCodeOfFilterGradients, OfDepthwiseConvolutions) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right("conv_backward_filter x=f16:2x4x7x8:" + order + " dy=f16:2x8x7x8:" + order +
                            " dw=f32:8x1x3x3 pad=1 groups=4 epilogue=user:entered prologue.mean=f16:4 "
                            "epilogue.gate=bf16:8x1x3x3",
                        {"conv_backward_filter_simple", "conv_backward_filter_depthwise_" + order});
    expect_served_right("conv_backward_filter x=f16:2x8x7x8:" + order + " dy=f16:2x8x7x8:" + order +
                            " dw=f32:8x1x3x3 pad=1 groups=8 epilogue=user:entered prologue.mean=f16:8 "
                            "epilogue.gate=bf16:8x1x3x3",
                        {"conv_backward_filter_depthwise_" + order});
  }
}

// The channels of x are counted along the pixels of what implicit matrix products compute: image by image, or all
// images of a pixel side by side; runs of neighbours in x are of one channel. Groups go on counting.
TEST(UserCodeOfFilterGradients, OfEveryOrderOfX) {
  for (const char* line : {
           "x=f32:8x6x3x4:1,120,40,8 prologue.mean=f32:6 dy=f32:8x4x3x4 dw=f32:4x3x3x3 groups=2 pad=1",
           "x=f32:8x4x1x1:1,8,8,8 prologue.mean=f32:4 dy=f32:8x5x1x1 dw=f32:5x4x1x1",
           "x=f16:5x6x2x4 prologue.mean=f32:6 dy=f32:5x4x1x1 dw=f32:4x3x2x4 groups=2",
       }) {
    const Request request = Request::parse(
        std::string("conv_backward_filter epilogue=user:entered epilogue.gate=f32:1x1x1x1 ") + line, expressions());
    const auto config = built_in_catalogue()
                            .find("conv_backward_filter_implicit_gemm")
                            ->on(request, testing_support::TestDevice::get().target)
                            .first_legal();
    ASSERT_TRUE(config) << line;
    EXPECT_TRUE(testing_support::matches_reference(built_in_catalogue(), request,
                                                   {"conv_backward_filter_implicit_gemm", *config}));
  }
}

TEST(UserCodeOfFilterGradients, OfSplitConvolutionsAndBlends) {
  expect_served_right(
      "conv_backward_filter x=f16:2x20x9x9:nhwc dy=f16:2x12x9x9:nhwc dw=f32:12x20x3x3:nhwc pad=1 alpha=any beta=any "
      "epilogue=user:entered prologue.mean=f16:20 epilogue.gate=f32:12x20x3x3:nhwc",
      {"conv_backward_filter_implicit_gemm", "conv_backward_filter_implicit_gemm_splitk"});
}

TEST(UserCodeOfFilterGradients, OfLocalConvolutions) {
  expect_served_right(
      "local_conv_backward_filter x=f32:2x3x4x5 dy=f32:2x4x4x5 dw=f32:6x4x3x3x3 pad=1 grid=3,2 epilogue=user:entered "
      "prologue.mean=f32:3 epilogue.gate=f16:6x4x3x3x3:1,6,24,72,216",
      {"local_conv_backward_filter_simple", "local_conv_backward_filter_implicit_gemm"});
}

TEST(UserCodeOfGradients, ByLargeWindows) {
  expect_served_right(
      "conv_backward_filter x=f32:2x3x6x11 dy=f32:2x3x6x11 dw=f32:3x1x3x5 pad=1,2 groups=3 epilogue=user:entered "
      "prologue.mean=f32:3 epilogue.gate=f32:1x1x3x5",
      {"conv_backward_filter_depthwise_windows"});
  expect_served_right(
      "conv_backward_data dy=f32:2x3x6x11 w=f32:3x1x5x7 pad=2,3 groups=3 epilogue=user:entered prologue.mean=f32:3 "
      "epilogue.gate=f32:1x3x6x11",
      {"conv_backward_data_depthwise_windows"});
}

TEST(UserCodeOfBiasGradients, OfConvolutions) {
  expect_served_right(
      "conv_backward_bias dy=f16:2x8x5x3:nhwc db=f32:8:3 alpha=any beta=any epilogue=user:entered "
      "prologue.mean=i8:8:3 epilogue.gate=f32:8",
      {"conv_backward_bias_simple", "conv_backward_bias_split"});
}

// The epilogue is for sums, not for their parts.
TEST(UserCodeOfGradients, IsAppliedToTheSumOfParts) {
  const auto expect_right = [](const std::string& line, const std::string& algorithm, const char* config) {
    VariantChecker checker(built_in_catalogue(), Request::parse(line, expressions()));
    EXPECT_TRUE(checker.matches_reference({algorithm, Config::parse(config)}));
  };
  expect_right(
      "conv_backward_filter x=f32:16x6x9x8 dy=f32:16x6x9x8 dw=f32:6x1x3x3 pad=1 groups=6 epilogue=user:entered "
      "prologue.mean=f32:6 epilogue.gate=f32:1x1x3x3",
      "conv_backward_filter_direct", "SPLIT=4,TAP_TILE=32,THREADS=128");
  expect_right("conv_backward_bias dy=f32:9x3x33x32 epilogue=user:entered prologue.mean=u8:3 epilogue.gate=f16:3:2",
               "conv_backward_bias_split", "SPLIT=4,THREADS=128");
}

// ---- what must be noticed

// The prologue's channel, or the epilogue.
TEST(CheckOfUserCodeOfGradients, FindsCodeThatWasSkipped) {
  for (const std::string line : {"conv_backward_data dy=f32:2x4x3x4 w=f32:4x3x3x3 pad=1 stride=2",
                                 "conv_backward_filter x=f32:2x3x5x5 dy=f32:2x4x5x5 dw=f32:4x3x3x3 pad=1",
                                 "conv_backward_bias dy=f32:2x4x5x5"}) {
    const Request coded = Request::parse(line + " epilogue=user:doubled", expressions());
    for (const char* part : {"flat", "early"}) {
      EXPECT_FALSE(check_as(coded, Request::parse(line + " epilogue=user:" + part, expressions()))) << line << part;
    }
  }
}

}  // namespace
}  // namespace kiln::user_code_conv_gradients_test
