// The default configuration of every algorithm for a convolution's gradients by its filter and its bias against the
// reference, on shapes that are awkward in one way each; pairwise covers of the configurations; 64-bit offsets.
#include <gtest/gtest.h>

#include <limits>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_backward_filter_test {
namespace {

using Names = std::vector<std::string>;

const Names trusted = {"conv_backward_filter_simple"};
const Names any_batch = {"conv_backward_filter_simple", "conv_backward_filter_direct"};
const Names few_channels = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                            "conv_backward_filter_implicit_gemm", "conv_backward_filter_implicit_gemm_splitk"};
const Names few_products = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                            "conv_backward_filter_implicit_gemm"};
const Names depthwise_nchw = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                              "conv_backward_filter_depthwise_nchw"};
const Names depthwise_nhwc = {"conv_backward_filter_simple", "conv_backward_filter_direct",
                              "conv_backward_filter_depthwise_nhwc"};
const Names many_channels = {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm",
                             "conv_backward_filter_implicit_gemm_splitk"};

class ConvBackwardFilter : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvBackwardFilter, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

// Filters of more taps than a thread has sums: some rows of them, or a part of a row.
INSTANTIATE_TEST_SUITE_P(
    TilesOfTaps, ConvBackwardFilter,
    testing::Values(
        AlgorithmCase{"RowsOfTaps",
                      "conv_backward_filter x=f32:2x6x9x11 dy=f32:2x6x9x11 dw=f32:6x1x7x9 pad=3,4 groups=6", any_batch},
        AlgorithmCase{"PartsOfRows", "conv_backward_filter x=f16:1x3x60 dy=f16:1x3x32 dw=f16:3x1x45 pad=8 groups=3",
                      any_batch},
        AlgorithmCase{"PlanesOfTaps",
                      "conv_backward_filter x=bf16:2x4x5x8x9:ndhwc dy=bf16:2x4x4x6x7:ndhwc dw=f32:4x1x2x5x7 pad=0,1,2 "
                      "groups=4 beta=any",
                      any_batch}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvBackwardFilter,
    testing::Values(
        AlgorithmCase{
            "SingleElement",
            "conv_backward_filter x=f32:1x1x1x1 dy=f32:1x1x1x1 dw=f32:1x1x1x1",
            {"conv_backward_filter_simple", "conv_backward_filter_direct", "conv_backward_filter_depthwise_nchw",
             "conv_backward_filter_depthwise_nhwc", "conv_backward_filter_implicit_gemm"}},
        AlgorithmCase{"Primes", "conv_backward_filter x=f32:3x5x11x13:nchw dy=f32:3x7x11x13:nchw dw=f32:7x5x3x3 pad=1",
                      few_channels},
        AlgorithmCase{"ChannelsLast",
                      "conv_backward_filter x=f16:2x40x8x7:nhwc dy=f16:2x36x8x7:nhwc dw=f16:36x40x3x3:nhwc pad=1",
                      many_channels},
        AlgorithmCase{"FirstLayer",
                      "conv_backward_filter x=bf16:2x3x19x21:nchw dy=bf16:2x16x10x11:nchw dw=bf16:16x3x7x7:nchw pad=3 "
                      "stride=2",
                      few_channels},
        AlgorithmCase{"OddStridesAndDilation",
                      "conv_backward_filter x=f32:2x4x17x19:nhwc dy=f32:2x6x5x8:nhwc dw=f32:6x4x3x2:nhwc stride=3,2 "
                      "dilation=2,3",
                      few_channels},
        // The last rows and columns of x meet no window.
        AlgorithmCase{"RestOfAStride",
                      "conv_backward_filter x=f32:1x4x9x10:656,160,16,1 dy=f32:1x6x3x3:400,64,16,1 "
                      "dw=f32:6x4x3x2:272,64,16,1 stride=3",
                      few_products},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_filter x=f16:1x18x9x7:nchw dy=f16:1x12x9x6:nchw dw=f16:12x18x2x4:nchw pad=1,2,0,0",
                      many_channels},
        AlgorithmCase{"Pointwise", "conv_backward_filter x=f32:2x20x4x6:nchw dy=f32:2x33x4x6:nchw dw=f32:33x20x1x1",
                      many_channels},
        AlgorithmCase{"WholeImage",
                      "conv_backward_filter x=f32:6x24x3x3:nhwc dy=f32:6x10x1x1 dw=f32:10x24x3x3:nhwc",
                      {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm"}},
        AlgorithmCase{"FullyConnected", "conv_backward_filter x=f32:40x17x1x1 dy=f32:40x36x1x1 dw=f32:36x17x1x1",
                      many_channels},
        AlgorithmCase{"Groups",
                      "conv_backward_filter x=f32:2x24x6x7:nchw dy=f32:2x36x6x7:nchw dw=f32:36x8x3x3 groups=3 pad=1 "
                      "mode=convolution",
                      few_channels},
        AlgorithmCase{
            "GroupsChannelsLast",
            "conv_backward_filter x=f16:2x12x6x5:600,1,96,16 dy=f16:2x8x5x3:nhwc dw=f16:8x6x2x3:nhwc groups=2",
            few_channels},
        AlgorithmCase{"DepthwiseChannelsLast",
                      "conv_backward_filter x=f16:2x40x9x7:nhwc dy=f16:2x40x5x4:nhwc dw=f16:40x1x3x3:nhwc groups=40 "
                      "pad=1 stride=2 mode=convolution",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseOfManyTaps",
                      "conv_backward_filter x=f32:1x3x13x12:nchw dy=f32:1x6x13x12:nchw dw=f32:6x1x7x7 groups=3 pad=3",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseOfManyTapsChannelsLast",
                      "conv_backward_filter x=bf16:1x12x13x12:nhwc dy=bf16:1x12x13x12:nhwc dw=bf16:12x1x7x7:nhwc "
                      "groups=12 pad=3",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseOf121Taps",
                      "conv_backward_filter x=f16:1x8x13x12:nhwc dy=f16:1x8x3x2:nhwc dw=f32:8x1x11x11 groups=8",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwisePrimes",
                      "conv_backward_filter x=f16:3x5x11x13 dy=f16:3x5x11x13 dw=f16:5x1x3x3 groups=5 pad=1",
                      depthwise_nchw},
        AlgorithmCase{
            "DepthwisePrimesChannelsLast",
            "conv_backward_filter x=f32:3x37x11x13:nhwc dy=f32:3x37x11x13:nhwc dw=f32:37x1x3x3 groups=37 pad=1",
            depthwise_nhwc},
        AlgorithmCase{"DepthwiseStridesAndDilation",
                      "conv_backward_filter x=bf16:2x6x17x20 dy=bf16:2x6x7x7 dw=f32:6x1x3x3 groups=6 stride=2,3 "
                      "dilation=2,1 pad=0,1,0,1",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseStridesAndDilationChannelsLast",
                      "conv_backward_filter x=bf16:2x6x17x20:nhwc dy=bf16:2x6x7x7:nhwc dw=f32:6x1x3x3 groups=6 "
                      "stride=2,3 dilation=2,1 pad=0,1,0,1",
                      depthwise_nhwc},
        AlgorithmCase{
            "DepthwiseMultiplierChannelsLast",
            "conv_backward_filter x=f16:2x8x7x9:nhwc dy=f16:2x24x7x9:nhwc dw=f16:24x1x3x3:nhwc groups=8 pad=1 "
            "alpha=any beta=any",
            depthwise_nhwc},
        AlgorithmCase{"DepthwiseMixedLayouts",
                      "conv_backward_filter x=f16:2x8x7x8:nhwc dy=f32:2x8x7x8:nchw dw=bf16:8x1x3x3 groups=8 pad=1",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseEmptyBatch",
                      "conv_backward_filter x=f16:0x8x7x8 dy=f16:0x8x7x8 dw=f16:8x1x3x3 groups=8 pad=1 beta=1",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseEmptyBatchChannelsLast",
                      "conv_backward_filter x=f16:0x8x7x8:nhwc dy=f16:0x8x7x8:nhwc dw=f16:8x1x3x3 groups=8 pad=1",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseDynamicBatch",
                      "conv_backward_filter x=f16:5x8x7x8 dy=f16:5x8x7x8 dw=f16:8x1x3x3 groups=8 pad=1 n=?",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseDynamicBatchChannelsLast",
                      "conv_backward_filter x=f16:5x8x7x8:nhwc dy=f16:5x8x7x8:nhwc dw=f16:8x1x3x3 groups=8 pad=1 n=?",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseThreeD",
                      "conv_backward_filter x=f16:1x4x5x6x7 dy=f16:1x8x5x6x4 dw=f32:8x1x3x2x3 groups=4 pad=1,0,1,1,1,1 "
                      "stride=1,1,2 mode=convolution",
                      depthwise_nchw},
        AlgorithmCase{"DepthwiseThreeDChannelsLast",
                      "conv_backward_filter x=f16:1x4x5x6x7:ndhwc dy=f16:1x4x5x6x4:ndhwc dw=f32:4x1x3x2x3 groups=4 "
                      "pad=1,0,1,1,1,1 stride=1,1,2 mode=convolution",
                      depthwise_nhwc},
        AlgorithmCase{"DepthwiseOneD",
                      "conv_backward_filter x=bf16:3x6x50 dy=bf16:3x6x25 dw=bf16:6x1x5 groups=6 pad=2 stride=2",
                      depthwise_nchw},
        AlgorithmCase{"OneFilterOfManyChannels",
                      "conv_backward_filter x=f32:2x37x11x12 dy=f32:2x1x11x12 dw=f32:1x37x3x3 pad=1 beta=1",
                      {"conv_backward_filter_depthwise_nchw"}},
        AlgorithmCase{"FewChannelsOfManyFilters",
                      "conv_backward_filter x=f16:3x3x13x16 dy=f16:3x17x7x8 dw=f32:17x3x3x5 pad=1,2 stride=2 n=?",
                      depthwise_nchw},
        AlgorithmCase{"SmallGroups",
                      "conv_backward_filter x=bf16:2x8x9x11:1600,200,16,1 dy=bf16:2x6x5x12 dw=f32:6x4x3x2 groups=2 "
                      "pad=1 stride=2,1 mode=convolution alpha=any",
                      depthwise_nchw},
        AlgorithmCase{"SmallGroupsOfVolumes",
                      "conv_backward_filter x=f32:2x6x5x6x7 dy=f32:2x9x5x6x4 dw=f32:9x2x3x2x3 groups=3 "
                      "pad=1,0,1,1,1,1 stride=1,1,2",
                      depthwise_nchw},
        AlgorithmCase{"EmptyBatch", "conv_backward_filter x=f32:0x4x6x6 dy=f32:0x8x4x4 dw=f32:8x4x3x3 beta=any",
                      any_batch},
        AlgorithmCase{"DynamicBatch",
                      "conv_backward_filter x=f32:4x4x6x7 dy=f32:4x8x6x7 dw=f32:8x4x3x3 pad=1 n=? alpha=any beta=1",
                      any_batch},
        AlgorithmCase{"AlphaZero", "conv_backward_filter x=f32:1x4x6x6 dy=f32:1x8x4x4 dw=f32:8x4x3x3 alpha=0 beta=any",
                      trusted},
        AlgorithmCase{"MixedTypesAndBlend",
                      "conv_backward_filter x=f16:2x20x6x6:nhwc dy=f32:2x12x6x6:nchw dw=bf16:12x20x3x3:nchw pad=1 "
                      "alpha=any beta=any",
                      {"conv_backward_filter_simple", "conv_backward_filter_implicit_gemm"}},
        AlgorithmCase{"SubRegions",
                      "conv_backward_filter x=f32:2x18x6x8:4000,200,24,2@4 dy=f32:2x8x6x8:1600,1,160,16 "
                      "dw=f32:8x18x3x3:400,20,5,1 pad=1",
                      many_channels},
        AlgorithmCase{"OneD",
                      "conv_backward_filter x=f32:3x8x17:ncw dy=f32:3x12x9:ncw dw=f32:12x8x5:ncw pad=2 stride=2",
                      few_products},
        AlgorithmCase{"ThreeDChannelsLast",
                      "conv_backward_filter x=f16:1x8x5x4x6:ndhwc dy=f16:1x16x2x4x3:ndhwc dw=f16:16x4x3x2x3:ndhwc "
                      "groups=2 pad=0,1,0,0,0,1 stride=2,1,2",
                      few_products}),
    case_name);

// Tiles reach beyond the outputs. What stands in x under windows that do not exist must not meet their zeros: zero
// times infinity is no zero.
TEST(ConvBackwardFilterDepthwise, LeaveInfinityWhereNoOutputMeetsIt) {
  constexpr int64_t channels = 2, pixels = 5 * 9, place = 4 * 9 + 7;  // under taps 1 and 2 of row 2
  const TestDevice& device = TestDevice::get();
  for (const auto& [order, config] :
       {std::pair{"nhwc", "BLOCK_K=32,GROUP_THREADS=64,SPLIT=1,TAP_ROWS=2,TILE_P=2,TILE_Q=4,VECTOR=2"},
        std::pair{"nchw", "LANES=32,SPLIT=1,THREADS=128,TILE_P=2,TILE_Q=4"}}) {
    const std::string layout = order, algorithm = "conv_backward_filter_depthwise_" + layout;
    const Request request = Request::parse("conv_backward_filter x=f32:1x2x5x9:" + layout +
                                           " dy=f32:1x2x3x7:" + layout + " dw=f32:2x1x3x3:nchw groups=2");
    const Program program = built_in_catalogue().program(request, device.target, {algorithm, Config::parse(config)});
    const execution::Executable executable = device.load(program, device.target, {"x", "dy", "dw"});
    std::vector<float> values(channels * pixels, 1.0f);
    for (int64_t c = 0; c < channels; ++c) {
      values[static_cast<size_t>(layout == "nhwc" ? place * channels + c : c * pixels + place)] =
          std::numeric_limits<float>::infinity();
    }
    const device::Buffer x = device::upload(device.context, values);
    const device::Buffer dy = device::upload(device.context, std::vector<float>(channels * 21, 1.0f));
    const device::Buffer dw(device.context, channels * 9 * sizeof(float));
    executable.run(nullptr, std::vector{x.address(), dy.address(), dw.address()}, {}, 1, 0);
    const std::vector<float> got = device::download<float>(*device.context, dw.address(), channels * 9);
    for (size_t i = 0; i < got.size(); ++i) {
      const bool meets = i % 9 == 7 || i % 9 == 8;
      EXPECT_EQ(got[i], meets ? std::numeric_limits<float>::infinity() : 21.0f) << layout << ", " << i;
    }
  }
}

TEST(ConvBackwardFilterDepthwise, SaysWhyItDoesNotApply) {
  const auto refusal = [](const std::string& order, const char* request) {
    return refusal_of("conv_backward_filter_depthwise_" + order, request);
  };
  const char* const last = "conv_backward_filter x=f32:1x4x5x5:nhwc dy=f32:1x4x3x3:nhwc dw=f32:4x1x3x3 groups=4";
  const char* const first = "conv_backward_filter x=f32:1x4x5x5 dy=f32:1x4x3x3 dw=f32:4x1x3x3 groups=4";
  EXPECT_EQ(refusal("nhwc", last), "none");
  EXPECT_EQ(refusal("nchw", first), "none");
  EXPECT_EQ(refusal("nchw", last), "channels of x stand closer together than its pixels");
  EXPECT_EQ(refusal("nhwc", first), "pixels of x stand closer together than its channels");
  EXPECT_EQ(refusal("nhwc", "conv_backward_filter x=f32:1x4x5x5:nhwc dy=f32:1x4x3x3 dw=f32:4x2x3x3 groups=2"),
            "it is not depthwise: groups is not the number of channels of x");
  EXPECT_EQ(refusal("nchw", "conv_backward_filter x=f32:1x32x5x5 dy=f32:1x16x3x3 dw=f32:16x16x3x3 groups=2"), "none");
  EXPECT_EQ(refusal("nchw", "conv_backward_filter x=f32:1x32x5x5 dy=f32:1x18x3x3 dw=f32:18x16x3x3 groups=2"),
            "groups have more than 8 channels of x and of dy");
  EXPECT_EQ(refusal("nchw", "conv_backward_filter x=f32:1x4x5x5 dy=f32:1x4x3x3 dw=f32:4x1x3x3 groups=4 alpha=0"),
            "alpha is zero: there is nothing to multiply");
  EXPECT_EQ(refusal("nchw", "conv_backward_filter x=f32:1x4x15x15 dy=f32:1x4x4x5 dw=f32:4x1x12x11 groups=4"),
            "a filter has more than 121 taps");
}

const Names bias = {"conv_backward_bias_simple", "conv_backward_bias_split"};

class ConvBackwardBias : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvBackwardBias, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, ConvBackwardBias,
    testing::Values(
        AlgorithmCase{"Nchw", "conv_backward_bias dy=f32:3x7x11x13", bias},
        AlgorithmCase{"Vectors", "conv_backward_bias dy=f16:2x5x8x16 db=f32:5 alpha=any beta=any", bias},
        AlgorithmCase{"Nhwc", "conv_backward_bias dy=bf16:2x40x5x7:nhwc beta=1", bias},
        AlgorithmCase{"OneD", "conv_backward_bias dy=bf16:2x6x19:160,24,1@2", bias},
        AlgorithmCase{"ThreeD", "conv_backward_bias dy=f16:2x36x3x4x5:ndhwc db=f16:36:3", bias},
        AlgorithmCase{"SubRegion", "conv_backward_bias dy=f32:2x6x5x7:1000,120,20,2", bias},
        AlgorithmCase{"EmptyBatch", "conv_backward_bias dy=f32:0x6x5x7 beta=any", bias},
        AlgorithmCase{"AlphaZero", "conv_backward_bias dy=f32:1x6x5x7 alpha=0 beta=1", {"conv_backward_bias_simple"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardFilterConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_backward_filter_simple",
              "conv_backward_filter x=f16:2x6x7x5:nhwc dy=f16:2x4x5x1:nhwc dw=f16:4x3x3x3:nhwc groups=2 dilation=1,2"),
        cover("conv_backward_filter_implicit_gemm",
              "conv_backward_filter x=f16:2x24x7x9:nhwc dy=f16:2x72x7x9:nhwc dw=f16:72x12x3x3:nhwc groups=2 pad=1"),
        cover("conv_backward_filter_implicit_gemm_splitk",
              "conv_backward_filter x=f32:1x20x5x7 dy=f32:1x12x5x7 dw=f32:12x20x3x3 pad=1 beta=any"),
        cover("conv_backward_filter_simple",
              "conv_backward_filter x=f32:2x3x7x5 dy=f32:2x4x4x4 dw=f32:4x3x3x2 pad=1,0 stride=2,1"),
        cover("conv_backward_filter_direct",
              "conv_backward_filter x=f32:4x3x17x24 dy=f32:4x6x17x24 dw=f32:6x1x7x3 groups=3 pad=3,1"),
        cover("conv_backward_filter_direct",
              "conv_backward_filter x=f16:2x70x15x11:nhwc dy=f16:2x70x15x11:nhwc dw=f16:70x1x3x5:nhwc "
              "groups=70 pad=1,2"),
        cover("conv_backward_filter_depthwise_nchw",
              "conv_backward_filter x=f16:5x3x19x24 dy=f16:5x6x19x24 dw=f16:6x1x3x5 groups=3 pad=1,2"),
        cover("conv_backward_filter_depthwise_nchw",
              "conv_backward_filter x=f32:9x6x15x29 dy=f32:9x4x8x15 dw=f32:4x3x3x3 groups=2 pad=1 stride=2 beta=any"),
        cover("conv_backward_filter_depthwise_nhwc",
              "conv_backward_filter x=f16:3x72x15x13:nhwc dy=f16:3x72x15x13:nhwc dw=f16:72x1x3x5:nhwc groups=72 "
              "pad=1,2"),
        cover("conv_backward_filter_depthwise_nhwc",
              "conv_backward_filter x=f32:3x36x4x9x11:ndhwc dy=f32:3x36x5x5x6:ndhwc dw=f32:36x1x2x3x3:ndhwc groups=36 "
              "pad=1 stride=1,2,2 beta=any"),
        cover("conv_backward_filter_implicit_gemm",
              "conv_backward_filter x=f32:2x10x13x11 dy=f32:2x68x13x6 dw=f32:68x10x3x3 pad=1 stride=1,2"),
        cover("conv_backward_filter_implicit_gemm_splitk",
              "conv_backward_filter x=f16:4x40x11x13:nhwc dy=f16:4x68x12x11:nhwc dw=f16:68x20x2x3:nhwc "
              "groups=2 pad=1,0")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardBiasConfigs, PairwiseMatch,
    testing::Values(cover("conv_backward_bias_simple", "conv_backward_bias dy=f16:3x5x1x7:nhwc"),
                    cover("conv_backward_bias_simple", "conv_backward_bias dy=f32:2x35x3x4"),
                    cover("conv_backward_bias_split", "conv_backward_bias dy=f32:9x3x33x32 beta=any"),
                    cover("conv_backward_bias_split", "conv_backward_bias dy=f16:9x72x31x33:nhwc")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvBackwardFilterWithWideOffsets, WideIndexMatch,
    testing::Values(wide(few_channels,
                         "conv_backward_filter x=f32:1x4x5x6x7:ncdhw dy=f32:1x6x5x6x7:ncdhw dw=f32:6x4x3x3x3 pad=1"),
                    wide({"conv_backward_filter_depthwise_nchw"},
                         "conv_backward_filter x=f16:2x4x9x12 dy=f16:2x8x9x12 dw=f16:8x1x3x3 groups=4 pad=1 n=?"),
                    wide({"conv_backward_filter_depthwise_nhwc"},
                         "conv_backward_filter x=f16:2x8x9x11:nhwc dy=f16:2x8x9x11:nhwc dw=f16:8x1x3x3 groups=8 pad=1"),
                    wide(bias, "conv_backward_bias dy=f32:4x3x5x7:nhwc n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_backward_filter_test
