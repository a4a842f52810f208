// Convolution on tensor cores by halos (lib/conv_halo.cuh) against the reference: defaults on layers that are awkward
// in a few ways each, pairwise covers of the configurations, 64-bit offsets, prologues; bits, orders of sums and
// refusals.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "algorithm_cases.h"
#include "kiln/generator/batch_invariance.h"
#include "kiln/generator/operation.h"
#include "user_code_cases.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_tensor_halo_test {
namespace {

using Names = std::vector<std::string>;

const Names halo = {"conv_tensor_halo"};
const Names by_input = {"conv_backward_data_tensor_halo"};

class ConvTensorHalo : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvTensorHalo, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Layers, ConvTensorHalo,
    testing::Values(
        AlgorithmCase{"ChannelsLast",
                      "conv_forward x=f16:2x32x12x20:nhwc w=f16:40x32x3x3:nhwc pad=1 epilogue=bias+add+relu", halo},
        AlgorithmCase{"OddExtents",
                      "conv_forward x=bf16:3x40x7x19:nhwc w=bf16:37x40x3x2:nhwc pad=1,0 epilogue=bias alpha=any "
                      "beta=any",
                      halo},
        AlgorithmCase{"StridesApart", "conv_forward x=f16:2x24x13x17:nhwc w=f16:18x24x3x5:nhwc pad=1,2 stride=2,3",
                      halo},
        AlgorithmCase{"Dilation", "conv_forward x=bf16:1x16x14x15:nhwc w=bf16:16x16x3x3:nhwc pad=2,3 dilation=2,3",
                      halo},
        AlgorithmCase{"AsymmetricPads",
                      "conv_forward x=f16:1x16x9x12:nhwc w=f16:12x16x2x4:nhwc pad=1,3,0,2 epilogue=bias+clip", halo},
        AlgorithmCase{"LargerThanTheImage", "conv_forward x=f16:3x16x6x5:nhwc w=f16:64x16x7x7:nhwc pad=3", halo},
        AlgorithmCase{"Groups", "conv_forward x=f16:2x96x10x10:nhwc w=f16:48x32x3x3:nhwc groups=3 pad=1", halo},
        AlgorithmCase{"MirroredFilter",
                      "conv_forward x=f16:1x24x9x9:nhwc w=f16:8x24x3x2:nhwc pad=2,1 dilation=2,1 mode=convolution",
                      halo},
        AlgorithmCase{"FiltersSideBySide", "conv_forward x=f16:2x16x6x9:nhwc w=f16:48x16x3x3:1,432,144,48 pad=1", halo},
        AlgorithmCase{"FiltersInPairs", "conv_forward x=f16:1x16x6x9:nhwc w=f16:9x16x3x3:162,1,54,18@4 pad=1", halo},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x24x9x12:4000,1,400,32@16 w=f16:16x24x3x3:400,1,100,32@4 "
                      "y=f16:2x16x9x12:8000,1,700,40@4 pad=1 epilogue=bias",
                      halo},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_forward x=bf16:2x16x6x6:2000,1,200,24@16 w=bf16:18x16x3x3:1,400,120,36@4 "
                      "y=bf16:2x18x6x6:8000,1,700,40@2 pad=1 epilogue=add",
                      halo},
        AlgorithmCase{"ToF32", "conv_forward x=f16:1x16x12x16:nhwc w=f16:9x16x3x3:nhwc pad=1 y=f32:1x9x12x16:nhwc",
                      halo},
        AlgorithmCase{"ToNchw", "conv_forward x=f16:2x16x12x16:nhwc w=f16:9x16x3x3:nhwc pad=1 y=f16:2x9x12x16", halo},
        AlgorithmCase{"ToOddRowsOfNchw",
                      "conv_forward x=bf16:2x16x12x17:nhwc w=bf16:9x16x3x3:nhwc pad=1 y=bf16:2x9x12x17 "
                      "epilogue=bias+add+relu",
                      halo},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:5x16x6x5:nhwc w=f16:24x16x3x3:nhwc pad=1 n=? epilogue=relu",
                      halo},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f16:0x16x6x5:nhwc w=f16:24x16x3x3:nhwc pad=1", halo},
        AlgorithmCase{"OneDimension", "conv_forward x=bf16:3x16x150:nwc w=bf16:24x16x9:nwc pad=4", halo},
        AlgorithmCase{"ManyTaps", "conv_forward x=f16:1x16x300:nwc w=f16:16x16x129:nwc pad=64", halo},
        AlgorithmCase{"ThreeDimensions",
                      "conv_forward x=f16:1x16x5x9x10:ndhwc w=f16:12x16x3x2x3:ndhwc pad=1,0,1 stride=1,2,1 "
                      "dilation=2,1,1",
                      halo},
        AlgorithmCase{"AsTf32",
                      "conv_forward x=f32:2x20x11x13:nhwc w=f32:7x20x3x3:nhwc pad=1 epilogue=bias+add beta=any tf32",
                      halo},
        AlgorithmCase{"AsTf32InRegions",
                      "conv_forward x=f32:2x12x9x7:1400,1,140,16 w=f32:10x12x3x2:100,1,32,16 "
                      "y=f32:2x10x7x6:800,1,100,12 tf32",
                      halo}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByInput, ConvTensorHalo,
    testing::Values(
        AlgorithmCase{"ChannelsLast",
                      "conv_backward_data dy=f16:2x32x12x20:nhwc w=f16:32x40x3x3:nhwc pad=1 epilogue=bias", by_input},
        AlgorithmCase{"OddExtents",
                      "conv_backward_data dy=bf16:3x40x7x19:nhwc w=bf16:40x38x3x2:nhwc pad=1,0 alpha=any beta=any",
                      by_input},
        AlgorithmCase{"PadsLargerThanTheWindow",
                      "conv_backward_data dy=f16:1x16x10x9:nhwc w=f16:16x8x2x3:nhwc pad=3,0,1,4", by_input},
        AlgorithmCase{"Dilation", "conv_backward_data dy=bf16:1x16x8x9:nhwc w=bf16:16x16x3x3:nhwc pad=2,3 dilation=2,3",
                      by_input},
        AlgorithmCase{"Groups", "conv_backward_data dy=f16:2x48x10x10:nhwc w=f16:48x32x3x3:nhwc groups=3 pad=1",
                      by_input},
        AlgorithmCase{"MirroredFilter",
                      "conv_backward_data dy=f16:1x8x9x9:nhwc w=f16:8x24x3x2:nhwc pad=1 mode=convolution n=?",
                      by_input},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f16:2x24x9x12:4000,1,400,32@16 w=f16:24x16x3x3:400,1,100,32@4 "
                      "dx=f16:2x16x9x12:8000,1,700,40@4 pad=1",
                      by_input},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_data dy=bf16:2x16x6x6:2000,1,200,24@16 w=bf16:16x18x3x3:1,400,120,36@4 "
                      "dx=bf16:2x18x6x6:8000,1,700,40@2 pad=1",
                      by_input},
        AlgorithmCase{"ThreeDimensions",
                      "conv_backward_data dy=f16:1x16x4x5x6:ndhwc w=f16:16x8x3x2x3:ndhwc pad=1,0,1 dilation=2,1,1",
                      by_input},
        AlgorithmCase{"AsTf32", "conv_backward_data dy=f32:2x20x11x13:nhwc w=f32:20x6x3x3:nhwc pad=1 tf32", by_input},
        AlgorithmCase{"AsTf32InRegions",
                      "conv_backward_data dy=f32:2x12x9x7:1400,1,140,16 w=f32:12x10x3x2:100,1,32,16 "
                      "dx=f32:2x10x11x8:1100,1,100,12 tf32",
                      {"conv_backward_data_tensor_halo", "conv_backward_data_tensor_persistent"}}),
    case_name);

// Every tile, and halos of several chunks of channels: the last of which has fewer.
INSTANTIATE_TEST_SUITE_P(
    ConvTensorHaloConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_tensor_halo",
              "conv_forward x=f16:2x136x18x35:nhwc w=f16:70x136x3x3:nhwc pad=1 epilogue=bias+add+relu"),
        cover("conv_tensor_halo",
              "conv_forward x=bf16:1x72x1x150:nhwc w=bf16:136x72x1x4:nhwc y=bf16:1x136x1x76 pad=0,2 stride=1,2 "
              "beta=any"),
        cover("conv_tensor_halo", "conv_forward x=f32:1x40x13x19:nhwc w=f32:40x40x3x2:nhwc dilation=2 tf32"),
        cover("conv_backward_data_tensor_halo",
              "conv_backward_data dy=f16:2x72x18x35:nhwc w=f16:72x70x3x3:nhwc pad=1 epilogue=bias"),
        cover("conv_backward_data_tensor_halo",
              "conv_backward_data dy=bf16:1x40x1x150:nhwc w=bf16:40x136x1x4:nhwc pad=0,2 beta=any")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvTensorHaloWithWideOffsets, WideIndexMatch,
    testing::Values(wide(halo, "conv_forward x=f16:2x40x9x9:nhwc w=f16:16x40x3x3:nhwc pad=1 epilogue=add"),
                    wide(by_input, "conv_backward_data dy=f16:2x40x9x9:nhwc w=f16:40x16x3x3:nhwc pad=1")),
    cover_name);

const Expressions& prologues() {
  static const Expressions all = {
      {"affine", Expression("--- rounded prologue\nsilu(x * scale + shift)", {"scale", "shift"})},
      {"inverse", Expression("--- rounded prologue\n1.0f / x")},
      {"shifted", Expression("--- rounded prologue\nx + (c < 9 ? 0.5f : s)\n---\nrelu(acc)", {}, {"s"})}};
  return all;
}

// For zero they give something else, which padding would show. Elements are rounded to f16 on their way.
TEST(ConvTensorHaloPrologues, ApplyToEachElementOnce) {
  const auto expect_right = [](const std::string& line) { expect_served_right(line, halo, prologues()); };
  const auto expect_right_by_input = [](const std::string& line) { expect_served_right(line, by_input, prologues()); };
  const std::string affine = " epilogue=user:affine prologue.scale=", shifted = " epilogue=user:shifted";
  expect_right("conv_forward x=f16:2x72x9x13:nhwc w=f16:18x72x3x3:nhwc pad=1" + affine +
               "f32:2x72 prologue.shift=f32:2x72");
  expect_right("conv_forward x=bf16:3x48x7x9:nhwc w=bf16:12x24x3x2:nhwc pad=1 groups=2" + affine +
               "f16:48 prologue.shift=f32:3x48:60,1");
  // Infinite where there is no channel.
  expect_right("conv_forward x=f16:1x40x7x9:nhwc w=f16:12x40x3x3:nhwc epilogue=user:inverse");
  expect_right("conv_forward x=f16:2x136x5x70:nhwc w=f16:9x136x1x3:nhwc pad=0,1 stride=1,2 n=?" + shifted);
  expect_right_by_input("conv_backward_data dy=f16:2x40x9x13:nhwc w=f16:40x8x3x3:nhwc pad=1" + affine +
                        "f32:40 prologue.shift=f32:40");
  expect_right("conv_forward x=f32:1x20x8x9:nhwc w=f32:7x20x3x3:nhwc pad=1 tf32" + shifted);
}

// Whatever kernels can read tensors with elements for each image.
TEST(ConvTensorHaloPrologues, OfImagesHaveOneOrderOfSumsAtEveryBatch) {
  std::set<std::string> orders;
  for (const int n : {1, 2, 16, 77}) {
    Request request =
        Request::parse(fmt::format("conv_forward x=f16:{0}x40x32x32:nhwc w=f16:12x40x3x3:nhwc epilogue=user:affine "
                                   "prologue.scale=f32:{0}x40 prologue.shift=f32:{0}x40",
                                   n),
                       prologues());
    request.batch_invariant = true;
    Variants variants = built_in_catalogue().on(finished(request), target_of(8, 0));
    const Candidates candidates = variants.candidates(reference_figures());
    ASSERT_FALSE(candidates.ranked.empty()) << n;
    for (const Candidate& candidate : candidates.ranked) {
      const Algorithm& algorithm = *built_in_catalogue().find(candidate.choice.algorithm);
      orders.insert(variants.on(algorithm).order_of_sums(candidate.choice.config).value_or("unknown"));
    }
  }
  EXPECT_EQ(orders.size(), 1U) << testing::PrintToString(orders);
}

// Extents near 2^31, whose tiles are counted in 64 bits.
TEST(ConvTensorHaloExtents, NearTheLargestCompile) {
  for (const char* line : {"conv_forward x=f16:1x8x1x2147483647:nhwc w=f16:8x8x1x3:nhwc pad=0,1",
                           "conv_forward x=f16:1x8x2147483647x1:nhwc w=f16:8x8x3x1:nhwc pad=1,0"}) {
    const Request request = Request::parse(line);
    const TestDevice& device = TestDevice::get();
    const BoundAlgorithm bound = built_in_catalogue().find("conv_tensor_halo")->on(request, device.target);
    const Program program = bound.program(built_in_catalogue().library(), bound.first_legal().value());
    EXPECT_NO_THROW((void)device.load(program, device.target, {"x", "w", "y"}));
  }
}

// Chunks are those of conv_tensor, in its order.
TEST(ConvTensorHaloSums, AreThoseOfConvTensor) {
  const Request request = Request::parse("conv_forward x=f16:1x72x9x9:nhwc w=f16:64x72x3x3:nhwc pad=1");
  const auto order = [&](const std::string& algorithm, const Config& config) {
    return built_in_catalogue().find(algorithm)->on(request, target_of(8, 0)).order_of_sums(config);
  };
  const auto of_halos = order("conv_tensor_halo", Config::parse("BLOCK_K=32,BLOCK_N=64,STAGES=3,TILE_P=8,TILE_Q=8,"
                                                                "WARP_M=32,WARP_N=32"));
  EXPECT_EQ(of_halos, "tensor cores, steps of 16 f16, 9 taps after each other, 32 of 72 channels at a time");
  EXPECT_EQ(of_halos, order("conv_tensor", Config::parse("BLOCK_K=32,BLOCK_M=64,BLOCK_N=64,STAGES=4,WARP_M=32,"
                                                         "WARP_N=32")));
}

TEST(ConvTensorHaloRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("conv_tensor_halo", "conv_forward " + request);
  };
  EXPECT_EQ(refusal("x=f16:1x16x8x8:nhwc w=f16:16x16x3x3:nhwc pad=1"), "none");
  EXPECT_EQ(refusal("x=f16:1x16x8x8:nhwc w=f16:16x16x1x1:nhwc"), "windows have one tap");
  EXPECT_EQ(refusal("x=f16:1x16x9x9:nhwc w=f16:16x16x3x3:nhwc stride=3 dilation=1,2"), "none");
  EXPECT_EQ(refusal("x=f16:1x16x8x8:nhwc w=f16:16x16x3x2:nhwc stride=3,2"), "windows do not overlap");
  EXPECT_EQ(refusal("x=f16:1x12x8x8:nhwc w=f16:16x12x3x3:nhwc"), "channels of x do not stand in 16 bytes together");
  EXPECT_EQ(refusal("x=f16:1x16x8x8 w=f16:16x16x3x3"),
            "the summed dimension of x is not innermost, or not in pairs at 4-byte addresses");
  EXPECT_EQ(refusal("x=i8:1x16x8x8:nhwc w=i8:16x16x3x3:nhwc y=i32:1x16x6x6:nhwc"),
            "halos are of elements of 16 and 32 bits");
  EXPECT_EQ(refusal("x=f16:1x16x290x9:nhwc w=f16:16x16x3x3:nhwc dilation=128,1"),
            "windows span, or are apart, more than 256 positions of x");
  EXPECT_EQ(refusal_of("conv_backward_data_tensor_halo",
                       "conv_backward_data dy=f16:1x16x5x5:nhwc w=f16:16x16x3x3:nhwc pad=1 stride=2"),
            "elements of dx fall into classes, with taps of their own");
}

}  // namespace
}  // namespace kiln::testing_support::conv_tensor_halo_test
