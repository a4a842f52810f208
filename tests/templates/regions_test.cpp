// Operands that are regions of larger tensors, in every dtype. What other tests run in one of them alone stands here,
// for the algorithms that it takes: coverage_test.cpp adds both up.
#include <gtest/gtest.h>

#include <algorithm>

#include "algorithm_cases.h"
#include "kiln/generator/catalogue.h"
#include "variant_check.h"

namespace kiln {
namespace {

using testing_support::AlgorithmCase;

// `served_by` is some of the algorithms that serve the request.
class Regions : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Regions, MatchTheReference) {
  const Catalogue& catalogue = testing_support::built_in_catalogue();
  const Request request = Request::parse(GetParam().request);
  const Target& target = testing_support::TestDevice::get().target;
  testing_support::VariantChecker checker(catalogue, request);
  for (const std::string& name : GetParam().served_by) {
    const Algorithm& algorithm = *catalogue.find(name);
    ASSERT_EQ(algorithm.refusal(request, target), std::nullopt) << name;
    const std::optional<Config> config = algorithm.space().first_legal(request, target);
    ASSERT_TRUE(config) << name;
    EXPECT_TRUE(checker.matches_reference({name, *config}));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Templates, Regions,
    testing::Values(
        AlgorithmCase{"ConvForwardInF16",
                      "conv_forward x=f16:2x4x5x9:400,96,16,1 w=f16:4x1x3x3:32,32,8,1 groups=4 pad=1",
                      {"conv_depthwise_nchw"}},
        AlgorithmCase{"ConvForwardInBF16A",
                      "conv_forward x=bf16:2x4x5x9:400,96,16,1 w=bf16:4x1x3x3:32,32,8,1 groups=4 pad=1",
                      {"conv_depthwise_nchw"}},
        AlgorithmCase{"ConvForwardInF32",
                      "conv_forward x=f32:2x24x11:368,1,32 w=f32:24x1x3:16,16,1 groups=24 pad=1",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{"ConvForwardInBF16B",
                      "conv_forward x=bf16:2x24x11:368,1,32 w=bf16:24x1x3:16,16,1 groups=24 pad=1",
                      {"conv_depthwise_nhwc"}},
        AlgorithmCase{
            "ConvBackwardDataInF32A",
            "conv_backward_data dy=f32:1x3x4x8:256,80,16,1 w=f32:3x1x3x3:64,64,16,1 groups=3 pad=1 stride=2,1",
            {"conv_backward_data_depthwise_nchw"}},
        AlgorithmCase{
            "ConvBackwardDataInF16A",
            "conv_backward_data dy=f16:1x3x4x8:256,80,16,1 w=f16:3x1x3x3:64,64,16,1 groups=3 pad=1 stride=2,1",
            {"conv_backward_data_depthwise_nchw"}},
        AlgorithmCase{
            "ConvBackwardDataInBF16A",
            "conv_backward_data dy=bf16:1x3x4x8:256,80,16,1 w=bf16:3x1x3x3:64,64,16,1 groups=3 pad=1 stride=2,1",
            {"conv_backward_data_depthwise_nchw"}},
        AlgorithmCase{"ConvBackwardDataInF32B",
                      "conv_backward_data dy=f32:1x24x8x7:2100,1,256,32 w=f32:24x1x3x5:64,64,16,1 "
                      "dx=f32:1x24x8x7:2100,1,256,32 groups=24 pad=1,2",
                      {"conv_backward_data_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardDataInF16B",
                      "conv_backward_data dy=f16:1x24x8x7:2100,1,256,32 w=f16:24x1x3x5:64,64,16,1 "
                      "dx=f16:1x24x8x7:2100,1,256,32 groups=24 pad=1,2",
                      {"conv_backward_data_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardDataInBF16B",
                      "conv_backward_data dy=bf16:1x24x8x7:2100,1,256,32 w=bf16:24x1x3x5:64,64,16,1 "
                      "dx=bf16:1x24x8x7:2100,1,256,32 groups=24 pad=1,2",
                      {"conv_backward_data_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardFilterInF32",
                      "conv_backward_filter x=f32:1x4x9x10:656,160,16,1 dy=f32:1x6x3x3:400,64,16,1 "
                      "dw=f32:6x4x3x2:272,64,16,1 stride=3",
                      {"conv_backward_filter_direct"}},
        AlgorithmCase{"ConvBackwardFilterInF16",
                      "conv_backward_filter x=f16:2x3x7x5:400,128,16,1 dy=f16:2x4x4x4:336,80,16,1 "
                      "dw=f16:4x3x3x2:208,64,16,1 pad=1,0 stride=2,1",
                      {"conv_backward_filter_direct", "conv_backward_filter_implicit_gemm",
                       "conv_backward_filter_implicit_gemm_splitk", "conv_backward_filter_simple"}},
        AlgorithmCase{"ConvBackwardFilterInBF16",
                      "conv_backward_filter x=bf16:2x3x7x5:400,128,16,1 dy=bf16:2x4x4x4:336,80,16,1 "
                      "dw=bf16:4x3x3x2:208,64,16,1 pad=1,0 stride=2,1",
                      {"conv_backward_filter_direct", "conv_backward_filter_implicit_gemm",
                       "conv_backward_filter_implicit_gemm_splitk", "conv_backward_filter_simple"}},
        AlgorithmCase{"ConvBackwardBiasInBF16",
                      "conv_backward_bias dy=bf16:3x5x4x7:640,1,128,16 db=bf16:5:3",
                      {"conv_backward_bias_simple", "conv_backward_bias_split"}},
        AlgorithmCase{"LocalConvForwardInF16",
                      "local_conv_forward x=f16:2x3x7x5:400,128,16,1 w=f16:24x3x3x2:208,64,16,1 pad=1,0 grid=3,2",
                      {"local_conv_forward_dots", "local_conv_forward_implicit_gemm", "local_conv_forward_simple"}},
        AlgorithmCase{"LocalConvForwardInBF16",
                      "local_conv_forward x=bf16:2x3x7x5:400,128,16,1 w=bf16:24x3x3x2:208,64,16,1 pad=1,0 grid=3,2",
                      {"local_conv_forward_dots", "local_conv_forward_implicit_gemm", "local_conv_forward_simple"}},
        AlgorithmCase{"LocalConvBackwardDataInF16",
                      "local_conv_backward_data dy=f16:2x8x6x8:1600,1,160,16 w=f16:48x18x3x3:400,18,6,2 "
                      "dx=f16:2x18x6x8:4000,200,24,2@4 pad=1 grid=3,2 beta=1",
                      {"local_conv_backward_data_columns"}},
        AlgorithmCase{"LocalConvBackwardDataInBF16",
                      "local_conv_backward_data dy=bf16:2x8x6x8:1600,1,160,16 w=bf16:48x18x3x3:400,18,6,2 "
                      "dx=bf16:2x18x6x8:4000,200,24,2@4 pad=1 grid=3,2 beta=1",
                      {"local_conv_backward_data_columns", "local_conv_backward_data_implicit_gemm",
                       "local_conv_backward_data_simple"}},
        AlgorithmCase{"LocalConvBackwardFilterInF16",
                      "local_conv_backward_filter x=f16:2x3x7x5:400,128,16,1 dy=f16:2x4x7x4:528,128,16,1 "
                      "dw=f16:24x3x3x2:208,64,16,1 pad=1,0 grid=3,2",
                      {"local_conv_backward_filter_implicit_gemm", "local_conv_backward_filter_simple"}},
        AlgorithmCase{"LocalConvBackwardFilterInBF16",
                      "local_conv_backward_filter x=bf16:2x3x7x5:400,128,16,1 dy=bf16:2x4x7x4:528,128,16,1 "
                      "dw=bf16:24x3x3x2:208,64,16,1 pad=1,0 grid=3,2",
                      {"local_conv_backward_filter_implicit_gemm", "local_conv_backward_filter_simple"}},
        AlgorithmCase{"PoolForwardInF16A",
                      "pool_forward x=f16:2x3x19:112,32,1 indices=i32:2x3x7:64,16,1 window=4 pad=2,1 stride=3",
                      {"pool_indexed"}},
        AlgorithmCase{"PoolForwardInBF16A",
                      "pool_forward x=bf16:2x3x19:112,32,1 indices=i32:2x3x7:64,16,1 window=4 pad=2,1 stride=3",
                      {"pool_indexed"}},
        AlgorithmCase{"PoolForwardInF16B",
                      "pool_forward x=f16:1x2x4x33:432,208,48,1 mode=max window=global",
                      {"pool_global_nchw"}},
        AlgorithmCase{"PoolForwardInBF16B",
                      "pool_forward x=bf16:1x2x4x33:432,208,48,1 mode=max window=global",
                      {"pool_global_nchw"}},
        AlgorithmCase{"PoolForwardInF32",
                      "pool_forward x=f32:1x5x3x7:400,1,128,16 mode=avg window=global",
                      {"pool_global_nhwc", "pool_nhwc"}},
        AlgorithmCase{"PoolForwardInBF16C",
                      "pool_forward x=bf16:1x5x3x7:400,1,128,16 mode=avg window=global",
                      {"pool_global_nhwc"}},
        AlgorithmCase{"SoftmaxForwardInBF16", "softmax_forward x=bf16:2x8200:8216,1 axis=1", {"softmax_split"}},
        AlgorithmCase{"CrossEntropyForwardInF16",
                      "cross_entropy_forward x=f16:3x37:48,1 weights=f32:37",
                      {"cross_entropy_forward_rows"}},
        AlgorithmCase{"CrossEntropyForwardInBF16A",
                      "cross_entropy_forward x=bf16:3x37:48,1 weights=f32:37",
                      {"cross_entropy_forward_rows", "cross_entropy_forward_simple"}},
        AlgorithmCase{"CrossEntropyForwardInBF16B",
                      "cross_entropy_forward x=bf16:3x19x5:112,5,1",
                      {"cross_entropy_forward_strided"}},
        AlgorithmCase{
            "CrossEntropyBackwardInF16", "cross_entropy_backward x=f16:3x37:48,1", {"cross_entropy_backward_rows"}},
        AlgorithmCase{"CrossEntropyBackwardInBF16A",
                      "cross_entropy_backward x=bf16:3x37:48,1",
                      {"cross_entropy_backward_rows", "cross_entropy_backward_simple"}},
        AlgorithmCase{"CrossEntropyBackwardInBF16B",
                      "cross_entropy_backward x=bf16:2x12x3x4:256,1,80,16",
                      {"cross_entropy_backward_strided"}},
        AlgorithmCase{"NormInferenceInF32",
                      "norm_inference x=f32:3x11x5x7:660,60,9,1 w=f32:1x11x1x1",
                      {"norm_inference_blocks", "norm_inference_simple"}},
        AlgorithmCase{"NormInferenceInF16",
                      "norm_inference x=f16:3x11x5x7:660,60,9,1 w=f16:1x11x1x1",
                      {"norm_inference_blocks", "norm_inference_simple"}},
        AlgorithmCase{"NormInferenceInBF16",
                      "norm_inference x=bf16:3x11x5x7:660,60,9,1 w=bf16:1x11x1x1",
                      {"norm_inference_blocks", "norm_inference_simple"}},
        AlgorithmCase{"NormBackwardInF16",
                      "norm_backward dy=f16:5x33:48,1 w=f16:1x33 dw=f16:1x33 db=f16:1x33",
                      {"norm_backward_blocks", "norm_backward_simple"}},
        AlgorithmCase{"NormBackwardInBF16",
                      "norm_backward dy=bf16:5x33:48,1 w=bf16:1x33 dw=bf16:1x33 db=bf16:1x33",
                      {"norm_backward_blocks", "norm_backward_simple"}},
        AlgorithmCase{"LocalNormForwardInF32",
                      "local_norm_forward x=f32:2x3x70:256,80,1 axes=2 size=7",
                      {"local_norm_forward_segments"}},
        AlgorithmCase{"LocalNormForwardInF16",
                      "local_norm_forward x=f16:2x9x5:96,1,16 means=f32:2x9x5:96,1,16 size=4",
                      {"local_norm_forward_columns", "local_norm_forward_segments", "local_norm_forward_simple",
                       "local_norm_forward_tile"}},
        AlgorithmCase{"LocalNormForwardInBF16",
                      "local_norm_forward x=bf16:2x9x5:96,1,16 means=f32:2x9x5:96,1,16 size=4",
                      {"local_norm_forward_columns", "local_norm_forward_segments", "local_norm_forward_simple",
                       "local_norm_forward_tile"}},
        AlgorithmCase{"LocalNormBackwardInF32",
                      "local_norm_backward x=f32:2x9x5:96,1,16 size=4 beta=1",
                      {"local_norm_backward_segments"}},
        AlgorithmCase{"LocalNormBackwardInF16",
                      "local_norm_backward x=f16:2x9x5:96,1,16 size=4 beta=1",
                      {"local_norm_backward_columns", "local_norm_backward_segments", "local_norm_backward_simple",
                       "local_norm_backward_tile"}},
        AlgorithmCase{"LocalNormBackwardInBF16",
                      "local_norm_backward x=bf16:2x9x5:96,1,16 size=4 beta=1",
                      {"local_norm_backward_columns", "local_norm_backward_segments", "local_norm_backward_simple",
                       "local_norm_backward_tile"}},
        AlgorithmCase{"ActivationBackwardInF16",
                      "activation_backward x=f16:67x3:1,80 dy=f16:67x3:16,1 dx=f16:67x3:16,1 mode=gelu beta=any",
                      {"activation_backward_transposed"}},
        AlgorithmCase{"TensorTransformInBF16A",
                      "tensor_transform x=bf16:2x5x3x7:nhwc y=f16:2x5x3x7 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInF16",
                      "tensor_transform x=f16:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_simple", "tensor_transform_transposed", "tensor_transform_vector"}},
        AlgorithmCase{"TensorTransformInBF16B",
                      "tensor_transform x=bf16:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_simple", "tensor_transform_transposed", "tensor_transform_vector"}},
        AlgorithmCase{"TensorOpInBF16",
                      "tensor_op a=bf16:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=bf16:2x33x5x3:nhwc mode=min",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInF16",
                      "tensor_op a=f16:67x3:1,80 b=f32:67x3:16,1 y=f16:67x3:16,1 mode=max",
                      {"tensor_op_simple", "tensor_op_transposed", "tensor_op_vector"}},
        AlgorithmCase{"TensorSetInF16", "tensor_set y=f16:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInBF16", "tensor_set y=bf16:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{
            "DropoutInBF16", "dropout x=bf16:5x6:16,1 y=bf16:5x6:16,1", {"dropout_simple", "dropout_vector"}}),
    testing_support::case_name);

}  // namespace
}  // namespace kiln
