// Products of fp8 on tensor cores against the reference: by instructions of their own on 8.9, as f16 that fragments
// become by an instruction (9.0) or by arithmetic (8.0), and as f16 in shared memory where an operand does not run
// along the depth, or the other operand is wider (7.5 too).
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::testing_support::tensor_fp8_test {
namespace {

using Names = std::vector<std::string>;

const Names products = {"gemm_tensor", "gemm_tensor_splitk", "gemm_tensor_staged"};
const Names convolutions = {"conv_tensor", "conv_tensor_splitk", "conv_tensor_staged", "conv_tensor_staged_splitk"};
const Names staged_product = {"gemm_tensor_staged"};
const Names staged_convolution = {"conv_tensor_staged"};

class TensorFp8 : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(TensorFp8, MatchesTheReference) {
  expect_some_defaults_match(GetParam());
}

TEST_P(TensorFp8, MatchesTheReferenceByItsOwnInstructions) {
  expect_some_defaults_match(GetParam(), target_of(8, 9));
}

TEST_P(TensorFp8, MatchesTheReferenceWithoutInstructions) {
  expect_some_defaults_match(GetParam(), target_of(8, 0));
}

INSTANTIATE_TEST_SUITE_P(
    Products, TensorFp8,
    testing::Values(
        AlgorithmCase{"AlongTheDepth", "gemm a=f8e4m3:50x336 b=f8e4m3:336x66:1,336 epilogue=bias+relu", products},
        AlgorithmCase{"TwoTypes", "gemm a=f8e5m2:33x404 b=f8e4m3:404x17:1,404 c=f32:33x17 alpha=any beta=any",
                      products},
        AlgorithmCase{"Fast", "gemm a=f8e4m3:1x400 b=f8e5m2:400x64:1,400 c=bf16:1x64 fast", products},
        AlgorithmCase{"Regions",
                      "gemm a=f8e5m2:3x37x260:11100,300,1@4 b=f8e5m2:3x260x40:10880,1,272@4 c=f8e5m2:3x37x40:2000,50,1",
                      {"gemm_tensor", "gemm_tensor_staged"}},
        AlgorithmCase{"RegionsOfE4m3", "gemm a=f8e4m3:37x260:300,1@4 b=f8e4m3:260x40:1,272@4 c=f8e4m3:37x40:50,1",
                      products},
        AlgorithmCase{"ShortDepthInRegions",
                      "gemm a=f8e4m3:137x132:140,1@4 b=f8e5m2:132x40:1,136@4 c=f8e4m3:137x40:50,1",
                      {"gemm_tensor_persistent"}},
        AlgorithmCase{"ShortDepthInRegionsOfE5m2",
                      "gemm a=f8e5m2:137x132:140,1@4 b=f8e5m2:132x40:1,136@4 c=f8e5m2:137x40:1,140",
                      {"gemm_tensor_persistent"}},
        AlgorithmCase{"OddDepth", "gemm a=f8e4m3:35x67 b=f8e5m2:67x21:1,67 c=f16:35x21", staged_product},
        AlgorithmCase{"RowMajor", "gemm a=f8e4m3:37x131 b=f8e4m3:131x41 c=f16:37x41 epilogue=bias", staged_product},
        AlgorithmCase{"OddRegions", "gemm a=f8e5m2:35x33:41,1 b=f8e4m3:33x21:29,1 c=f8e5m2:35x21:1,37", staged_product},
        AlgorithmCase{"BesideF16", "gemm a=f16:40x72 b=f8e4m3:72x48:1,72 epilogue=bias+relu", staged_product},
        AlgorithmCase{"BesideBF16", "gemm a=f8e5m2:40x72 b=bf16:72x48 c=bf16:40x48", staged_product},
        AlgorithmCase{"BesideTf32", "gemm a=f32:40x37 b=f8e4m3:37x48 tf32", staged_product}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Convolutions, TensorFp8,
    testing::Values(AlgorithmCase{"SeveralChunks",
                                  "conv_forward x=f8e4m3:2x80x6x5:nhwc w=f8e4m3:40x80x3x3:nhwc pad=1 epilogue=bias+add",
                                  convolutions},
                    AlgorithmCase{"LongDepthInRegions",
                                  "conv_forward x=f8e4m3:1x96x4x5:4000,1,560,100@4 w=f8e4m3:24x96x3x3:904,1,300,100@4 "
                                  "y=f8e4m3:1x24x4x5:800,1,160,28@4 pad=1",
                                  {"conv_tensor_splitk", "conv_tensor_staged_splitk"}},
                    AlgorithmCase{"TwoTypesInRegions",
                                  "conv_forward x=f8e5m2:2x36x7x9:4000,1,452,48@4 w=f8e4m3:24x36x3x3:400,1,132,40@4 "
                                  "y=f8e5m2:2x24x4x5:800,1,160,28@4 stride=2 pad=1 beta=any",
                                  convolutions},
                    AlgorithmCase{"Pointwise",
                                  "conv_forward x=f8e4m3:5x48x7x9:nhwc w=f8e5m2:33x48x1x1:nhwc y=f16:5x33x7x9:nhwc",
                                  {"conv_tensor_persistent", "conv_tensor", "conv_tensor_staged"}},
                    AlgorithmCase{"PointwiseInRegions",
                                  "conv_forward x=f8e4m3:5x48x7x9:4000,1,560,60@4 w=f8e4m3:24x48x1x1:52,1,1,1@4 "
                                  "y=f8e4m3:5x24x7x9:2000,1,250,26@2",
                                  {"conv_tensor_persistent"}},
                    AlgorithmCase{"ChannelsFirst",
                                  "conv_forward x=f8e5m2:2x5x11x13 w=f8e4m3:7x5x3x3 pad=1 y=f16:2x7x11x13",
                                  staged_convolution},
                    AlgorithmCase{"ChannelsFirstOfALongDepth",
                                  "conv_forward x=f8e5m2:1x45x5x6 w=f8e5m2:7x45x3x3 pad=1 y=f8e5m2:1x7x5x6",
                                  {"conv_tensor_staged_splitk"}},
                    AlgorithmCase{"BesideF16",
                                  "conv_forward x=f16:2x24x6x7:nhwc w=f8e4m3:40x24x3x3:nhwc pad=1 epilogue=bias",
                                  staged_convolution}),
    case_name);

INSTANTIATE_TEST_SUITE_P(
    Gradients, TensorFp8,
    testing::Values(
        AlgorithmCase{
            "ByInput",
            "conv_backward_data dy=f8e5m2:2x48x5x7:nhwc w=f8e4m3:48x24x3x3:1,432,144,48 dx=f16:2x24x9x13:nhwc "
            "stride=2 pad=1",
            {"conv_backward_data_tensor", "conv_backward_data_tensor_staged"}},
        AlgorithmCase{"ByInputOfAShortDepth",
                      "conv_backward_data dy=f8e5m2:5x48x7x9:4000,1,560,60@4 w=f8e4m3:48x24x1x1:1,52,1,1@4 "
                      "dx=f8e5m2:5x24x7x9:2000,1,250,26@2",
                      {"conv_backward_data_tensor_persistent"}},
        AlgorithmCase{"ByInputOfALongDepth",
                      "conv_backward_data dy=f8e5m2:2x96x5x7:4000,1,704,100@4 w=f8e4m3:96x6x3x3:1,900,300,100@4 "
                      "dx=f8e5m2:2x6x9x13:900,1,96,7 stride=2 pad=1",
                      {"conv_backward_data_tensor_splitk", "conv_backward_data_tensor",
                       "conv_backward_data_tensor_staged_splitk"}},
        AlgorithmCase{"ByInputOfALongDepthInAnyLayout",
                      "conv_backward_data dy=f8e5m2:1x75x5x6 w=f8e5m2:75x6x3x3 dx=f8e5m2:1x6x5x6 pad=1",
                      {"conv_backward_data_tensor_staged_splitk"}},
        AlgorithmCase{"ByInputOfAnyLayout",
                      "conv_backward_data dy=f8e5m2:2x12x5x7 w=f8e4m3:12x6x3x3 dx=f8e5m2:2x6x9x13 stride=2 pad=1",
                      {"conv_backward_data_tensor_staged"}},
        AlgorithmCase{"ByFilter",
                      "conv_backward_filter x=f8e4m3:3x8x7x5:nhwc dy=f8e5m2:3x16x7x5:nhwc dw=f16:16x8x3x3:nhwc pad=1",
                      {"conv_backward_filter_tensor_staged", "conv_backward_filter_tensor_staged_splitk"}}),
    case_name);

// Before 8.0 operands come through registers alone.
TEST(TensorFp8OfTuring, MatchesTheReference) {
  expect_some_defaults_match({"", "gemm a=f8e4m3:35x68 b=f8e5m2:68x21:1,68 c=f16:35x21", staged_product},
                             target_of(7, 5));
  expect_some_defaults_match({"", "conv_forward x=f8e4m3:2x5x9x7 w=f8e4m3:7x5x3x3 pad=1", staged_convolution},
                             target_of(7, 5));
}

INSTANTIATE_TEST_SUITE_P(
    Configs, PairwiseMatch,
    testing::Values(cover("conv_tensor",
                          "conv_forward x=f8e4m3:3x144x9x7:nhwc w=f8e5m2:136x144x3x3:nhwc pad=1 epilogue=bias"),
                    cover("gemm_tensor_staged", "gemm a=f8e4m3:140x72 b=f8e4m3:72x136 c=f16:140x136 epilogue=relu")),
    cover_name);

}  // namespace
}  // namespace kiln::testing_support::tensor_fp8_test
