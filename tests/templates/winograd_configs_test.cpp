// A pairwise cover of the configurations of Winograd's algorithms, and 64-bit offsets, against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support {
namespace {

TEST(WinogradConfigs, OfTheStepsMatchTheReference) {
  const std::string nchw = "conv_forward x=f32:2x20x9x11 w=f32:68x20x3x3 pad=1 epilogue=bias+relu fast";
  const std::string nhwc = "conv_forward x=f32:2x40x9x11:nhwc w=f32:72x20x3x3:nhwc groups=2 pad=1 fast";
  expect_pairwise_match("conv_winograd_2x2", nchw);
  expect_pairwise_match("conv_winograd_2x2", nhwc);
  expect_pairwise_match("conv_winograd_4x4", nchw);
  expect_pairwise_match("conv_winograd_4x4", nhwc);
}

TEST(WinogradConfigs, OfTheFusedKernelsMatchTheReference) {
  const std::string nchw = "conv_forward x=f32:2x10x13x22 w=f32:67x10x3x3 pad=1 epilogue=bias+add fast";
  const std::string nhwc = "conv_forward x=f32:3x12x13x11:nhwc w=f32:132x6x3x3:nhwc groups=2 pad=1 fast";
  expect_pairwise_match("conv_winograd_2x2_fused", nchw);
  expect_pairwise_match("conv_winograd_2x2_fused", nhwc);
  expect_pairwise_match("conv_winograd_4x4_fused", nchw);
  expect_pairwise_match("conv_winograd_4x4_fused", nhwc);
}

TEST(WinogradConfigs, OfGradientsMatchTheReference) {
  const std::string nchw = "conv_backward_data dy=f32:2x20x9x11 w=f32:20x37x3x3 pad=1 fast";
  const std::string nhwc = "conv_backward_data dy=f32:2x40x9x11:nhwc w=f32:40x36x3x3:nhwc groups=2 pad=1 beta=any fast";
  expect_pairwise_match("conv_backward_data_winograd_2x2", nchw);
  expect_pairwise_match("conv_backward_data_winograd_2x2", nhwc);
  expect_pairwise_match("conv_backward_data_winograd_4x4", nchw);
  expect_pairwise_match("conv_backward_data_winograd_4x4", nhwc);
  expect_pairwise_match("conv_backward_data_winograd_2x2_fused", nchw);
  expect_pairwise_match("conv_backward_data_winograd_2x2_fused", nhwc);
  expect_pairwise_match("conv_backward_data_winograd_4x4_fused", nchw);
  expect_pairwise_match("conv_backward_data_winograd_4x4_fused", nhwc);
}

TEST(WinogradWithWideOffsets, MatchesTheReference) {
  expect_wide_index_matches(
      {"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused", "conv_winograd_4x4_fused"},
      "conv_forward x=f32:4x6x5x6 w=f32:8x6x3x3 pad=1 n=? epilogue=bias fast");
  expect_wide_index_matches({"conv_backward_data_winograd_2x2", "conv_backward_data_winograd_4x4",
                             "conv_backward_data_winograd_2x2_fused", "conv_backward_data_winograd_4x4_fused"},
                            "conv_backward_data dy=f32:4x6x5x6 w=f32:6x8x3x3 pad=1 n=? fast");
}

}  // namespace
}  // namespace kiln::testing_support
