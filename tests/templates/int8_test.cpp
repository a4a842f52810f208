// Products of 8-bit integers, i8 and u8, against the reference, on shapes that are awkward in a few ways each: on f32
// lanes, on tensor cores with sums in i32, and beside wider factors.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::int8_test {
namespace {

using Names = std::vector<std::string>;

const Names lanes = {"conv_simple", "conv_direct", "conv_implicit_gemm", "conv_implicit_gemm_splitk"};
const Names all = {"conv_simple", "conv_direct",        "conv_implicit_gemm", "conv_implicit_gemm_splitk",
                   "conv_tensor", "conv_tensor_staged", "conv_tensor_splitk", "conv_tensor_staged_splitk"};
const Names patch = {"conv_tensor_patch"};
const Names pointwise = {"conv_1x1", "conv_tensor", "conv_tensor_persistent"};
const Names long_thin = {"gemm_thin", "gemm_thin_splitk"};
const Names product_lanes = {"gemm_simple", "gemm_tiled", "gemm_splitk"};
const Names products = {"gemm_simple", "gemm_tiled",         "gemm_splitk",
                        "gemm_tensor", "gemm_tensor_staged", "gemm_tensor_splitk"};

class Int8 : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Int8, MatchesTheReference) {
  expect_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, Int8,
    testing::Values(
        AlgorithmCase{"Primes", "conv_forward x=i8:2x5x11x13:nchw w=i8:7x5x3x3:nchw pad=1", lanes},
        AlgorithmCase{"PrimesOfU8", "conv_forward x=u8:2x5x11x13:nchw w=i8:7x5x3x3:nchw pad=1 y=u8:2x7x11x13 alpha=any",
                      lanes},
        AlgorithmCase{"ChannelsLast",
                      "conv_forward x=u8:1x96x6x5:nhwc w=i8:40x96x3x3:nhwc pad=1 bias=i32:40 epilogue=bias+relu", all},
        AlgorithmCase{"ToI8",
                      "conv_forward x=i8:1x96x4x5:nhwc w=i8:24x96x3x3:nhwc y=i8:1x24x4x5:nhwc bias=f32:24 "
                      "residual=i8:1x24x4x5:nhwc alpha=any pad=1 epilogue=bias+add",
                      all},
        AlgorithmCase{"Pointwise", "conv_forward x=i8:5x48x7x9:nhwc w=u8:33x48x1x1:nhwc y=f16:5x33x7x9:nhwc",
                      pointwise},
        AlgorithmCase{"PointwiseOfU8", "conv_forward x=u8:5x48x7x9:nhwc w=u8:33x48x1x1:nhwc beta=any", pointwise},
        AlgorithmCase{
            "Depthwise", "conv_forward x=i8:2x4x13x11:nchw w=i8:4x1x3x3:nchw groups=4 pad=1", {"conv_depthwise_nchw"}},
        AlgorithmCase{"DepthwiseOfU8",
                      "conv_forward x=u8:2x4x13x11:nchw w=i8:4x1x3x3:nchw groups=4 stride=2",
                      {"conv_depthwise_nchw"}},
        AlgorithmCase{"DepthwiseChannelsLast",
                      "conv_forward x=i8:2x16x13x11:nhwc w=i8:16x1x3x3:nhwc groups=16 pad=1 y=f16:2x16x13x11:nhwc",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{"DepthwiseChannelsLastOfU8",
                      "conv_forward x=u8:2x16x13x11:nhwc w=i8:16x1x3x3:nhwc groups=16 pad=1 y=u8:2x16x13x11:nhwc",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{
            "FirstLayer",
            "conv_forward x=u8:2x3x23x29 w=i8:13x3x7x7 y=i8:2x13x12x15:nhwc pad=3 stride=2 alpha=any bias=f32:13 "
            "epilogue=bias",
            patch},
        AlgorithmCase{"FirstLayerOfI8", "conv_forward x=i8:2x3x16x24:nhwc w=u8:40x3x3x5 pad=1,2", patch},
        AlgorithmCase{"OneChannel", "conv_forward x=i8:1x1x17x19 w=i8:7x1x3x3 dilation=2,1", patch},
        AlgorithmCase{"FewChannelsOfGroups", "conv_forward x=u8:1x20x9x8:nhwc w=u8:32x5x3x3 pad=1 groups=4", patch},
        AlgorithmCase{"SixteenChannels", "conv_forward x=i8:1x16x9x40 w=i8:32x16x3x3 y=f16:1x32x9x40 pad=1", patch},
        AlgorithmCase{"Volume", "conv_forward x=i8:1x3x5x9x8 w=i8:8x3x3x3x3 pad=1", patch},
        AlgorithmCase{"BesideF16", "conv_forward x=f16:2x16x6x7:nhwc w=i8:24x16x3x3:nhwc pad=1 epilogue=bias", lanes},
        AlgorithmCase{"EmptyBatch", "conv_forward x=i8:0x32x6x5:nhwc w=i8:24x32x3x3:nhwc pad=1", {"conv_tensor"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Regions, Int8,
    testing::Values(
        AlgorithmCase{"OfI8",
                      "conv_forward x=i8:1x96x4x5:4000,1,560,100@4 w=i8:24x96x3x3:904,1,300,100@4 "
                      "y=i32:1x24x4x5:800,1,160,28@4 pad=1",
                      all},
        AlgorithmCase{
            "FirstLayer",
            "conv_forward x=u8:2x3x11x13:900,300,20,1@1 w=i8:9x3x3x3:40,1,12,3@1 y=u8:2x9x11x13:2000,1,160,11 pad=1 "
            "alpha=any",
            patch},
        AlgorithmCase{
            "FirstLayerOfI8",
            "conv_forward x=i8:2x3x11x13:900,300,20,1@1 w=i8:9x3x3x3:40,1,12,3@1 y=i8:2x9x11x13:2000,1,160,11 pad=1 "
            "alpha=any",
            patch},
        AlgorithmCase{"OfU8",
                      "conv_forward x=u8:1x96x4x5:4000,1,560,100@4 w=i8:24x96x3x3:904,1,300,100@4 "
                      "y=u8:1x24x4x5:800,1,160,28 pad=1 alpha=any",
                      all},
        AlgorithmCase{"Pointwise",
                      "conv_forward x=i8:5x48x7x9:4000,1,560,60@4 w=i8:24x48x1x1:52,1,1,1@4 "
                      "y=i8:5x24x7x9:2000,1,250,26@2",
                      pointwise},
        AlgorithmCase{"PointwiseOfU8",
                      "conv_forward x=u8:5x48x7x9:4000,1,560,60@4 w=i8:24x48x1x1:52,1,1,1@4 "
                      "y=f32:5x24x7x9:2000,1,250,26",
                      pointwise},
        AlgorithmCase{"Depthwise",
                      "conv_forward x=i8:2x4x13x11:700,170,13,1 w=i8:4x1x3x3:10,10,3,1 y=i8:2x4x13x11:700,170,13,1 "
                      "groups=4 pad=1",
                      {"conv_depthwise_nchw"}},
        AlgorithmCase{"DepthwiseOfU8",
                      "conv_forward x=u8:2x4x13x11:700,170,13,1 w=i8:4x1x3x3:10,10,3,1 y=u8:2x4x13x11:700,170,13,1 "
                      "groups=4 pad=1",
                      {"conv_depthwise_nchw"}},
        AlgorithmCase{"DepthwiseChannelsLast",
                      "conv_forward x=i8:2x16x13x11:3900,1,290,20@4 w=i8:16x1x3x3:1,1,60,18@2 "
                      "y=i8:2x16x13x11:3900,1,290,20@4 groups=16 pad=1",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{"DepthwiseChannelsLastOfU8",
                      "conv_forward x=u8:2x16x13x11:3900,1,290,20@4 w=i8:16x1x3x3:1,1,60,18@2 "
                      "y=u8:2x16x13x11:3900,1,290,20@4 groups=16 pad=1",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{"Products", "gemm a=i8:37x300:304,1@4 b=i8:300x41:1,308@4 c=i32:37x41:50,1", products},
        AlgorithmCase{"ProductsOfU8", "gemm a=u8:37x300:304,1@4 b=i8:300x41:1,308@4 c=u8:37x41:1,40 alpha=any",
                      products},
        AlgorithmCase{
            "ShortDepth", "gemm a=i8:137x132:140,1@4 b=i8:132x40:1,136@4 c=i8:137x40:50,1", {"gemm_tensor_persistent"}},
        AlgorithmCase{"ShortDepthOfU8",
                      "gemm a=u8:137x132:140,1@4 b=u8:132x40:1,136@4 c=f32:137x40:1,140",
                      {"gemm_tensor_persistent"}},
        AlgorithmCase{"Thin", "gemm a=i8:2x200:210,1 b=i8:200x64:70,1 c=i32:2x64:66,1", long_thin},
        AlgorithmCase{"ThinOfU8", "gemm a=u8:2x200:210,1 b=i8:200x64:70,1 c=i32:2x64:66,1", long_thin}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Products, Int8,
    testing::Values(
        AlgorithmCase{"Primes", "gemm a=i8:37x29 b=i8:29x41 alpha=any", product_lanes},
        AlgorithmCase{"PrimesOfU8", "gemm a=u8:37x29 b=u8:29x41 c=f16:37x41 epilogue=bias", product_lanes},
        AlgorithmCase{"AlongTheDepth", "gemm a=i8:2x37x300 b=u8:2x300x41:12300,1,300 c=f16:2x37x41", products},
        AlgorithmCase{"AlongTheDepthOfU8", "gemm a=u8:2x37x300 b=u8:2x300x41:12300,1,300 alpha=any beta=any", products},
        AlgorithmCase{"ShortDepth", "gemm a=i8:2x70x96 b=i8:2x96x24:2304,1,96", {"gemm_tensor_persistent"}},
        AlgorithmCase{"ShortDepthOfU8", "gemm a=u8:2x70x96 b=i8:2x96x24:2304,1,96", {"gemm_tensor_persistent"}},
        AlgorithmCase{"Thin", "gemm a=i8:3x129 b=i8:129x41", long_thin},
        AlgorithmCase{"ThinOfU8", "gemm a=u8:3x129 b=i8:129x41 c=f32:3x41", long_thin},
        AlgorithmCase{"WeightsAlone",
                      "gemm a=bf16:5x264 b=i8:264x41 c=bf16:5x41 epilogue=bias",
                      {"gemm_simple", "gemm_tiled", "gemm_thin", "gemm_tensor_staged"}},
        AlgorithmCase{"BesideFp8",
                      "gemm a=f8e4m3:37x300 b=i8:300x41:1,300 c=f16:37x41",
                      {"gemm_simple", "gemm_tiled", "gemm_tensor_staged"}},
        AlgorithmCase{"BesideTf32",
                      "gemm a=f32:37x300 b=u8:300x41:1,300 tf32",
                      {"gemm_simple", "gemm_tiled", "gemm_tensor_staged"}}),
    case_name);

INSTANTIATE_TEST_SUITE_P(Configs, PairwiseMatch,
                         testing::Values(cover("conv_tensor",
                                               "conv_forward x=u8:3x144x9x7:nhwc w=i8:136x144x3x3:nhwc pad=1 "
                                               "y=i8:3x136x9x7:nhwc alpha=any epilogue=bias+add"),
                                         cover("conv_tensor_patch",
                                               "conv_forward x=u8:3x3x35x67 w=i8:136x3x3x3:nhwc y=i8:3x136x18x67:nhwc "
                                               "pad=1 stride=2,1 alpha=any epilogue=bias")),
                         cover_name);

}  // namespace
}  // namespace kiln::testing_support::int8_test
