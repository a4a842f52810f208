// A pairwise cover of the configurations of Winograd's algorithms, and 64-bit offsets, against the reference.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::winograd_configs_test {
namespace {

const char* const steps_nchw = "conv_forward x=f32:2x20x9x11 w=f32:68x20x3x3 pad=1 epilogue=bias+relu fast";
const char* const steps_nhwc = "conv_forward x=f32:2x40x9x11:nhwc w=f32:72x20x3x3:nhwc groups=2 pad=1 fast";
const char* const fused_nchw = "conv_forward x=f32:2x10x13x22 w=f32:67x10x3x3 pad=1 epilogue=bias+add fast";
const char* const fused_nhwc = "conv_forward x=f32:3x12x13x11:nhwc w=f32:132x6x3x3:nhwc groups=2 pad=1 fast";
const char* const gradient_nchw = "conv_backward_data dy=f32:2x20x9x11 w=f32:20x37x3x3 pad=1 fast";
const char* const gradient_nhwc =
    "conv_backward_data dy=f32:2x40x9x11:nhwc w=f32:40x36x3x3:nhwc groups=2 pad=1 beta=any fast";

INSTANTIATE_TEST_SUITE_P(WinogradConfigs, PairwiseMatch,
                         testing::Values(cover("conv_winograd_2x2", steps_nchw), cover("conv_winograd_2x2", steps_nhwc),
                                         cover("conv_winograd_4x4", steps_nchw), cover("conv_winograd_4x4", steps_nhwc),
                                         cover("conv_winograd_2x2_fused", fused_nchw),
                                         cover("conv_winograd_2x2_fused", fused_nhwc),
                                         cover("conv_winograd_4x4_fused", fused_nchw),
                                         cover("conv_winograd_4x4_fused", fused_nhwc),
                                         cover("conv_backward_data_winograd_2x2", gradient_nchw),
                                         cover("conv_backward_data_winograd_2x2", gradient_nhwc),
                                         cover("conv_backward_data_winograd_4x4", gradient_nchw),
                                         cover("conv_backward_data_winograd_4x4", gradient_nhwc),
                                         cover("conv_backward_data_winograd_2x2_fused", gradient_nchw),
                                         cover("conv_backward_data_winograd_2x2_fused", gradient_nhwc),
                                         cover("conv_backward_data_winograd_4x4_fused", gradient_nchw),
                                         cover("conv_backward_data_winograd_4x4_fused", gradient_nhwc)),
                         cover_name);

INSTANTIATE_TEST_SUITE_P(WinogradWithWideOffsets, WideIndexMatch,
                         testing::Values(wide({"conv_winograd_2x2", "conv_winograd_4x4", "conv_winograd_2x2_fused",
                                               "conv_winograd_4x4_fused"},
                                              "conv_forward x=f32:4x6x5x6 w=f32:8x6x3x3 pad=1 n=? epilogue=bias fast"),
                                         wide({"conv_backward_data_winograd_2x2", "conv_backward_data_winograd_4x4",
                                               "conv_backward_data_winograd_2x2_fused",
                                               "conv_backward_data_winograd_4x4_fused"},
                                              "conv_backward_data dy=f32:4x6x5x6 w=f32:6x8x3x3 pad=1 n=? fast")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::winograd_configs_test
