// Gradients of convolutions on tensor cores against the reference: defaults on shapes that are awkward in a few ways
// each, pairwise covers of the configurations, 64-bit offsets.
#include <gtest/gtest.h>

#include <limits>

#include "algorithm_cases.h"
#include "kiln/device/memory.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_gradients_tensor_test {
namespace {

using Names = std::vector<std::string>;

// Runs the algorithms `served_by` alone.
class ConvGradientsTensor : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvGradientsTensor, MatchTheReference) {
  expect_some_defaults_match(GetParam());
}

const Names data = {"conv_backward_data_tensor", "conv_backward_data_tensor_splitk", "conv_backward_data_tensor_staged",
                    "conv_backward_data_tensor_staged_splitk"};
const Names whole_data = {"conv_backward_data_tensor", "conv_backward_data_tensor_staged"};
const Names staged_data = {"conv_backward_data_tensor_staged"};
const Names staged_split_data = {"conv_backward_data_tensor_staged_splitk"};
const Names persistent_data = {"conv_backward_data_tensor_persistent"};

INSTANTIATE_TEST_SUITE_P(
    ByInput, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"PartOfAChunk",
                      "conv_backward_data dy=bf16:2x40x9x11:nhwc w=bf16:40x72x3x3:nhwc pad=1 epilogue=bias+relu", data},
        AlgorithmCase{"ClassesOfAStride",
                      "conv_backward_data dy=f16:2x40x5x6:nhwc w=f16:40x16x3x3:nhwc dx=f16:2x16x10x11:nhwc pad=1 "
                      "stride=2 alpha=any beta=any",
                      data},
        AlgorithmCase{"StrideBeyondTheFilter",
                      "conv_backward_data dy=f16:2x24x4x3:nhwc w=f16:24x20x1x2:nhwc dx=f16:2x20x10x9:nhwc stride=3",
                      whole_data},
        AlgorithmCase{"Dilation",
                      "conv_backward_data dy=bf16:1x48x7x6:nhwc w=bf16:48x24x3x2:nhwc pad=1 dilation=3,2 stride=1,2",
                      data},
        AlgorithmCase{"Groups",
                      "conv_backward_data dy=f16:2x96x6x7:nhwc w=f16:96x24x3x3:nhwc groups=2 pad=1 epilogue=bias+add",
                      data},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f16:2x40x6x7:4800,1,400,50@4 w=f16:40x16x3x3:200,1,60,20@4 "
                      "dx=f16:2x16x6x7:4000,1,600,80@2 pad=1",
                      data},
        AlgorithmCase{"RegionsInBF16",
                      "conv_backward_data dy=bf16:2x40x6x7:4800,1,400,50@4 w=bf16:40x16x3x3:200,1,60,20@4 "
                      "dx=bf16:2x16x6x7:1200,64,9,1@2 pad=1",
                      data},
        AlgorithmCase{"ThreeDimensions",
                      "conv_backward_data dy=f16:1x20x5x6x7:ndhwc w=f16:20x16x3x2x3:ndhwc pad=1,0,1 stride=1,2,1",
                      data},
        AlgorithmCase{"MirroredInThreeDimensions",
                      "conv_backward_data dy=f16:1x24x5x6x7:ndhwc w=f16:24x16x3x2x3:ndhwc pad=1,0,1 mode=convolution",
                      data},
        AlgorithmCase{"AnyBatch", "conv_backward_data dy=f16:5x32x6x5:nhwc w=f16:32x24x3x3:nhwc pad=1 n=?", data},
        AlgorithmCase{"ChannelsFirst",
                      "conv_backward_data dy=f16:2x20x5x6 w=f16:20x5x3x2 groups=2 stride=1,2 epilogue=bias",
                      staged_data},
        AlgorithmCase{"RegionsOfAnyLayout",
                      "conv_backward_data dy=bf16:2x9x5x6:400,41,8,1@2 w=bf16:9x5x3x2:40,7,2,1 pad=1 "
                      "dx=bf16:2x5x5x5:300,50,9,1@2",
                      staged_data},
        AlgorithmCase{"RegionsOfAnyLayoutInF16",
                      "conv_backward_data dy=f16:2x9x5x6:400,41,8,1@2 w=f16:9x5x3x2:40,7,2,1 pad=1 "
                      "dx=f16:2x5x5x5:300,50,9,1@2",
                      staged_data},
        AlgorithmCase{"LongDepthInFourClasses",
                      "conv_backward_data dy=f16:1x137x5x4 w=f16:137x40x3x3 dx=f16:1x40x9x8 pad=1 stride=2 "
                      "epilogue=bias",
                      staged_split_data},
        AlgorithmCase{"LongDepthInRegions",
                      "conv_backward_data dy=bf16:2x59x5x6:3000,41,8,1@2 w=bf16:59x5x3x2:40,7,2,1 pad=1 "
                      "dx=bf16:2x5x5x5:300,50,9,1@2",
                      staged_split_data},
        AlgorithmCase{"LongDepthInRegionsOfF16",
                      "conv_backward_data dy=f16:2x59x5x6:3000,41,8,1@2 w=f16:59x5x3x2:40,7,2,1 pad=1 "
                      "dx=f16:2x5x5x5:300,50,9,1@2 n=?",
                      staged_split_data},
        AlgorithmCase{"LongDepthInRegionsAsTf32",
                      "conv_backward_data dy=f32:2x59x5x6:3000,41,8,1 w=f32:59x5x3x2:40,7,2,1 pad=1 "
                      "dx=f32:2x5x5x5:300,50,9,1 tf32",
                      staged_split_data}),
    case_name);

// Blocks of several tiles; with a stride, those of some classes have one tap, and of others none.
INSTANTIATE_TEST_SUITE_P(
    ByInputOfShortDepths, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"Pointwise",
                      "conv_backward_data dy=bf16:3x40x9x11:nhwc w=bf16:40x72x1x1:nhwc dx=bf16:3x72x9x11:nhwc",
                      persistent_data},
        AlgorithmCase{"PointwiseStride",
                      "conv_backward_data dy=f16:3x40x9x7:nhwc w=f16:40x24x1x1:nhwc dx=f16:3x24x18x13:nhwc stride=2 "
                      "alpha=any beta=any",
                      persistent_data},
        AlgorithmCase{"ClassesOfAStride",
                      "conv_backward_data dy=f16:3x24x7x8:nhwc w=f16:24x18x3x3:nhwc dx=f16:3x18x14x15:nhwc pad=1 "
                      "stride=2 epilogue=bias",
                      persistent_data},
        AlgorithmCase{"GroupsInRegions",
                      "conv_backward_data dy=f16:2x48x6x7:4800,1,400,50@4 w=f16:48x16x1x1:20,1,20,20@4 "
                      "dx=f16:2x32x6x7:4000,1,600,80@2 groups=2",
                      persistent_data},
        AlgorithmCase{"RegionsInBF16",
                      "conv_backward_data dy=bf16:2x24x7x8:2200,1,250,26@4 w=bf16:24x20x1x1:22,1,22,22@4 "
                      "dx=bf16:2x20x7x8:1300,1,170,20@2",
                      persistent_data},
        AlgorithmCase{"AnyBatch", "conv_backward_data dy=f16:5x32x6x5:nhwc w=f16:32x24x1x2:nhwc n=?", persistent_data},
        AlgorithmCase{"AsTf32", "conv_backward_data dy=f32:2x33x6x7:nhwc w=f32:33x20x1x1:nhwc tf32", persistent_data}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByInputAsTf32, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"ClassesOfAStride",
                      "conv_backward_data dy=f32:2x40x5x6:nhwc w=f32:40x17x3x3:nhwc dx=f32:2x17x10x11:nhwc pad=1 "
                      "stride=2 alpha=any beta=any tf32",
                      data},
        AlgorithmCase{"Groups",
                      "conv_backward_data dy=f32:2x94x6x7:nhwc w=f32:94x23x3x3:nhwc groups=2 pad=1 epilogue=bias+add "
                      "tf32",
                      data},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f32:2x43x6x7:4800,1,400,50 w=f32:43x16x3x3:200,1,60,20 "
                      "dx=f32:2x16x6x7:4000,1,600,80 pad=2 dilation=2 n=? tf32",
                      data},
        AlgorithmCase{"ChannelsFirst",
                      "conv_backward_data dy=f32:2x20x5x6 w=f32:20x5x3x2 groups=2 stride=1,2 epilogue=bias tf32",
                      staged_data}),
    case_name);

const Names filter = {"conv_backward_filter_tensor", "conv_backward_filter_tensor_splitk",
                      "conv_backward_filter_tensor_staged", "conv_backward_filter_tensor_staged_splitk"};
const Names staged_filter = {"conv_backward_filter_tensor_staged", "conv_backward_filter_tensor_staged_splitk"};

INSTANTIATE_TEST_SUITE_P(
    ByFilter, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"PartOfAChunk",
                      "conv_backward_filter x=bf16:2x40x9x11:nhwc dy=bf16:2x72x9x11:nhwc dw=bf16:72x40x3x3:nhwc pad=1",
                      filter},
        AlgorithmCase{"Stride",
                      "conv_backward_filter x=f16:9x16x9x11:nhwc dy=f16:9x24x5x6:nhwc dw=f32:24x16x3x3:nhwc pad=1 "
                      "stride=2 alpha=any beta=any",
                      filter},
        AlgorithmCase{"Dilation",
                      "conv_backward_filter x=f16:7x26x8x9:nhwc dy=f16:7x34x6x7:nhwc dw=f16:34x26x2x2:nhwc dilation=2",
                      filter},
        AlgorithmCase{"Pointwise", "conv_backward_filter x=bf16:8x48x4x4:nhwc dy=bf16:8x64x4x4:nhwc dw=f32:64x48x1x1",
                      filter},
        AlgorithmCase{"Groups",
                      "conv_backward_filter x=f16:4x48x6x7:nhwc dy=f16:4x24x6x7:nhwc dw=f16:24x16x3x3:nhwc groups=3 "
                      "pad=1",
                      filter},
        AlgorithmCase{"MirroredFilter",
                      "conv_backward_filter x=f16:4x16x8x9:nhwc dy=f16:4x20x10x10:nhwc dw=f16:20x16x3x2:nhwc pad=2,1 "
                      "mode=convolution",
                      filter},
        AlgorithmCase{"Regions",
                      "conv_backward_filter x=f16:3x24x6x7:4800,1,400,50@4 dy=f16:3x16x6x7:4000,1,600,80@4 "
                      "dw=f16:16x24x3x3:400,16,5,1@2 pad=1",
                      filter},
        AlgorithmCase{"RegionsInBF16",
                      "conv_backward_filter x=bf16:3x24x6x7:4800,1,400,50@4 dy=bf16:3x16x6x7:4000,1,600,80@4 "
                      "dw=bf16:16x24x3x3:400,16,5,1@2 pad=1",
                      filter},
        AlgorithmCase{"ThreeDimensions",
                      "conv_backward_filter x=f16:2x8x5x6x7:ndhwc dy=f16:2x16x5x5x7:ndhwc dw=f32:16x8x3x2x3:ndhwc "
                      "pad=1,0,1",
                      filter},
        AlgorithmCase{"ChannelsFirst",
                      "conv_backward_filter x=f16:6x6x9x11 dy=f16:6x10x5x6 dw=f16:10x3x3x3 pad=1 stride=2 groups=2",
                      staged_filter},
        AlgorithmCase{"RegionsOfAnyLayout",
                      "conv_backward_filter x=bf16:6x5x7x8:400,64,9,1@2 dy=bf16:6x7x7x8:600,80,9,1@2 "
                      "dw=bf16:7x5x3x3:60,11,3,1@2 pad=1",
                      staged_filter},
        AlgorithmCase{"RegionsOfAnyLayoutInF16",
                      "conv_backward_filter x=f16:6x5x7x8:400,64,9,1@2 dy=f16:6x7x7x8:600,80,9,1@2 "
                      "dw=f16:7x5x3x3:60,11,3,1@2 pad=1",
                      staged_filter}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByFilterAsTf32, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"Stride",
                      "conv_backward_filter x=f32:9x16x9x11:nhwc dy=f32:9x23x5x6:nhwc dw=f32:23x16x3x3:nhwc pad=1 "
                      "stride=2 alpha=any beta=any tf32",
                      filter},
        AlgorithmCase{"Groups",
                      "conv_backward_filter x=f32:4x51x6x7:nhwc dy=f32:4x21x6x7:nhwc dw=f32:21x17x3x3:nhwc groups=3 "
                      "pad=1 tf32",
                      filter},
        AlgorithmCase{"Regions",
                      "conv_backward_filter x=f32:3x24x6x7:4800,1,400,50 dy=f32:3x13x6x7:4000,1,600,80 "
                      "dw=bf16:13x24x3x3:400,16,5,1 pad=2 dilation=2 tf32",
                      filter},
        AlgorithmCase{"ChannelsFirst",
                      "conv_backward_filter x=f32:6x6x9x11 dy=f32:6x10x5x6 dw=f32:10x3x3x3 pad=1 stride=2 groups=2 "
                      "tf32",
                      staged_filter}),
    case_name);

const Names data_patch = {"conv_backward_data_tensor_patch"};

INSTANTIATE_TEST_SUITE_P(
    ByInputOfFewChannels, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"OneChannel", "conv_backward_data dy=f16:2x1x11x14 w=f16:1x6x5x5 pad=2 epilogue=bias+relu",
                      data_patch},
        AlgorithmCase{"ThreeChannels",
                      "conv_backward_data dy=bf16:2x3x13x19:nhwc w=bf16:3x37x3x3:nhwc pad=1 epilogue=bias+add "
                      "alpha=any beta=any",
                      data_patch},
        AlgorithmCase{"FiveChannelsWithoutPadding", "conv_backward_data dy=bf16:1x5x10x9 w=bf16:5x9x3x4", data_patch},
        AlgorithmCase{"MorePaddingThanWindows",
                      "conv_backward_data dy=f16:1x4x12x11:nhwc w=f16:4x20x3x3:nhwc dx=f16:1x20x8x7:nhwc pad=3",
                      data_patch},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_data dy=f16:1x8x9x14:nhwc w=f16:8x12x2x4:nhwc dx=f16:1x12x9x12:nhwc pad=1,3,0,2",
                      data_patch},
        AlgorithmCase{"GroupsOfTwoChannels",
                      "conv_backward_data dy=f16:2x12x9x11:nhwc w=f16:12x2x3x3:nhwc groups=6 pad=1", data_patch},
        AlgorithmCase{"GroupsOfFourToTen",
                      "conv_backward_data dy=bf16:2x12x7x8 w=bf16:12x10x3x3 groups=3 pad=1 epilogue=bias", data_patch},
        AlgorithmCase{
            "GroupsOf32Channels",
            "conv_backward_data dy=f16:2x64x9x7:nhwc w=f16:64x20x3x3:nhwc dx=f16:2x40x9x7:nhwc groups=2 pad=1",
            data_patch},
        AlgorithmCase{"GroupsOf16ChannelsInTf32",
                      "conv_backward_data dy=f32:2x32x7x10 w=f32:32x9x3x5 dx=f32:2x18x7x10 groups=2 pad=1,2 tf32",
                      data_patch},
        AlgorithmCase{"RowsApart", "conv_backward_data dy=f16:1x3x15x12 w=f16:3x10x3x3 pad=2,1 dilation=2,1",
                      data_patch},
        AlgorithmCase{"MirroredFilter",
                      "conv_backward_data dy=f16:1x3x10x10:nhwc w=f16:3x20x3x2:nhwc dx=f16:1x20x8x9:nhwc pad=2,1 "
                      "mode=convolution",
                      data_patch},
        AlgorithmCase{"PhasesOfAStride", "conv_backward_data dy=f16:2x12x5:nwc w=f16:12x1x18 dx=f16:2x1x54 stride=9",
                      data_patch},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f16:2x10x7x10:900,82,11,1@2 w=f16:10x3x3x2:30,9,3,1@2 "
                      "dx=f16:2x3x9x11:400,130,12,1@2",
                      data_patch},
        AlgorithmCase{"RegionsInBF16",
                      "conv_backward_data dy=bf16:2x10x7x10:900,1,120,12@2 w=bf16:10x3x3x2:30,9,3,1@2 "
                      "dx=bf16:2x3x9x11:400,1,36,3@2",
                      data_patch},
        AlgorithmCase{"RegionsInTf32",
                      "conv_backward_data dy=f32:2x10x4x6:900,1,120,12 w=f32:10x3x3x2:30,9,3,1 "
                      "dx=f32:2x3x6x7:400,1,36,3 tf32",
                      data_patch},
        AlgorithmCase{"OneDimension", "conv_backward_data dy=bf16:3x2x70:nwc w=bf16:2x24x9:nwc pad=4", data_patch},
        AlgorithmCase{"ThreeDimensions",
                      "conv_backward_data dy=f16:1x12x3x9x10:ndhwc w=f16:12x3x3x5x5:ndhwc dx=f16:1x3x5x9x10:ndhwc "
                      "pad=1,2,2 dilation=2,1,1",
                      data_patch},
        AlgorithmCase{"AnyBatch", "conv_backward_data dy=f16:5x3x6x5:nhwc w=f16:3x24x3x3:nhwc pad=1 n=?", data_patch},
        AlgorithmCase{"EmptyBatch", "conv_backward_data dy=f16:0x3x6x5:nhwc w=f16:3x24x3x3:nhwc pad=1", data_patch}),
    case_name);

TEST(ConvGradientsTensorPatch, RefusesByTheNamesOfItsOperands) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("conv_backward_data_tensor_patch", "conv_backward_data " + request);
  };
  EXPECT_EQ(refusal("dy=f16:1x17x5x5 w=f16:17x8x3x3"), "dy has more than 16 channels, in one group");
  EXPECT_EQ(refusal("dy=f16:1x66x5x5 w=f16:66x8x3x3 groups=2"), "a group has more than 32 channels of dy");
  EXPECT_EQ(refusal("dy=f16:1x8x5x5 w=f16:8x8x3x3 dx=f16:1x8x11x11 stride=2"),
            "elements of dx fall into classes, with taps of their own");
}

const Names patch = {"conv_backward_filter_tensor_patch"};

INSTANTIATE_TEST_SUITE_P(
    ByFilterOfFewChannels, ConvGradientsTensor,
    testing::Values(
        AlgorithmCase{"FirstLayer",
                      "conv_backward_filter x=f16:2x3x19x37 dy=f16:2x16x10x19 dw=f16:16x3x7x7 pad=3 stride=2", patch},
        AlgorithmCase{"FirstLayerChannelsLast",
                      "conv_backward_filter x=bf16:2x3x19x21:nhwc dy=bf16:2x24x10x11:nhwc dw=f32:24x3x7x7:nhwc pad=3 "
                      "stride=2",
                      patch},
        AlgorithmCase{"OneChannel", "conv_backward_filter x=f16:3x1x11x14 dy=f16:3x6x11x14 dw=f16:6x1x5x5 pad=2",
                      patch},
        AlgorithmCase{"UnitStride",
                      "conv_backward_filter x=f16:2x3x13x19:nhwc dy=f16:2x37x13x19:nhwc dw=f16:37x3x3x3:nhwc pad=1 "
                      "alpha=any beta=any",
                      patch},
        AlgorithmCase{"FourChannelsToNchw",
                      "conv_backward_filter x=bf16:2x4x17x18:nhwc dy=bf16:2x24x9x9 dw=f32:24x4x3x3 pad=1 stride=2",
                      patch},
        AlgorithmCase{"FiveChannels", "conv_backward_filter x=bf16:2x5x10x9 dy=bf16:2x9x10x8 dw=bf16:9x5x3x4 pad=1",
                      patch},
        AlgorithmCase{"GroupsOf32Channels",
                      "conv_backward_filter x=f16:2x64x9x7:nhwc dy=f16:2x40x9x4:nhwc dw=f16:40x32x3x3:nhwc groups=2 "
                      "pad=1 stride=1,2",
                      patch},
        AlgorithmCase{"GroupsOf16ChannelsInTf32",
                      "conv_backward_filter x=f32:2x32x7x10 dy=f32:2x18x7x10 dw=f32:18x16x3x5 groups=2 pad=1,2 tf32",
                      patch},
        AlgorithmCase{"SixteenChannels",
                      "conv_backward_filter x=f16:3x16x6x7:nhwc dy=f16:3x16x6x7:nhwc dw=f16:16x16x3x3:nhwc pad=1",
                      patch},
        AlgorithmCase{"WideWindowsFarApart",
                      "conv_backward_filter x=f16:1x3x37x41 dy=f16:1x17x8x9 dw=f16:17x3x11x11 pad=2 stride=4", patch},
        AlgorithmCase{"GapsBetweenWindows",
                      "conv_backward_filter x=f16:2x3x13x17:nhwc dy=f16:2x8x4x6:nhwc dw=f16:8x3x2x2:nhwc stride=3",
                      patch},
        AlgorithmCase{"AsymmetricPads",
                      "conv_backward_filter x=bf16:1x3x9x12:nhwc dy=bf16:1x12x9x14:nhwc dw=bf16:12x3x2x4:nhwc "
                      "pad=1,3,0,2",
                      patch},
        AlgorithmCase{"RowsApart",
                      "conv_backward_filter x=f16:1x3x15x12 dy=f16:1x10x15x12 dw=f16:10x3x3x3 pad=2,1 dilation=2,1",
                      patch},
        AlgorithmCase{"MirroredFilter",
                      "conv_backward_filter x=f16:1x3x8x9:nhwc dy=f16:1x20x10x10:nhwc dw=f16:20x3x3x2:nhwc pad=2,1 "
                      "mode=convolution",
                      patch},
        AlgorithmCase{"Groups", "conv_backward_filter x=bf16:2x6x7x8 dy=bf16:2x21x7x8 dw=bf16:21x2x3x3 groups=3 pad=1",
                      patch},
        AlgorithmCase{"Regions",
                      "conv_backward_filter x=f16:2x3x9x11:400,130,12,1@2 dy=f16:2x10x7x10:900,82,11,1@2 "
                      "dw=f16:10x3x3x2:30,9,3,1@2",
                      patch},
        AlgorithmCase{"RegionsInBF16",
                      "conv_backward_filter x=bf16:2x3x9x11:400,1,36,3@2 dy=bf16:2x10x7x10:900,1,120,12@2 "
                      "dw=bf16:10x3x3x2:30,9,3,1@2",
                      patch},
        AlgorithmCase{"ThreeDimensions",
                      "conv_backward_filter x=f16:2x3x5x9x10:ndhwc dy=f16:2x12x3x5x5:ndhwc dw=f32:12x3x3x5x5:ndhwc "
                      "pad=1,2,2 stride=1,2,2 dilation=2,1,1",
                      patch},
        AlgorithmCase{"OneDimension",
                      "conv_backward_filter x=bf16:3x2x70:nwc dy=bf16:3x24x35:nwc dw=bf16:24x2x9:nwc pad=4 stride=2",
                      patch},
        AlgorithmCase{"EmptyBatch",
                      "conv_backward_filter x=f16:0x3x6x5:nhwc dy=f16:0x24x6x5:nhwc dw=f16:24x3x3x3:nhwc pad=1", patch},
        AlgorithmCase{"AsTf32",
                      "conv_backward_filter x=f32:2x3x11x13 dy=f32:2x7x11x13 dw=f32:7x3x3x3 pad=1 beta=any tf32",
                      patch},
        AlgorithmCase{"AsTf32InRegions",
                      "conv_backward_filter x=f32:2x5x9x7:400,1,44,6 dy=f32:2x40x4x6:1000,1,250,41 "
                      "dw=f32:40x5x3x2:40,1,12,6 stride=2,1 tf32",
                      patch}),
    case_name);

// Tiles reach beyond the outputs. What stands in x under windows that do not exist must not meet their zeros: zero
// times infinity is no zero.
TEST(ConvGradientsTensorPatch, LeaveInfinityWhereNoOutputMeetsIt) {
  const TestDevice& device = TestDevice::get();
  const Request request = Request::parse("conv_backward_filter x=f32:1x1x3x9 dy=f32:1x2x1x7 dw=f32:2x1x3x3 tf32");
  const std::string algorithm = "conv_backward_filter_tensor_patch";
  const BoundAlgorithm bound = built_in_catalogue().find(algorithm)->on(request, device.target);
  const Program program =
      built_in_catalogue().program(request, device.target, {algorithm, bound.first_legal().value()});
  const execution::Executable executable = device.load(program, device.target, {"x", "dy", "dw"});
  std::vector<float> values(27, 1.0f);
  values[9 + 7] = std::numeric_limits<float>::infinity();  // under taps 1 and 2 of row 1
  const device::Buffer x = device::upload(device.context, values);
  const device::Buffer dy = device::upload(device.context, std::vector<float>(14, 1.0f));
  const device::Buffer dw(device.context, 18 * sizeof(float));
  const device::Buffer workspace(device.context, static_cast<size_t>(executable.workspace_bytes()));
  executable.run(nullptr, std::vector{x.address(), dy.address(), dw.address()}, {}, 1, workspace.address());
  const std::vector<float> got = device::download<float>(*device.context, dw.address(), 18);
  for (size_t i = 0; i < got.size(); ++i) {
    const bool meets = i % 9 == 4 || i % 9 == 5;
    EXPECT_EQ(got[i], meets ? std::numeric_limits<float>::infinity() : 7.0f) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    ConvGradientsTensorConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_backward_data_tensor",
              "conv_backward_data dy=f16:3x72x9x7:nhwc w=f16:72x136x3x3:nhwc pad=1 epilogue=bias"),
        cover("conv_backward_data_tensor",
              "conv_backward_data dy=bf16:2x24x4x4:nhwc w=bf16:24x20x3x2:nhwc dx=bf16:2x20x8x9:nhwc pad=1,0 stride=2"),
        cover("conv_backward_data_tensor_persistent",
              "conv_backward_data dy=bf16:3x34x13x12:nhwc w=bf16:34x40x1x3:nhwc dx=f32:3x40x13x14:nchw beta=any"),
        cover("conv_backward_data_tensor_persistent",
              "conv_backward_data dy=f16:3x72x9x11:nhwc w=f16:72x136x1x1:nhwc dx=f16:3x136x18x21:nhwc stride=2"),
        cover("conv_backward_data_tensor_splitk",
              "conv_backward_data dy=f16:1x136x5x7:nhwc w=f16:136x68x3x3:nhwc pad=1"),
        cover("conv_backward_data_tensor_splitk",
              "conv_backward_data dy=bf16:2x66x3x4:nhwc w=bf16:66x40x2x3:nhwc dx=bf16:2x40x6x9:nhwc stride=2 beta=any"),
        cover("conv_backward_data_tensor_patch",
              "conv_backward_data dy=f16:3x12x34x66:nhwc w=f16:12x68x3x3:nhwc groups=2 pad=1 epilogue=bias"),
        cover("conv_backward_data_tensor_patch", "conv_backward_data dy=f32:2x3x33x65 w=f32:3x40x5x4 pad=2 tf32"),
        cover("conv_backward_data_tensor_staged_splitk", "conv_backward_data dy=f16:1x137x5x7 w=f16:137x68x3x3 pad=1"),
        cover("conv_backward_data_tensor_staged_splitk",
              "conv_backward_data dy=bf16:2x66x3x4 w=bf16:66x40x2x3 dx=bf16:2x40x6x9:nhwc stride=2 beta=any"),
        cover("conv_backward_data_tensor_staged", "conv_backward_data dy=f16:2x40x9x8 w=f16:40x136x3x3 pad=1"),
        cover("conv_backward_data_tensor_staged",
              "conv_backward_data dy=bf16:2x36x4x5:nhwc w=bf16:36x20x1x1 dx=bf16:2x20x7x9:nhwc stride=2"),
        cover("conv_backward_filter_tensor",
              "conv_backward_filter x=f16:3x40x9x7:nhwc dy=f16:3x136x9x7:nhwc dw=f16:136x40x3x3:nhwc pad=1"),
        cover("conv_backward_filter_tensor",
              "conv_backward_filter x=bf16:2x24x8x9:nhwc dy=bf16:2x36x7x5:nhwc dw=bf16:36x12x2x3 groups=2 pad=0,1 "
              "stride=1,2"),
        cover("conv_backward_filter_tensor_splitk",
              "conv_backward_filter x=f16:9x24x9x7:nhwc dy=f16:9x72x9x7:nhwc dw=f32:72x24x3x3:nhwc pad=1"),
        cover("conv_backward_filter_tensor_splitk",
              "conv_backward_filter x=bf16:40x66x3x3:nhwc dy=bf16:40x34x3x3:nhwc dw=bf16:34x66x1x1 beta=any"),
        cover("conv_backward_filter_tensor_staged",
              "conv_backward_filter x=f16:3x20x9x8 dy=f16:3x72x9x8 dw=f16:72x20x3x3 pad=1"),
        cover("conv_backward_filter_tensor_staged",
              "conv_backward_filter x=bf16:3x36x5x6:nhwc dy=bf16:3x20x5x6:nhwc dw=bf16:20x36x1x1"),
        cover("conv_backward_filter_tensor_patch",
              "conv_backward_filter x=f16:5x3x35x37:nhwc dy=f16:5x136x18x19:nhwc dw=f16:136x3x5x5:nhwc pad=2 stride=2"),
        cover("conv_backward_filter_tensor_patch",
              "conv_backward_filter x=f32:9x3x17x19 dy=f32:9x40x17x18 dw=f32:40x3x3x4 pad=1 tf32"),
        cover("conv_backward_filter_tensor_staged_splitk",
              "conv_backward_filter x=f16:9x12x9x8 dy=f16:9x36x9x8 dw=f16:36x12x3x3 pad=1"),
        cover("conv_backward_filter_tensor_staged_splitk",
              "conv_backward_filter x=bf16:33x36x5x3:nhwc dy=bf16:33x20x5x3:nhwc dw=f32:20x36x1x1"),
        cover(
            "conv_backward_data_tensor",
            "conv_backward_data dy=f32:2x23x4x4:nhwc w=f32:23x68x3x2:nhwc dx=f32:2x68x8x9:nhwc pad=1,0 stride=2 tf32"),
        cover("conv_backward_filter_tensor",
              "conv_backward_filter x=f32:3x40x5x7:nhwc dy=f32:3x68x5x7:nhwc dw=f32:68x40x3x3:nhwc pad=1 tf32")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvGradientsTensorWithWideOffsets, WideIndexMatch,
    testing::Values(wide({"conv_backward_data_tensor_persistent"},
                         "conv_backward_data dy=f16:3x32x7x6:nhwc w=f16:32x24x1x1:nhwc n=? epilogue=bias beta=any"),
                    wide({"conv_backward_data_tensor", "conv_backward_data_tensor_splitk",
                          "conv_backward_data_tensor_staged", "conv_backward_data_tensor_staged_splitk"},
                         "conv_backward_data dy=f16:2x64x4x6:nhwc w=f16:64x16x3x3:nhwc dx=f16:2x16x7x6:nhwc pad=1 "
                         "stride=2,1 alpha=any beta=any"),
                    wide({"conv_backward_data_tensor_patch"},
                         "conv_backward_data dy=f16:2x3x7x9:nhwc w=f16:3x16x5x3:nhwc pad=1 n=? beta=any"),
                    wide({"conv_backward_filter_tensor_patch"},
                         "conv_backward_filter x=f16:2x3x9x11:nhwc dy=f16:2x16x5x9:nhwc dw=f16:16x3x5x5:nhwc pad=2,1 "
                         "stride=2,1 beta=any"),
                    wide({"conv_backward_filter_tensor", "conv_backward_filter_tensor_splitk",
                          "conv_backward_filter_tensor_staged", "conv_backward_filter_tensor_staged_splitk"},
                         "conv_backward_filter x=f16:8x16x7x6:nhwc dy=f16:8x24x4x6:nhwc dw=f16:24x16x3x3:nhwc pad=1 "
                         "stride=2,1 beta=any")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::conv_gradients_tensor_test
