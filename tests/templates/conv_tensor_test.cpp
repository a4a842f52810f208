// Convolution on tensor cores against the reference: defaults on shapes that are awkward in a few ways each, pairwise
// covers of the configurations, 64-bit offsets.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_tensor_test {
namespace {

using Names = std::vector<std::string>;

const Names all = {"conv_tensor", "conv_tensor_splitk", "conv_tensor_staged", "conv_tensor_staged_splitk"};
const Names whole_sums = {"conv_tensor", "conv_tensor_staged"};
const Names staged = {"conv_tensor_staged"};
const Names patch = {"conv_tensor_patch"};
const Names persistent = {"conv_tensor_persistent"};
const Names staged_split = {"conv_tensor_staged_splitk"};
const Names few_channels = {"conv_tensor_staged", "conv_tensor_patch"};

// Runs the algorithms `served_by` alone.
class ConvTensor : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvTensor, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    ChannelsLast, ConvTensor,
    testing::Values(
        AlgorithmCase{"PartOfAChunk",
                      "conv_forward x=bf16:2x40x9x11:nhwc w=bf16:72x40x3x3:nhwc pad=1 epilogue=bias+relu", all},
        AlgorithmCase{"OneImageOfPrimes",
                      "conv_forward x=f16:1x26x13x11:nhwc w=f16:34x26x3x3:nhwc pad=1 epilogue=bias+add alpha=any", all},
        AlgorithmCase{"OnePixel", "conv_forward x=f16:1x64x1x1:nhwc w=f16:10x64x1x1 y=f32:1x10x1x1", whole_sums},
        AlgorithmCase{"Pointwise", "conv_forward x=f16:3x8x7x5:nhwc w=f16:16x8x1x1:nhwc", whole_sums},
        AlgorithmCase{"PointwiseStride",
                      "conv_forward x=bf16:2x96x9x7:nhwc w=bf16:48x96x1x1 y=bf16:2x48x5x4:nchw stride=2", whole_sums},
        AlgorithmCase{"StrideAndDilation",
                      "conv_forward x=f16:2x24x17x19:nhwc w=f16:40x24x3x2:nhwc pad=2,1 stride=2,3 dilation=2,3", all},
        AlgorithmCase{"AsymmetricPads",
                      "conv_forward x=f16:1x16x9x7:nhwc w=f16:12x16x2x4:nhwc pad=1,3,0,2 stride=1,2 "
                      "epilogue=bias+clip beta=any",
                      all},
        AlgorithmCase{"OutputsOfSumsAlone",
                      "conv_forward x=bf16:2x40x7x9:nhwc w=bf16:34x40x2x2:nhwc pad=1 epilogue=relu+clip alpha=any",
                      all},
        AlgorithmCase{"OutputsOfSumsAloneToNchw",
                      "conv_forward x=f16:2x40x7x9:nhwc w=f16:34x40x2x2:nhwc y=f16:2x34x8x10 pad=1 epilogue=clip", all},
        AlgorithmCase{"Groups", "conv_forward x=bf16:2x96x6x7:nhwc w=bf16:72x32x3x3:nhwc groups=3 pad=1", all},
        AlgorithmCase{"GroupsInRegions",
                      "conv_forward x=f16:2x48x6x7:4800,1,400,50@4 w=f16:72x16x3x3:200,1,60,20@4 "
                      "y=f16:2x72x6x7:4000,1,600,80@2 groups=3 pad=1 epilogue=bias+add",
                      all},
        AlgorithmCase{"RegionsInBF16",
                      "conv_forward x=bf16:2x40x5x6:4800,1,400,60@8 w=bf16:24x40x3x3:400,1,132,44@8 "
                      "y=bf16:2x24x5x6:1200,40,8,1@2 pad=1",
                      all},
        AlgorithmCase{"FiltersSideBySide", "conv_forward x=f16:2x40x6x5:nhwc w=f16:48x40x3x3:1,432,144,48 pad=1", all},
        AlgorithmCase{"MirroredFilter",
                      "conv_forward x=f16:1x36x8x9:nhwc w=f16:20x36x3x2:nhwc pad=2,1 mode=convolution", all},
        AlgorithmCase{"LongFilter", "conv_forward x=f16:1x8x9x40:nhwc w=f16:16x8x5x20:nhwc pad=2,0", all},
        AlgorithmCase{"MoreRowsThanBitsInside", "conv_forward x=f16:2x8x45x5:nhwc w=f16:16x8x40x3:nhwc pad=0,1 n=?",
                      all},
        AlgorithmCase{"MoreColumnsThanBitsInsideMirrored",
                      "conv_forward x=bf16:1x16x6x77:nhwc w=bf16:16x16x2x33:nhwc pad=1,0 stride=1,3 mode=convolution",
                      all},
        AlgorithmCase{"WindowsOfWholeStridesInside", "conv_forward x=f16:3x3x64x96:nhwc w=f16:8x3x32x32:nhwc stride=32",
                      all},
        AlgorithmCase{"OneDimension", "conv_forward x=bf16:3x32x70:nwc w=bf16:24x32x5:nwc pad=2 y=bf16:3x24x70:nwc",
                      all},
        AlgorithmCase{"ThreeDimensions",
                      "conv_forward x=f16:1x16x5x6x7:ndhwc w=f16:20x16x3x2x3:ndhwc pad=1,0,1 stride=1,2,1", all},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:5x32x6x5:nhwc w=f16:24x32x3x3:nhwc pad=1 n=? epilogue=relu", all},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f16:0x32x6x5:nhwc w=f16:24x32x3x3:nhwc pad=1", whole_sums}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    AsTf32, ConvTensor,
    testing::Values(
        AlgorithmCase{"PartOfAChunk",
                      "conv_forward x=f32:2x40x9x11:nhwc w=f32:72x40x3x3:nhwc pad=1 epilogue=bias+relu tf32", all},
        AlgorithmCase{"FirstLayer",
                      "conv_forward x=f32:1x3x19x21:nhwc w=f32:16x3x7x7:nhwc pad=3 stride=2 epilogue=bias tf32",
                      {"conv_tensor", "conv_tensor_splitk", "conv_tensor_staged", "conv_tensor_patch"}},
        AlgorithmCase{"OnePixel", "conv_forward x=f32:1x37x1x1:nhwc w=f32:11x37x1x1 y=bf16:1x11x1x1 tf32", whole_sums},
        AlgorithmCase{"StrideAndDilation",
                      "conv_forward x=f32:2x23x17x19:nhwc w=f32:41x23x3x2:nhwc pad=2,1 stride=2,3 dilation=2,3 "
                      "alpha=any beta=any tf32",
                      all},
        AlgorithmCase{"GroupsInRegions",
                      "conv_forward x=f32:2x51x6x7:4800,1,400,55 w=f32:69x17x3x3:200,1,60,20 "
                      "y=f32:2x69x6x7:4000,1,600,80 groups=3 pad=1 epilogue=bias+add tf32",
                      all},
        AlgorithmCase{"FiltersSideBySide", "conv_forward x=f32:2x40x6x5:nhwc w=f32:43x40x3x3:1,400,134,44 pad=1 tf32",
                      all},
        AlgorithmCase{"ThreeDimensions",
                      "conv_forward x=f32:1x13x5x6x7:ndhwc w=f32:20x13x3x2x3:ndhwc pad=1,0,1 stride=1,2,1 n=? tf32",
                      all},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f32:0x32x6x5:nhwc w=f32:24x32x3x3:nhwc pad=1 tf32", whole_sums},
        AlgorithmCase{"ChannelsFirst",
                      "conv_forward x=f32:2x5x11x13 w=f32:7x5x3x3 pad=1 epilogue=bias+add beta=any tf32", staged},
        AlgorithmCase{"RegionsOfAnyLayout",
                      "conv_forward x=f32:2x6x7x5:400,64,9,1 w=f32:10x3x3x2:30,8,2,1 y=f32:2x10x3x4:400,37,8,2 "
                      "groups=2 stride=2,1 tf32",
                      staged}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    AnyLayout, ConvTensor,
    testing::Values(
        AlgorithmCase{"FirstLayer", "conv_forward x=f16:1x3x19x21 w=f16:16x3x7x7 pad=3 stride=2", few_channels},
        AlgorithmCase{"FirstLayerChannelsLast",
                      "conv_forward x=bf16:1x3x19x21:nhwc w=bf16:16x3x7x7:nhwc pad=3 stride=2 epilogue=bias+relu",
                      few_channels},
        AlgorithmCase{"Primes", "conv_forward x=bf16:2x5x11x13 w=bf16:7x5x3x3 pad=1 epilogue=bias+add beta=any",
                      staged},
        AlgorithmCase{"Pointwise", "conv_forward x=f16:2x20x4x8 w=f16:33x20x1x1 epilogue=relu", staged},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x6x7x5:400,64,9,1@2 w=f16:10x3x3x2:30,8,2,1@2 "
                      "y=f16:2x10x3x4:400,37,8,2@2 groups=2 stride=2,1",
                      staged},
        AlgorithmCase{"RegionsInBF16",
                      "conv_forward x=bf16:2x12x7x5:900,64,9,1@2 w=bf16:10x12x3x2:90,7,2,1@2 pad=1 "
                      "y=bf16:2x10x7x6:900,80,8,1@2",
                      staged},
        AlgorithmCase{"LongDepth", "conv_forward x=f16:1x61x5x7 w=f16:37x61x3x3 pad=1 epilogue=bias+relu n=?",
                      staged_split},
        AlgorithmCase{"LongDepthInBF16",
                      "conv_forward x=bf16:2x53x5x4 w=bf16:19x53x3x2 stride=1,2 groups=1 alpha=any beta=any",
                      staged_split},
        AlgorithmCase{"LongDepthInRegions",
                      "conv_forward x=bf16:2x40x6x5:4000,64,9,1@2 w=bf16:10x40x3x2:300,7,2,1@2 pad=1 "
                      "y=bf16:2x10x6x6:900,80,8,1@2",
                      staged_split},
        AlgorithmCase{"LongDepthAsTf32InRegions",
                      "conv_forward x=f32:1x40x6x5:4000,64,9,1 w=f32:10x40x3x2:300,7,2,1 pad=1 "
                      "y=f32:1x10x6x6:900,80,8,1 tf32",
                      staged_split}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    FewChannels, ConvTensor,
    testing::Values(
        AlgorithmCase{"OneChannel", "conv_forward x=f16:2x1x11x14 w=f16:6x1x5x5 pad=2 epilogue=bias+relu", patch},
        AlgorithmCase{"TwoChannels", "conv_forward x=bf16:2x2x9x13:nhwc w=bf16:20x2x3x3:nhwc stride=1,2", patch},
        AlgorithmCase{
            "ThreeChannelsUnitStride",
            "conv_forward x=f16:2x3x13x19:nhwc w=f16:37x3x3x3:nhwc pad=1 epilogue=bias+add alpha=any beta=any", patch},
        AlgorithmCase{"FourChannels", "conv_forward x=bf16:1x4x17x18:nhwc w=bf16:24x4x3x3:nhwc pad=1 stride=2", patch},
        AlgorithmCase{"FiveChannels", "conv_forward x=bf16:1x5x10x9 w=bf16:9x5x3x4 pad=1", patch},
        AlgorithmCase{"GroupsOf32Channels",
                      "conv_forward x=f16:2x96x9x7:nhwc w=f16:60x32x3x3:nhwc groups=3 pad=1 stride=1,2 epilogue=bias",
                      patch},
        AlgorithmCase{"GroupsOf32ChannelsInRegions",
                      "conv_forward x=bf16:2x64x6x9:7000,1,1000,80@16 w=bf16:24x32x2x3:nhwc "
                      "y=bf16:2x24x7x9:2000,1,260,27 groups=2 pad=1",
                      patch},
        AlgorithmCase{"EightChannelsLastAsTf32",
                      "conv_forward x=f32:1x8x10x13:nhwc w=f32:20x8x3x3:nhwc pad=1 stride=2 tf32", patch},
        AlgorithmCase{"SixteenChannelsLastAsTf32",
                      "conv_forward x=f32:1x32x9x10:nhwc w=f32:20x16x3x3:nhwc groups=2 pad=1 tf32", patch},
        AlgorithmCase{"GroupsOf16Channels", "conv_forward x=bf16:1x32x7x10 w=bf16:34x16x3x5 groups=2 pad=1,2", patch},
        AlgorithmCase{"SixteenChannels", "conv_forward x=f16:1x16x6x7:nhwc w=f16:16x16x3x3:nhwc pad=1", patch},
        AlgorithmCase{"WideWindowsFarApart", "conv_forward x=f16:1x3x37x41 w=f16:17x3x11x11 pad=2 stride=4", patch},
        AlgorithmCase{"GapsBetweenWindows", "conv_forward x=f16:2x3x13x17:nhwc w=f16:8x3x2x2:nhwc stride=3", patch},
        AlgorithmCase{"LargerThanTheImage", "conv_forward x=f16:3x3x4x3 w=f16:8x3x7x7 pad=3", patch},
        AlgorithmCase{"AsymmetricPads",
                      "conv_forward x=bf16:1x3x9x12:nhwc w=bf16:12x3x2x4:nhwc pad=1,3,0,2 epilogue=bias+clip", patch},
        AlgorithmCase{"RowsApart", "conv_forward x=f16:1x3x15x12 w=f16:10x3x3x3 pad=2,1 dilation=2,1", patch},
        AlgorithmCase{"MirroredFilter", "conv_forward x=f16:1x3x8x9:nhwc w=f16:20x3x3x2:nhwc pad=2,1 mode=convolution",
                      patch},
        AlgorithmCase{"Groups", "conv_forward x=bf16:2x6x7x8 w=bf16:21x2x3x3 groups=3 pad=1 epilogue=bias", patch},
        AlgorithmCase{"FiltersSideBySide", "conv_forward x=f16:2x3x6x9:nhwc w=f16:48x3x3x3:1,432,144,48 pad=1", patch},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x3x9x11:400,130,12,1@2 w=f16:10x3x3x2:30,9,3,1@2 "
                      "y=f16:2x10x7x10:900,82,11,1@2 epilogue=add",
                      patch},
        AlgorithmCase{"RegionsInBF16",
                      "conv_forward x=bf16:2x3x9x11:400,130,12,1@2 w=bf16:10x3x3x2:30,9,3,1@2 "
                      "y=bf16:2x10x7x10:900,1,120,12@2 epilogue=bias",
                      patch},
        AlgorithmCase{"ToF32InNchw", "conv_forward x=f16:1x3x12x16:nhwc w=f16:9x3x3x3:nhwc pad=1 y=f32:1x9x12x16",
                      patch},
        AlgorithmCase{"OneDimension", "conv_forward x=bf16:3x2x70:nwc w=bf16:24x2x9:nwc pad=4 stride=2", patch},
        AlgorithmCase{"ThreeDimensions",
                      "conv_forward x=f16:1x3x5x9x10:ndhwc w=f16:12x3x3x5x5:ndhwc pad=1,2,2 stride=1,2,2 "
                      "dilation=2,1,1",
                      patch},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:5x3x6x5:nhwc w=f16:24x3x3x3:nhwc pad=1 n=? epilogue=relu", patch},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f16:0x3x6x5:nhwc w=f16:24x3x3x3:nhwc pad=1", patch},
        AlgorithmCase{"AsTf32", "conv_forward x=f32:2x3x11x13 w=f32:7x3x3x3 pad=1 epilogue=bias+add beta=any tf32",
                      patch},
        AlgorithmCase{"AsTf32InRegions",
                      "conv_forward x=f32:2x5x9x7:400,1,44,6 w=f32:10x5x3x2:40,1,12,6 y=f32:2x10x4x6:400,1,64,10 "
                      "stride=2,1 tf32",
                      patch}),
    case_name);

// Blocks of several tiles: rows that end within a tile of a block, and before one.
INSTANTIATE_TEST_SUITE_P(
    ShortDepths, ConvTensor,
    testing::Values(
        AlgorithmCase{"Pointwise", "conv_forward x=bf16:3x40x9x11:nhwc w=bf16:72x40x1x1:nhwc epilogue=bias+relu",
                      persistent},
        AlgorithmCase{"SeveralChunksOfSeveralTaps",
                      "conv_forward x=f16:2x24x11x13:nhwc w=f16:34x24x2x3:nhwc pad=1 stride=1,2 epilogue=bias+add "
                      "alpha=any beta=any",
                      persistent},
        AlgorithmCase{"FiltersAsLargeAsTheirStride",
                      "conv_forward x=bf16:2x32x18x22:nhwc w=bf16:40x32x2x2:nhwc stride=2", persistent},
        AlgorithmCase{"Groups", "conv_forward x=f16:2x96x9x7:nhwc w=f16:72x32x1x1:nhwc groups=3 pad=1", persistent},
        AlgorithmCase{"GroupsInRegions",
                      "conv_forward x=bf16:2x48x6x7:4800,1,400,50@4 w=bf16:72x16x1x1:20,1,20,20@4 "
                      "y=bf16:2x72x6x7:4000,1,600,80@2 groups=3 epilogue=bias+add",
                      persistent},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x24x7x8:2200,1,250,26@4 w=f16:20x24x1x2:60,1,50,26@4 "
                      "y=f16:2x20x7x7:1300,1,170,22@2 epilogue=relu",
                      persistent},
        AlgorithmCase{"RegionsAsTf32",
                      "conv_forward x=f32:2x17x7x8:2200,1,250,21 w=f32:20x17x1x1:19,1,1,1 y=f32:2x20x7x8:1300,1,170,21 "
                      "beta=any tf32",
                      persistent},
        AlgorithmCase{"ToNchw", "conv_forward x=f16:3x16x7x9:nhwc w=f16:20x16x1x1:nhwc y=f32:3x20x7x9", persistent},
        AlgorithmCase{"ThreeDimensions",
                      "conv_forward x=f16:2x16x3x6x7:ndhwc w=f16:20x16x2x1x2:ndhwc pad=1,0,1 stride=1,2,1", persistent},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:7x32x6x5:nhwc w=f16:24x32x1x1:nhwc n=? epilogue=relu",
                      persistent},
        AlgorithmCase{"AsTf32", "conv_forward x=f32:2x19x9x11:nhwc w=f32:35x19x1x3:nhwc pad=0,1 epilogue=bias tf32",
                      persistent}),
    case_name);

// Tensor cores of 7.5 take half the depth in an instruction.
TEST(ConvTensorOnTuring, MatchesTheReference) {
  const Target turing = target_of(7, 5);
  if (TestDevice::find(turing.arch) == nullptr) GTEST_SKIP() << "no sm_75 among the devices of this driver";
  const Catalogue& catalogue = built_in_catalogue();
  const Request request = Request::parse("conv_forward x=f16:2x40x9x11:nhwc w=f16:72x40x3x3:nhwc pad=1 epilogue=bias");
  const BoundAlgorithm bound = catalogue.find("conv_tensor_staged")->on(request, turing);
  ASSERT_EQ(bound.refusal(), std::nullopt);
  VariantChecker checker(catalogue, request, thorough(), turing);
  EXPECT_TRUE(checker.matches_reference({"conv_tensor_staged", bound.first_legal().value()}));
  EXPECT_EQ(catalogue.find("conv_tensor")->on(request, turing).refusal(), "asynchronous copies need sm_80");
  const BoundAlgorithm split = catalogue.find("conv_tensor_staged_splitk")->on(request, turing);
  EXPECT_TRUE(checker.matches_reference({"conv_tensor_staged_splitk", split.first_legal().value()}));
  const Request in_bf16 = Request::parse("conv_forward x=bf16:2x40x9x11:nhwc w=bf16:72x40x3x3:nhwc pad=1");
  EXPECT_EQ(catalogue.find("conv_tensor_staged")->on(in_bf16, turing).refusal(),
            "tensor cores multiply bf16 from sm_80 on");
  const Request in_tf32 = Request::parse("conv_forward x=f32:2x40x9x11:nhwc w=f32:72x40x3x3:nhwc pad=1 tf32");
  EXPECT_EQ(catalogue.find("conv_tensor_staged")->on(in_tf32, turing).refusal(),
            "tensor cores multiply tf32 from sm_80 on");
}

// The first tile of two, and the 33rd row begins the second; 520 bytes of the depth are too long.
TEST(ConvTensorRules, KeepPersistentBlocksToShortDepthsOfManyRows) {
  const auto refusal = [](const std::string& operands, const std::string& sizes) {
    const Request request = Request::parse("conv_forward " + operands);
    return built_in_catalogue()
        .find("conv_tensor_persistent")
        ->on(request, TestDevice::get().target)
        .refusal(Config::parse(sizes + ",BLOCK_M=32,BLOCK_N=32,STAGES=2,TILES=2,WARP_M=16,WARP_N=32"))
        .value_or("none");
  };
  const std::string wide = "BLOCK_K=64", pruned = "the depth has few chunks and the rows many tiles";
  EXPECT_EQ(refusal("x=f16:1x256x1x33:nhwc w=f16:32x256x1x1:nhwc", wide), "none");
  EXPECT_THAT(refusal("x=f16:1x256x1x32:nhwc w=f16:32x256x1x1:nhwc", wide), testing::StartsWith(pruned));
  EXPECT_THAT(refusal("x=f16:1x264x1x33:nhwc w=f16:32x264x1x1:nhwc", wide), testing::StartsWith(pruned));
  EXPECT_EQ(refusal("x=f16:1x32x1x33:nhwc w=f16:32x32x2x4:nhwc pad=1,3", "BLOCK_K=32"), "none") << "8 taps";
  EXPECT_THAT(refusal("x=f16:1x32x3x33:nhwc w=f16:32x32x3x3:nhwc pad=1", "BLOCK_K=32"), testing::StartsWith(pruned));
}

// A thread copies 64 lines of a tile of filters there: more than it has bits for.
TEST(ConvTensorRules, LeaveABitForEachLineOfFilters) {
  const BoundAlgorithm bound =
      built_in_catalogue()
          .find("conv_tensor")
          ->on(Request::parse("conv_forward x=f16:32x66x14x14:nhwc w=f16:258x66x3x3:nhwc pad=1"),
               TestDevice::get().target);
  const auto refusal = [&](const std::string& warps) {
    return bound.refusal(Config::parse("BLOCK_K=64,BLOCK_M=32,BLOCK_N=256,STAGES=3," + warps)).value_or("none");
  };
  EXPECT_THAT(refusal("WARP_M=32,WARP_N=64"), testing::StartsWith("threads tile the loads"));
  EXPECT_EQ(refusal("WARP_M=32,WARP_N=32"), "none");
}

// A run of 3 pixels of 3 channels ends within a piece of 4: what stands behind it is multiplied by zeros of the filter.
TEST(ConvTensorPatch, KeepsInfinityInItsWindows) {
  constexpr int64_t channels = 3, height = 9, width = 20, filters = 4, row = 5, column = 11;
  const TestDevice& device = TestDevice::get();
  const Request request = Request::parse("conv_forward x=f32:1x3x9x20 w=f32:4x3x3x3 pad=1 tf32");
  const BoundAlgorithm bound = built_in_catalogue().find("conv_tensor_patch")->on(request, device.target);
  const Program program =
      built_in_catalogue().program(request, device.target, {"conv_tensor_patch", bound.first_legal().value()});
  const execution::Executable executable = device.load(program, device.target, {"x", "w", "y"});
  const device::Buffer w = device::upload(device.context, std::vector<float>(filters * channels * 9, 0.5f));
  const auto run = [&](const std::vector<float>& x) {
    const device::Buffer on_x = device::upload(device.context, x);
    const device::Buffer y(device.context, filters * height * width * sizeof(float));
    executable.run(nullptr, std::vector{on_x.address(), w.address(), y.address()}, {}, 1, 0);
    return device::download<float>(*device.context, y.address(), filters * height * width);
  };
  std::vector<float> x(channels * height * width, 1.0f);
  const std::vector<float> before = run(x);
  for (int64_t channel = 0; channel < channels; ++channel) {
    x.assign(x.size(), 1.0f);
    x[static_cast<size_t>((channel * height + row) * width + column)] = std::numeric_limits<float>::infinity();
    const std::vector<float> after = run(x);
    for (int64_t i = 0; i < filters * height * width; ++i) {
      const int64_t p = i / width % height, q = i % width;
      const bool in_window = std::abs(p - row) <= 1 && std::abs(q - column) <= 1;
      const auto number = static_cast<size_t>(i);
      EXPECT_EQ(after[number], in_window ? std::numeric_limits<float>::infinity() : before[number]) << p << "," << q;
    }
  }
}

TEST(ConvTensorRefusals, NameTheReason) {
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f32:1x8x5x5:nhwc w=f32:8x8x3x3:nhwc"),
            "tensor cores round f32 to tf32, which the request does not permit");
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x8x5x5:nhwc w=bf16:8x8x3x3:nhwc"),
            "tensor cores multiply f16 by f16, bf16 by bf16 and, with tf32, f32 by f32");
  const std::string apart = "the summed dimension of x is not innermost, or not in pairs at 4-byte addresses";
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x8x5x5 w=f16:8x8x3x3"), apart);
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x7x5x5:nhwc w=f16:8x7x3x3:nhwc"), apart);
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x8x5x40:nhwc w=f16:8x8x3x30:nhwc pad=0,1"),
            "windows reach beyond x, and the filter has more than 31 planes, rows and columns there");
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x8x5x40:nhwc w=f16:8x8x3x30:nhwc"), "none");
  EXPECT_EQ(refusal_of("conv_tensor", "conv_forward x=f16:1x8x1200:nwc w=f16:8x8x1101:nwc"),
            "the filter has more than 1100 taps");
  EXPECT_EQ(refusal_of("conv_tensor_staged", "conv_forward x=f16:1x7x5x40 w=f16:8x7x3x30"), "none");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x17x5x5 w=f16:8x17x3x3"),
            "x has more than 16 channels, in one group");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x34x5x5 w=f16:8x17x3x3 groups=2"), "none");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x66x5x5 w=f16:8x33x3x3 groups=2"),
            "a group has more than 32 channels of x");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x3x9x9 w=f16:8x3x3x3 dilation=2"),
            "dilation keeps the taps of a row apart");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x3x99x99 w=f16:8x3x3x3 dilation=32,1"),
            "windows span, or are apart, more than 64 positions of x");
  EXPECT_EQ(refusal_of("conv_tensor_patch", "conv_forward x=f16:1x8x29x29 w=f16:8x8x17x17"),
            "a filter has too many elements to unroll");
}

INSTANTIATE_TEST_SUITE_P(
    ConvTensorConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_tensor", "conv_forward x=f16:3x72x9x7:nhwc w=f16:136x72x3x3:nhwc pad=1 epilogue=bias+add"),
        cover("conv_tensor",
              "conv_forward x=bf16:2x24x8x9:2200,1,250,26@4 w=bf16:36x12x2x3:nhwc y=bf16:2x36x7x5:nchw groups=2 "
              "pad=0,1 stride=1,2"),
        cover("conv_tensor_splitk", "conv_forward x=f16:1x136x5x7:nhwc w=f16:68x136x3x3:nhwc pad=1 epilogue=bias+relu"),
        cover("conv_tensor_splitk",
              "conv_forward x=bf16:2x66x3x5:nhwc w=bf16:40x66x2x2:nhwc y=f32:2x40x2x4:nchw beta=any"),
        cover("conv_tensor_staged", "conv_forward x=f16:2x40x9x8 w=f16:136x40x3x3 pad=1 epilogue=bias+add"),
        cover("conv_tensor_staged",
              "conv_forward x=bf16:2x36x7x9:nhwc w=bf16:40x36x1x1 y=bf16:2x40x7x9:nhwc epilogue=relu"),
        cover("conv_tensor_staged_splitk", "conv_forward x=f16:1x137x5x7 w=f16:68x137x3x3 pad=1 epilogue=bias+relu"),
        cover("conv_tensor_staged_splitk",
              "conv_forward x=bf16:2x66x3x5:nhwc w=bf16:40x66x2x2 y=f32:2x40x2x4:nhwc beta=any"),
        cover("conv_tensor_persistent", "conv_forward x=f16:5x72x17x13:nhwc w=f16:136x72x1x1:nhwc epilogue=bias+add"),
        cover("conv_tensor_persistent",
              "conv_forward x=bf16:3x24x19x18:nhwc w=bf16:36x12x2x3:nhwc y=bf16:3x36x20x9:nchw groups=2 pad=1 "
              "stride=1,2"),
        cover("conv_tensor_patch",
              "conv_forward x=f16:3x3x35x67:nhwc w=f16:136x3x3x3:nhwc pad=1 stride=2,1 epilogue=bias"),
        cover("conv_tensor_patch", "conv_forward x=f32:2x3x33x65 w=f32:40x3x5x4 pad=2 tf32"),
        cover("conv_tensor", "conv_forward x=f32:3x43x9x7:nhwc w=f32:136x43x3x3:1,5900,1960,136 pad=1 tf32"),
        cover("conv_tensor_staged", "conv_forward x=f32:2x20x9x8 w=f32:72x20x3x3 pad=1 epilogue=bias tf32")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvTensorWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"conv_tensor", "conv_tensor_splitk", "conv_tensor_staged", "conv_tensor_staged_splitk"},
                         "conv_forward x=f16:2x64x7x6:nhwc w=f16:16x64x3x3:nhwc pad=1 stride=2,1 "
                         "epilogue=bias+add+relu alpha=any beta=any"),
                    wide({"conv_tensor_persistent"},
                         "conv_forward x=f16:3x64x7x6:nhwc w=f16:16x64x1x1:nhwc pad=1 n=? "
                         "epilogue=bias+add+relu alpha=any beta=any"),
                    wide({"conv_tensor_patch"},
                         "conv_forward x=f16:2x3x9x11:nhwc w=f16:16x3x5x3 pad=1 stride=2,1 n=? "
                         "epilogue=bias+add beta=any"),
                    wide({"conv_tensor_staged"}, "conv_forward x=bf16:2x24x4x6 w=bf16:12x24x1x1 n=?")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_tensor_test
