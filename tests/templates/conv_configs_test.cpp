// A pairwise cover of the configurations of every convolution algorithm, and 64-bit offsets, against the reference.
#include <gtest/gtest.h>

#include <utility>

#include "algorithm_cases.h"
#include "kiln/templates/catalogue.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_configs_test {
namespace {

// Two slices of a small tile have more threads than the tile of x has elements: some threads load none.
// Three chunks a tap: NVRTC 13.0 divided their numbers in 8 bits, and the first chunk of a tap read 256 elements too
// far.
TEST(ChunksOfTaps, AreReadWhereTheyAre) {
  const Request request =
      Request::parse("conv_forward x=f32:3x20x5x5:nhwc w=f32:12x20x3x3:nhwc dilation=2 pad=2 epilogue=bias");
  for (const char* const config : {"BLOCK_K=8,BLOCK_M=64,BLOCK_N=32,SLICES=1,STAGES=2,THREAD_M=8,THREAD_N=8",
                                   "BLOCK_K=8,BLOCK_M=32,BLOCK_N=32,SLICES=1,STAGES=2,THREAD_M=4,THREAD_N=4"}) {
    EXPECT_TRUE(matches_reference(built_in_catalogue(), request, {"conv_implicit_gemm", Config::parse(config)}));
  }
}

TEST(SlicedTiles, MayBeSmallerThanTheirBlocks) {
  const Config config = Config::parse("BLOCK_K=8,BLOCK_M=32,BLOCK_N=128,SLICES=2,STAGES=1,THREAD_M=4,THREAD_N=4");
  for (const auto& [algorithm, request] :
       {std::pair{"conv_1x1", "conv_forward x=f16:1x72x5x7:nhwc w=f16:132x72x1x1:nhwc"},
        std::pair{"conv_implicit_gemm", "conv_forward x=f16:1x40x5x7:nhwc w=f16:132x40x3x3:nhwc pad=1"}}) {
    VariantChecker checker(built_in_catalogue(), Request::parse(request));
    EXPECT_TRUE(checker.matches_reference({algorithm, config}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    ConvConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_simple",
              "conv_forward x=f16:2x6x5x7:nhwc w=f16:4x3x3x2:nhwc groups=2 dilation=1,2 epilogue=bias+add"),
        cover("conv_simple", "conv_forward x=f32:2x3x7x5:nchw w=f32:4x3x3x2:nchw pad=1,0 stride=2,1"),
        cover("conv_direct",
              "conv_forward x=f32:2x6x7x5:nchw w=f32:12x3x3x5:nchw groups=2 pad=1,2 stride=2,1 "
              "epilogue=bias+relu"),
        cover("conv_direct", "conv_forward x=f16:1x8x11x9:nhwc w=f16:36x8x3x2:nhwc pad=1,1 dilation=1,2"),
        cover("conv_depthwise_nchw",
              "conv_forward x=f32:1x3x3x7:nchw w=f32:6x1x3x3:nchw groups=3 pad=1,1 epilogue=bias"),
        cover("conv_depthwise_nchw",
              "conv_forward x=f16:2x2x17x24:nchw w=f16:2x1x5x3:nchw groups=2 pad=2,1 stride=2,2"),
        cover("conv_depthwise_nhwc",
              "conv_forward x=f16:1x72x9x11:nhwc w=f16:72x1x3x3:nhwc groups=72 pad=1,1 epilogue=bias+clip"),
        cover("conv_depthwise_nhwc",
              "conv_forward x=f32:1x20x8x15:nhwc w=f32:40x1x3x5:nhwc groups=20 pad=1,2 stride=2,1"),
        cover(
            "conv_1x1",
            "conv_forward x=f32:3x36x6x8:3000,80,12,1 w=f32:68x36x1x1:40,1,1,1 y=f32:3x68x6x8:nhwc epilogue=bias+add"),
        cover("conv_1x1", "conv_forward x=f16:3x72x11x9:nhwc w=f16:132x72x1x1:nhwc epilogue=relu"),
        cover("conv_implicit_gemm",
              "conv_forward x=f32:2x10x13x11:nchw w=f32:68x10x3x3:nchw pad=1,1 stride=1,2 epilogue=bias+relu"),
        cover("conv_implicit_gemm",
              "conv_forward x=f16:2x40x7x9:5000,1,500,48 w=f16:136x20x2x3:nchw y=f16:2x136x8x7:nchw groups=2 "
              "pad=1,1 dilation=1,2"),
        cover("conv_implicit_gemm_splitk",
              "conv_forward x=f32:1x36x5x7:nchw w=f32:36x36x3x3:nchw pad=1,1 epilogue=bias+add"),
        cover("conv_implicit_gemm_splitk",
              "conv_forward x=f16:2x40x5x9:nhwc w=f16:72x40x3x3:nhwc pad=1,1 stride=2,1 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"},
                         "conv_forward x=f32:2x16x4x6:nchw w=f32:12x16x3x3:nchw pad=1,1 "
                         "epilogue=bias+add+relu+clip alpha=any beta=any"),
                    wide({"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"},
                         "conv_forward x=f16:2x16x7x6:nhwc w=f16:16x16x3x3:nhwc pad=1,1 stride=2,1 "
                         "epilogue=relu+clip+add+bias alpha=any beta=1"),
                    wide({"conv_1x1"}, "conv_forward x=f32:1x16x4x6:nchw w=f32:12x16x1x1:nchw n=?"),
                    wide({"conv_1x1"}, "conv_forward x=f32:2x16x4x6:nhwc w=f32:12x16x1x1:nhwc"),
                    wide({"conv_depthwise_nchw"},
                         "conv_forward x=f32:2x6x9x12:nchw w=f32:6x1x3x3:nchw groups=6 pad=1,1 n=? "
                         "epilogue=bias+add+clip alpha=any beta=any"),
                    wide({"conv_depthwise_nhwc"},
                         "conv_forward x=f32:2x8x9x8:nhwc w=f32:8x1x3x3:nhwc groups=8 pad=1,1")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_configs_test
