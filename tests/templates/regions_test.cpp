// Operands in every dtype, above all as regions of larger tensors. Cases that other tests run in few dtypes stand here,
// for the algorithms that it takes: coverage_test.cpp adds both up.
#include <gtest/gtest.h>

#include "algorithm_cases.h"

namespace kiln::regions_test {
namespace {

using testing_support::AlgorithmCase;

// Runs the algorithms `served_by` alone.
class Regions : public testing::TestWithParam<AlgorithmCase> {};

TEST_P(Regions, MatchTheReference) {
  testing_support::expect_some_defaults_match(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Templates, Regions,
    testing::Values(
        AlgorithmCase{"SoftmaxGradientOfLongRowsInF32",
                      "softmax_backward y=f32:2x1031:1100,1 dy=f32:2x1031:1040,1 dx=f32:2x1031:2064,2 axis=1",
                      {"softmax_backward_split"}},
        AlgorithmCase{"SoftmaxGradientOfLongRowsInF16",
                      "softmax_backward y=f16:2x2056:2064,1 dy=f16:2x2056:2100,1 dx=f16:2x2056:2064,1 axis=1",
                      {"softmax_backward_split"}},
        AlgorithmCase{
            "SoftmaxGradientOfLongRowsInBF16",
            "softmax_backward y=bf16:2x1031:2100,2 dy=bf16:2x1031:1040,1 dx=bf16:2x1031:1100,1 axis=1 mode=log",
            {"softmax_backward_split"}},
        AlgorithmCase{"SoftmaxGradientOfLongRowsInBF16Packed",
                      "softmax_backward y=bf16:2x1031:nc axis=1",
                      {"softmax_backward_split"}},
        AlgorithmCase{
            "ConvBackwardDataInF16A",
            "conv_backward_data dy=f16:1x3x4x8:256,80,16,1 w=f16:3x1x3x3:64,64,16,1 groups=3 pad=1 stride=2,1",
            {"conv_backward_data_depthwise_nchw"}},
        AlgorithmCase{"ConvBackwardDataInF16B",
                      "conv_backward_data dy=f16:1x24x8x7:2100,1,256,32 w=f16:24x1x3x5:64,64,16,1 "
                      "dx=f16:1x24x8x7:2100,1,256,32 groups=24 pad=1,2",
                      {"conv_backward_data_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardFilterInBF16",
                      "conv_backward_filter x=bf16:2x3x7x5:400,128,16,1 dy=bf16:2x4x4x4:336,80,16,1 "
                      "dw=bf16:4x3x3x2:208,64,16,1 pad=1,0 stride=2,1",
                      {"conv_backward_filter_direct", "conv_backward_filter_implicit_gemm",
                       "conv_backward_filter_implicit_gemm_splitk", "conv_backward_filter_simple"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInF16A",
                      "conv_backward_filter x=f16:2x3x7x8:400,128,16,1 dy=f16:2x3x4x4:336,80,16,1 "
                      "dw=f16:3x1x3x3:208,208,16,2 groups=3 pad=1 stride=2",
                      {"conv_backward_filter_depthwise_nchw"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInF16B",
                      "conv_backward_filter x=f16:2x24x8x7:2100,1,256,32 dy=f16:2x24x8x7:2100,1,256,32 "
                      "dw=f16:24x1x3x5:64,64,16,1 groups=24 pad=1,2",
                      {"conv_backward_filter_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInBF16A",
                      "conv_backward_filter x=bf16:2x3x7x8:400,128,16,1 dy=bf16:2x3x4x4:336,80,16,1 "
                      "dw=bf16:3x1x3x3:208,208,16,2 groups=3 pad=1 stride=2",
                      {"conv_backward_filter_depthwise_nchw"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInBF16B",
                      "conv_backward_filter x=bf16:2x24x8x7:2100,1,256,32 dy=bf16:2x24x8x7:2100,1,256,32 "
                      "dw=bf16:24x1x3x5:64,64,16,1 groups=24 pad=1,2",
                      {"conv_backward_filter_depthwise_nhwc"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInF32A",
                      "conv_backward_filter x=f32:2x3x7x8:400,128,16,1 dy=f32:2x3x4x4:336,80,16,1 "
                      "dw=f32:3x1x3x3:208,208,16,2 groups=3 pad=1 stride=2",
                      {"conv_backward_filter_depthwise_nchw"}},
        AlgorithmCase{"ConvBackwardFilterDepthwiseInF32B",
                      "conv_backward_filter x=f32:2x24x8x7:2100,1,256,32 dy=f32:2x24x8x7:2100,1,256,32 "
                      "dw=f32:24x1x3x5:64,64,16,1 groups=24 pad=1,2",
                      {"conv_backward_filter_depthwise_nhwc"}},
        AlgorithmCase{"LocalConvBackwardDataInF16",
                      "local_conv_backward_data dy=f16:2x8x6x8:1600,1,160,16 w=f16:48x18x3x3:400,18,6,2 "
                      "dx=f16:2x18x6x8:4000,200,24,2@4 pad=1 grid=3,2 beta=1",
                      {"local_conv_backward_data_columns"}},
        AlgorithmCase{"LocalConvBackwardFilterInBF16",
                      "local_conv_backward_filter x=bf16:2x3x7x5:400,128,16,1 dy=bf16:2x4x7x4:528,128,16,1 "
                      "dw=bf16:6x4x3x3x2:1001,208,64,16,1 pad=1,0 grid=3,2",
                      {"local_conv_backward_filter_implicit_gemm", "local_conv_backward_filter_simple"}},
        AlgorithmCase{"PoolForwardInBF16C",
                      "pool_forward x=bf16:1x5x3x7:400,1,128,16 mode=avg window=global",
                      {"pool_global_nhwc"}},
        AlgorithmCase{"PoolForwardInI32A",
                      "pool_forward x=i32:2x11x3x3:208,1,64,16 mode=max window=global",
                      {"pool_global_nhwc", "pool_nhwc", "pool_simple"}},
        AlgorithmCase{"PoolForwardInI8A",
                      "pool_forward x=i8:2x11x3x3:208,1,64,16 mode=max window=global",
                      {"pool_global_nhwc", "pool_nhwc", "pool_simple"}},
        AlgorithmCase{"PoolForwardInU8A",
                      "pool_forward x=u8:2x11x3x3:208,1,64,16 mode=max window=global",
                      {"pool_global_nhwc", "pool_nhwc", "pool_simple"}},
        AlgorithmCase{"PoolForwardInI8B",
                      "pool_forward x=i8:1x35x7x7:4496,128,16,1 mode=max window=global",
                      {"pool_global_nchw"}},
        AlgorithmCase{
            "PoolForwardInU8B", "pool_forward x=u8:1x35x7x7:4496,128,16,1 mode=max window=global", {"pool_nchw"}},
        AlgorithmCase{
            "PoolForwardInI8C", "pool_forward x=i8:2x11x3x3:nhwc mode=max window=global", {"pool_global_nhwc"}},
        AlgorithmCase{"LocalNormBackwardInF32",
                      "local_norm_backward x=f32:2x9x5:96,1,16 size=4 beta=1",
                      {"local_norm_backward_segments"}},
        AlgorithmCase{"ActivationBackwardInF16A",
                      "activation_backward x=f16:67x3:1,80 dy=f16:67x3:16,1 dx=f16:67x3:16,1 mode=gelu beta=any",
                      {"activation_backward_transposed"}},
        AlgorithmCase{"ActivationBackwardInBF16",
                      "activation_backward x=bf16:67x3:1,80 dy=bf16:67x3:16,1 dx=bf16:67x3:16,1 mode=gelu beta=any",
                      {"activation_backward_transposed", "activation_backward_vector"}},
        AlgorithmCase{"TensorTransformInBF16A",
                      "tensor_transform x=bf16:2x5x3x7:nhwc y=f16:2x5x3x7 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInF16",
                      "tensor_transform x=f16:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInBF16B",
                      "tensor_transform x=bf16:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInI32A",
                      "tensor_transform x=i32:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInU8",
                      "tensor_transform x=u8:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInI8",
                      "tensor_transform x=i8:2x5x3x7:400,1,128,16 y=i8:2x5x3x7:336,64,16,1 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorTransformInI32B",
                      "tensor_transform x=i32:2x5x3x7:nhwc y=f16:2x5x3x7 beta=1",
                      {"tensor_transform_transposed"}},
        AlgorithmCase{"TensorOpInBF16A",
                      "tensor_op a=bf16:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=bf16:2x33x5x3:nhwc mode=min",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInF16",
                      "tensor_op a=f16:67x3:1,80 b=f32:67x3:16,1 y=f16:67x3:16,1 mode=max",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInI32A",
                      "tensor_op a=i32:67x3:1,80 b=f32:67x3:16,1 y=i32:67x3:16,1 mode=max",
                      {"tensor_op_simple", "tensor_op_transposed", "tensor_op_vector"}},
        AlgorithmCase{"TensorOpInI8A",
                      "tensor_op a=i8:67x3:1,80 b=f32:67x3:16,1 y=i8:67x3:16,1 mode=max",
                      {"tensor_op_simple", "tensor_op_transposed", "tensor_op_vector"}},
        AlgorithmCase{"TensorOpInU8A",
                      "tensor_op a=u8:67x3:1,80 b=f32:67x3:16,1 y=u8:67x3:16,1 mode=max",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInBF16B",
                      "tensor_op a=bf16:67x3:1,80 b=f32:67x3:16,1 y=bf16:67x3:16,1 mode=max",
                      {"tensor_op_transposed", "tensor_op_vector"}},
        AlgorithmCase{"TensorOpInI32B",
                      "tensor_op a=i32:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=i32:2x33x5x3:nhwc mode=min",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInI8B",
                      "tensor_op a=i8:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=i8:2x33x5x3:nhwc mode=min",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorOpInU8B",
                      "tensor_op a=u8:2x33x5x3:nchw b=f16:2x33x5x3:nhwc y=u8:2x33x5x3:nhwc mode=min",
                      {"tensor_op_transposed"}},
        AlgorithmCase{"TensorSetInF16", "tensor_set y=f16:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInBF16", "tensor_set y=bf16:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInI32", "tensor_set y=i32:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInI8A", "tensor_set y=i8:3x5x7:96,16,1", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInI8B", "tensor_set y=i8:3x5x7", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInU8", "tensor_set y=u8:3x5x7", {"tensor_set_simple", "tensor_set_vector"}},
        AlgorithmCase{"TensorSetInF32A", "tensor_set y=f32:3x5x7:96,16,1", {"tensor_set_simple"}},
        AlgorithmCase{"TensorSetInF32B", "tensor_set y=f32:3x5x7:nwc", {"tensor_set_vector"}},
        AlgorithmCase{"DropoutInBF16", "dropout x=bf16:5x6:16,1 y=bf16:5x6:16,1", {"dropout_simple", "dropout_vector"}},
        AlgorithmCase{"ActivationForwardInI32",
                      "activation_forward x=i32:65x33:1,80 y=i32:65x33:48,1 mode=identity alpha=any beta=any",
                      {"activation_forward_simple", "activation_forward_transposed", "activation_forward_vector"}},
        AlgorithmCase{"ActivationForwardInI8A",
                      "activation_forward x=i8:65x33:1,80 y=i8:65x33:48,1 mode=identity alpha=any beta=any",
                      {"activation_forward_transposed"}}),
    testing_support::case_name);

}  // namespace
}  // namespace kiln::regions_test
