// Convolution on tensor cores of operands that are packed first, and its gradients, against the reference: defaults on
// layers that are awkward in a few ways each, pairwise covers of the configurations, 64-bit offsets; refusals.
#include <gtest/gtest.h>

#include "algorithm_cases.h"
#include "variant_check.h"

namespace kiln::testing_support::conv_tensor_packed_test {
namespace {

using Names = std::vector<std::string>;

const Names forward = {"conv_tensor_packed", "conv_tensor_staged_packed"};
const Names by_input = {"conv_backward_data_tensor_packed", "conv_backward_data_tensor_staged_packed"};
const Names by_filter = {"conv_backward_filter_tensor_splitk_packed",
                         "conv_backward_filter_tensor_staged_splitk_packed"};

class ConvTensorPacked : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvTensorPacked, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Forward, ConvTensorPacked,
    testing::Values(
        AlgorithmCase{"Nchw", "conv_forward x=f16:2x32x12x20 w=f16:40x32x3x3 pad=1 epilogue=bias+add+relu", forward},
        AlgorithmCase{"OddEverything", "conv_forward x=f16:3x13x7x9 w=f16:11x13x3x2 pad=1,0 stride=2,1", forward},
        AlgorithmCase{"OddChannelsLast",
                      "conv_forward x=bf16:2x37x9x11:nhwc w=bf16:19x37x3x3:nhwc pad=1 epilogue=bias alpha=any beta=any",
                      forward},
        AlgorithmCase{"EvenChannelsLast", "conv_forward x=f16:1x36x8x8:nhwc w=f16:16x36x1x1:nhwc y=f32:1x16x8x8",
                      forward},
        AlgorithmCase{"Groups", "conv_forward x=f16:2x18x10x10 w=f16:12x6x3x3 groups=3 pad=1", forward},
        AlgorithmCase{"GroupsLast", "conv_forward x=bf16:2x20x10x10:nhwc w=bf16:8x10x3x3 groups=2 pad=1", forward},
        AlgorithmCase{"GroupsOfPartsOfPieces", "conv_forward x=f16:2x24x8x8:nhwc w=f16:8x12x3x3 groups=2 pad=1",
                      forward},
        AlgorithmCase{"EmptyBatch", "conv_forward x=f16:0x32x12x20 w=f16:40x32x3x3 pad=1", forward},
        AlgorithmCase{"FiltersAlone", "conv_forward x=f16:2x32x10x10:nhwc w=f16:24x32x3x3 pad=1 constant_weights",
                      forward},
        AlgorithmCase{"Mirrored", "conv_forward x=f16:1x24x9x9 w=f16:8x24x3x3 mode=convolution dilation=2 pad=2",
                      forward},
        AlgorithmCase{"Regions",
                      "conv_forward x=f16:2x24x9x12:4000,150,14,1@2 w=f16:16x24x3x3:400,10,3,1@2 "
                      "y=f16:2x16x9x12:8000,1,700,40@4 pad=1 epilogue=bias",
                      forward},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_forward x=bf16:2x16x6x6:2000,100,16,2@2 w=bf16:16x16x3x3:400,12,3,1@2 "
                      "y=bf16:2x16x6x6:8000,1,700,40@2 pad=1",
                      forward},
        AlgorithmCase{"AnyBatch", "conv_forward x=f16:3x16x8x8 w=f16:16x16x3x3 pad=1 n=?", forward},
        AlgorithmCase{"Line", "conv_forward x=f16:2x80x50 w=f16:48x80x5 pad=2 constant_weights", forward},
        AlgorithmCase{"Volume", "conv_forward x=bf16:1x12x4x7x6 w=bf16:16x12x2x3x3 stride=1,2,1", forward},
        AlgorithmCase{"Tf32", "conv_forward x=f32:1x13x9x9 w=f32:16x13x3x3 pad=1 tf32", forward},
        AlgorithmCase{"Tf32Regions",
                      "conv_forward x=f32:2x16x6x6:2000,100,16,2 w=f32:16x16x3x3:400,12,3,1 "
                      "y=f32:2x16x6x6:8000,1,700,40 pad=1 tf32",
                      forward},
        AlgorithmCase{"UnsignedInt8", "conv_forward x=u8:2x20x9x9 w=i8:16x20x3x3 y=i32:2x16x9x9 pad=1", forward},
        AlgorithmCase{"UnsignedInt8Regions",
                      "conv_forward x=u8:2x20x9x9:8000,90,9,1@1 w=u8:16x20x3x3:400,10,3,1@1 "
                      "y=u8:2x16x9x9:2000,100,10,1 pad=1 alpha=any",
                      forward},
        AlgorithmCase{"Fp8", "conv_forward x=f8e4m3:2x20x9x9 w=f8e4m3:16x20x3x3 y=f8e4m3:2x16x9x9 pad=1", forward},
        AlgorithmCase{"Fp8Regions",
                      "conv_forward x=f8e4m3:2x20x9x9:8000,90,9,1@1 w=f8e4m3:16x20x3x3:400,10,3,1@1 "
                      "y=f8e4m3:2x16x9x9:2000,100,10,1 pad=1 alpha=any",
                      forward},
        AlgorithmCase{"E5m2", "conv_forward x=f8e5m2:2x20x9x9 w=f8e5m2:16x20x3x3 y=f8e5m2:2x16x9x9 pad=1", forward},
        AlgorithmCase{"E5m2Regions",
                      "conv_forward x=f8e5m2:2x20x9x9:8000,90,9,1@1 w=f8e5m2:16x20x3x3:400,10,3,1@1 "
                      "y=f8e5m2:2x16x9x9:2000,100,10,1 pad=1 alpha=any",
                      forward},
        AlgorithmCase{"Int8", "conv_forward x=i8:2x20x9x9 w=i8:16x20x3x3 y=i32:2x16x9x9 pad=1", forward},
        AlgorithmCase{"Int8Regions",
                      "conv_forward x=i8:2x20x9x9:8000,90,9,1@1 w=i8:16x20x3x3:400,10,3,1@1 "
                      "y=i8:2x16x9x9:2000,100,10,1 pad=1 alpha=any",
                      forward}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByInput, ConvTensorPacked,
    testing::Values(
        AlgorithmCase{"Nchw", "conv_backward_data dy=f16:2x24x12x20 w=f16:24x32x3x3 pad=1", by_input},
        AlgorithmCase{"OddEverything", "conv_backward_data dy=f16:3x13x7x9 w=f16:13x11x3x2 pad=1,0 stride=1", by_input},
        AlgorithmCase{"ClassesOfAStride",
                      "conv_backward_data dy=bf16:2x19x6x7 w=bf16:19x10x3x3 dx=bf16:2x10x12x13 pad=1 stride=2 beta=any",
                      by_input},
        AlgorithmCase{"Groups", "conv_backward_data dy=f16:2x18x8x8 w=f16:18x5x3x3 groups=3 pad=1", by_input},
        AlgorithmCase{"FiltersAlone",
                      "conv_backward_data dy=f16:2x32x10x10:nhwc w=f16:32x24x3x3 pad=1 constant_weights epilogue=bias",
                      by_input},
        AlgorithmCase{"Regions",
                      "conv_backward_data dy=f16:2x24x9x12:4000,150,14,1@2 w=f16:24x16x3x3:400,10,3,1@2 "
                      "dx=f16:2x16x9x12:8000,1,700,40@4 pad=1",
                      by_input},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_data dy=bf16:2x24x9x12:4000,150,14,1@2 w=bf16:24x16x3x3:400,10,3,1@2 "
                      "dx=bf16:2x16x9x12:8000,1,700,40@2 pad=1 mode=convolution n=?",
                      by_input},
        AlgorithmCase{"Tf32", "conv_backward_data dy=f32:2x10x7x7 w=f32:10x6x3x3 pad=1 tf32", by_input},
        AlgorithmCase{"Tf32Regions",
                      "conv_backward_data dy=f32:2x10x7x7:600,55,7,1 w=f32:10x6x3x3:60,10,3,1 "
                      "dx=f32:2x6x7x7:400,55,7,1 pad=1 tf32",
                      by_input},
        AlgorithmCase{"E5m2Regions",
                      "conv_backward_data dy=f8e5m2:2x20x9x9:8000,90,9,1@1 w=f8e5m2:20x16x3x3:400,10,3,1@1 "
                      "dx=f8e5m2:2x16x9x9:2000,100,10,1 pad=1 alpha=any",
                      by_input},
        AlgorithmCase{"Fp8", "conv_backward_data dy=f8e5m2:2x20x9x9 w=f8e4m3:20x16x3x3 dx=f16:2x16x9x9 pad=1",
                      by_input}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ByFilter, ConvTensorPacked,
    testing::Values(
        AlgorithmCase{"Nchw", "conv_backward_filter x=f16:2x32x12x20 dy=f16:2x40x12x20 dw=f16:40x32x3x3 pad=1",
                      by_filter},
        AlgorithmCase{"OddPixels",
                      "conv_backward_filter x=bf16:3x24x17x19 dy=bf16:3x16x9x9 dw=f32:16x24x3x3 pad=1,0 stride=2 "
                      "alpha=any beta=any",
                      by_filter},
        AlgorithmCase{"OneOperandAlone",
                      "conv_backward_filter x=f16:2x16x20x20:nhwc dy=f16:2x8x20x20 dw=f16:8x16x3x3:nhwc pad=1",
                      by_filter},
        AlgorithmCase{"OddChannels",
                      "conv_backward_filter x=f16:2x13x9x11:nhwc dy=f16:2x19x9x11:nhwc dw=f16:19x13x3x3:nhwc pad=1",
                      by_filter},
        AlgorithmCase{"OddChannelsFirst",
                      "conv_backward_filter x=bf16:2x31x19x18 dy=bf16:2x5x10x9 dw=bf16:5x31x3x2 pad=1,0 stride=2 "
                      "alpha=any beta=any",
                      by_filter},
        AlgorithmCase{"OddChannelsOfXAlone",
                      "conv_backward_filter x=f16:1x61x20x19:nhwc dy=f16:1x16x20x19:nhwc dw=f32:16x61x3x3 pad=1",
                      by_filter},
        AlgorithmCase{
            "EvenChannelsOfFiltersSideBySide",
            "conv_backward_filter x=f16:2x16x8x8:nhwc dy=f16:2x22x8x8:nhwc dw=f16:22x16x3x3:1,198,66,22 pad=1",
            by_filter},
        AlgorithmCase{"OddPixelsOfOneFilter",
                      "conv_backward_filter x=f16:2x12x16x16:nhwc dy=f16:2x1x16x16:nhwc dw=f16:1x12x1x1:nhwc",
                      by_filter},
        AlgorithmCase{"OddChannelsOfPatches",
                      "conv_backward_filter x=f16:2x3x96x96 dy=f16:2x7x12x12 dw=f16:7x3x8x8 stride=8", by_filter},
        AlgorithmCase{"OddChannelsMirrored",
                      "conv_backward_filter x=bf16:1x9x7x8x5 dy=bf16:1x10x7x8x5 dw=bf16:10x9x3x3x3 pad=1 "
                      "mode=convolution",
                      by_filter},
        AlgorithmCase{"OddGroups",
                      "conv_backward_filter x=f16:2x36x18x18:nhwc dy=f16:2x20x18x18 dw=f16:20x18x3x3 groups=2 pad=1",
                      by_filter},
        AlgorithmCase{"OddFp8",
                      "conv_backward_filter x=f8e4m3:2x13x15x16 dy=f8e4m3:2x19x15x16 dw=f8e4m3:19x13x3x3 pad=1",
                      {"conv_backward_filter_tensor_staged_splitk_packed"}},
        AlgorithmCase{"OddTf32", "conv_backward_filter x=f32:1x5x13x14 dy=f32:1x6x13x14 dw=f32:6x5x3x3 pad=1 tf32",
                      by_filter},
        AlgorithmCase{"Groups",
                      "conv_backward_filter x=f16:2x32x18x18 dy=f16:2x16x18x18 dw=f16:16x16x3x3 groups=2 pad=1",
                      by_filter},
        AlgorithmCase{"Regions",
                      "conv_backward_filter x=f16:2x24x15x12:4000,200,14,1@2 dy=f16:2x16x15x12:8000,300,18,1@2 "
                      "dw=f16:16x24x3x3:400,10,3,1@2 pad=1",
                      by_filter},
        AlgorithmCase{"RegionsOfBF16",
                      "conv_backward_filter x=bf16:2x24x15x12:4000,200,14,1@2 dy=bf16:2x16x15x12:8000,300,18,1@2 "
                      "dw=bf16:16x24x3x3:400,10,3,1@2 pad=1",
                      by_filter},
        AlgorithmCase{"Tf32", "conv_backward_filter x=f32:2x8x14x14 dy=f32:2x8x14x14 dw=f32:8x8x3x3 pad=1 tf32",
                      by_filter},
        AlgorithmCase{"Tf32Regions",
                      "conv_backward_filter x=f32:2x8x14x14:4000,300,20,1 dy=f32:2x8x14x14:4000,210,15,1 "
                      "dw=f32:8x8x3x3:100,10,3,1 pad=1 tf32",
                      by_filter}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    ConvTensorPackedConfigs, PairwiseMatch,
    testing::Values(
        cover("conv_tensor_packed", "conv_forward x=f16:2x37x9x13 w=f16:70x37x3x3 pad=1 epilogue=bias+relu"),
        cover("conv_tensor_packed", "conv_forward x=bf16:1x70x12x12:nhwc w=bf16:37x70x1x1 beta=any"),
        cover("conv_tensor_staged_packed", "conv_forward x=f16:2x37x9x13 w=f16:70x37x3x3 pad=1 epilogue=bias+relu"),
        cover("conv_backward_data_tensor_packed", "conv_backward_data dy=f16:2x37x9x13 w=f16:37x70x3x3 pad=1"),
        cover("conv_backward_data_tensor_staged_packed",
              "conv_backward_data dy=f16:2x37x6x7 w=f16:37x70x3x3 dx=f16:2x70x11x13 pad=1 stride=2"),
        cover("conv_backward_data_tensor_packed",
              "conv_backward_data dy=bf16:1x70x6x7 w=bf16:70x35x3x3 dx=bf16:1x35x11x13 pad=1 stride=2"),
        cover("conv_backward_filter_tensor_splitk_packed",
              "conv_backward_filter x=f16:2x40x19x17 dy=f16:2x72x19x17 dw=f16:72x40x3x3 pad=1"),
        cover("conv_backward_filter_tensor_splitk_packed",
              "conv_backward_filter x=bf16:3x16x21x21:nhwc dy=bf16:3x24x21x21 dw=bf16:24x16x1x1 beta=any"),
        cover("conv_backward_filter_tensor_staged_splitk_packed",
              "conv_backward_filter x=f16:2x37x15x17 dy=f16:2x67x15x17 dw=f16:67x37x3x3 pad=1"),
        cover("conv_backward_filter_tensor_splitk_packed",
              "conv_backward_filter x=f16:2x37x15x17:nhwc dy=f16:2x67x15x17:nhwc dw=f16:67x37x3x3:nhwc pad=1")),
    cover_name);

INSTANTIATE_TEST_SUITE_P(
    ConvTensorPackedWithWideOffsets, WideIndexMatch,
    testing::Values(wide(forward, "conv_forward x=f16:2x13x9x9 w=f16:16x13x3x3 pad=1"),
                    wide(by_input, "conv_backward_data dy=f16:2x13x9x9 w=f16:13x16x3x3 pad=1"),
                    wide(by_filter, "conv_backward_filter x=f16:2x16x17x17 dy=f16:2x8x17x17 dw=f16:8x16x3x3 pad=1")),
    cover_name);

// Tensor cores of 7.5 have no asynchronous copies.
class ConvTensorPackedOnTuring : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(ConvTensorPackedOnTuring, MatchesTheReference) {
  expect_some_defaults_match(GetParam(), target_of(7, 5));
}

INSTANTIATE_TEST_SUITE_P(
    Staged, ConvTensorPackedOnTuring,
    testing::Values(AlgorithmCase{"Forward",
                                  "conv_forward x=f16:2x37x9x11:nhwc w=f16:19x37x3x3 pad=1 epilogue=bias",
                                  {"conv_tensor_staged_packed"}},
                    AlgorithmCase{"ByInput",
                                  "conv_backward_data dy=f16:2x19x9x11 w=f16:19x13x3x3 pad=1",
                                  {"conv_backward_data_tensor_staged_packed"}},
                    AlgorithmCase{"ByFilter",
                                  "conv_backward_filter x=f16:2x13x9x11 dy=f16:2x19x9x11 dw=f16:19x13x3x3 pad=1",
                                  {"conv_backward_filter_tensor_staged_splitk_packed"}}),
    case_name);

// Batches whose packed images take more than may be had would be refused: others keep the order.
TEST(ConvTensorPackedRefusals, KeepNoOrderOfAllBatches) {
  const Request request = Request::parse("conv_forward x=f16:2x64x28x28 w=f16:64x64x3x3 pad=1");
  const BoundAlgorithm packed = built_in_catalogue().find("conv_tensor_packed")->on(request, target_of(8, 0));
  EXPECT_EQ(packed.order_of_sums(packed.first_legal().value()), std::nullopt);
}

TEST(ConvTensorPackedRefusals, NameTheReason) {
  const auto refusal = [](const std::string& request) {
    return refusal_of("conv_tensor_packed", "conv_forward " + request);
  };
  EXPECT_EQ(refusal("x=f16:1x16x8x8:nhwc w=f16:16x16x3x3:nhwc"), "operands are copied as they are");
  EXPECT_EQ(refusal("x=f32:1x16x8x8 w=f32:16x16x3x3"),
            "tensor cores round f32 to tf32, which the request does not permit");
  EXPECT_EQ(refusal("x=f16:334x64x224x224 w=f16:128x64x3x3 pad=1"), "none");
  EXPECT_EQ(refusal("x=f16:335x64x224x224 w=f16:128x64x3x3 pad=1"), "the packed operands need more than 2 GiB");

  // Channels that are filled up have no element in a prologue's tensors.
  const Request prologue = Request::parse(
      "conv_forward x=f16:1x13x8x8 w=f16:16x13x3x3 prologue.scale=f16:13 "
      "epilogue=user:code",
      {{"code", Expression("--- rounded prologue\nx * scale[c]", {"scale"})}});
  const auto refusal_of_prologue = [&](const std::string& algorithm) {
    return built_in_catalogue().find(algorithm)->on(prologue, TestDevice::get().target).refusal();
  };
  EXPECT_EQ(refusal_of_prologue("conv_tensor_staged"), std::nullopt);
  EXPECT_NE(refusal_of_prologue("conv_tensor_staged_packed"), std::nullopt);
}

}  // namespace
}  // namespace kiln::testing_support::conv_tensor_packed_test
