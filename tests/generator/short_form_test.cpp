// Operation::short_form() of requests of every operation.
#include <gtest/gtest.h>

#include "kiln/generator/operation.h"

namespace kiln::short_form_test {
namespace {

std::string of(const std::string& line) {
  const Request request = Request::parse(line);
  return operation(request.operation).short_form(request);
}

TEST(ShortForm, SaysWhatMattersInFewWords) {
  EXPECT_EQ(of("conv_forward x=f32:1x64x56x56 w=f32:64x64x3x3 pad=1 epilogue=bias+relu"),
            "conv 1x64x56x56 -> 64, 3x3, pad 1, bias+relu");
  EXPECT_EQ(of("conv_forward x=f16:8x32x14x14:nhwc w=f16:32x1x3x3 pad=1,2,0,1 stride=2,1 dilation=2 groups=32 n=?"),
            "conv 8x32x14x14 f16 nhwc n=? -> 32, 3x3, stride 2x1, pad 1x2-0x1, dilation 2, groups 32");
  EXPECT_EQ(of("conv_backward_data dy=f32:1x64x28x28 w=f32:64x32x3x3 pad=1 stride=2 output_pad=1"),
            "conv data gradient 1x64x28x28 -> 1x32x56x56, 3x3, stride 2, pad 1");
  EXPECT_EQ(of("conv_backward_filter x=f16:8x32x14x14:nhwc dy=f16:8x32x14x14 dw=f16:32x1x3x3 pad=1 groups=32"),
            "conv filter gradient 8x32x14x14 f16 nhwc, 8x32x14x14, 3x3, pad 1, groups 32");
  EXPECT_EQ(of("conv_backward_bias dy=f32:8x32x14x14:nhwc n=?"), "conv bias gradient 8x32x14x14 nhwc n=?");
  EXPECT_EQ(of("local_conv_forward x=f32:1x64x14x14 w=f32:128x64x3x3 pad=1 grid=2,1 epilogue=bias"),
            "local conv 1x64x14x14 -> 64, 3x3, pad 1, grid 2x1, bias");
  EXPECT_EQ(of("local_conv_backward_data dy=f32:1x8x4x4 w=f32:16x8x3x3x3 pad=1"),
            "local conv data gradient 1x8x4x4 -> 1x3x4x4, 3x3, pad 1, grid 4x4");
  EXPECT_EQ(of("local_conv_backward_filter x=f32:1x3x4x4 dy=f32:1x8x4x4 dw=f32:32x3x3x3 pad=1 grid=2"),
            "local conv filter gradient 1x3x4x4, 1x8x4x4, 3x3, pad 1, grid 2x2");
  EXPECT_EQ(of("pool_forward x=f32:1x8x7x7 mode=avg window=global"), "avg pool 1x8x7x7, global");
  EXPECT_EQ(of("pool_forward x=f32:1x8x9x9 mode=max window=3 stride=2 pad=1"), "max pool 1x8x9x9, 3, stride 2, pad 1");
  EXPECT_EQ(of("pool_backward dy=f16:1x8x3x3 dx=f16:1x8x7x7 mode=avg window=3,5 stride=2,1 pad=0,0"),
            "avg pool backward 1x8x7x7 f16, 3x5, stride 2x1");
  EXPECT_EQ(of("unpool_backward dy=f16:1x8x9x9 indices=i32:1x8x4x4 window=3 stride=2"),
            "unpool backward 1x8x9x9 f16, 3, stride 2");
  EXPECT_EQ(of("im2col x=f16:1x8x9x9:nhwc window=3,2 stride=2 pad=1"), "im2col 1x8x9x9 f16 nhwc, 3x2, stride 2, pad 1");
  EXPECT_EQ(of("col2im x=f16:1x72x9x9 y=f32:1x8x9x9 window=3 pad=1"), "col2im 1x8x9x9 (x f16), 3, pad 1");
  EXPECT_EQ(of("softmax_forward x=bf16:4x10 mode=log"), "log-softmax 4x10 bf16, axis 1");
  EXPECT_EQ(of("softmax_backward y=f16:4x10"), "gradient of softmax 4x10 f16, axis 1");
  EXPECT_EQ(of("activation_forward x=f16:2x8x7x7:nhwc mode=gelu n=?"), "gelu 2x8x7x7 f16 nhwc n=?");
  EXPECT_EQ(of("activation_backward y=f32:4x10 dy=f32:4x10 mode=tanh"), "gradient of tanh 4x10");
  EXPECT_EQ(of("tensor_transform x=f32:1x3x7x7 y=i8:1x3x7x7:nhwc"), "transform 1x3x7x7 -> 1x3x7x7 i8 nhwc");
  EXPECT_EQ(of("tensor_set y=f16:4x10"), "set 4x10 f16");
  EXPECT_EQ(of("tensor_op a=f32:4x1 b=f32:4x10 mode=add"), "tensor add 4x10");
  EXPECT_EQ(of("tensor_op_backward dy=f32:4x10 a=f32:4x10 dx=f32:4x1 mode=mul input=b"),
            "gradient of tensor mul 4x10, by b");
  EXPECT_EQ(of("gemm a=f16:2x8x64 b=f16:1x64x10 c=f32:2x8x10 epilogue=bias+relu"),
            "gemm 2x8x64 by 1x64x10 f16 (c f32), bias+relu");
  EXPECT_EQ(of("cross_entropy_forward x=f16:8x10 reduction=sum n=?"), "cross entropy 8x10 f16 n=?, sum");
  EXPECT_EQ(of("cross_entropy_backward x=f32:8x10x3x3"), "gradient of cross entropy 8x10x3x3, mean");
  EXPECT_EQ(of("reduce x=f16:8x10 axes=1 mode=norm2"), "norm2 reduction 8x10 f16, axes 1");
  EXPECT_EQ(of("reduce_backward dy=f32:8x1 dx=f32:8x10 axes=1 mode=mean"), "gradient of mean reduction 8x10, axes 1");
  EXPECT_EQ(of("dropout x=f16:8x10 n=?"), "dropout 8x10 f16 n=?");
  EXPECT_EQ(of("norm_forward x=f16:8x10 mode=rms epilogue=add activation=swish"),
            "rms normalisation 8x10 f16, axes 1, add, swish");
  EXPECT_EQ(of("norm_affine x=f16:8x10 mode=rms n=?"), "rms normalisation 8x10 f16 n=?, axes 1, scale and shift");
  EXPECT_EQ(of("norm_backward dy=f32:8x10 activation=mish"), "gradient of normalisation 8x10, axes 1, mish");
  EXPECT_EQ(of("norm_inference x=f32:2x8x3x3 epilogue=add activation=swish"),
            "normalisation 2x8x3x3, axes 0,2,3, running statistics, add, swish");
  EXPECT_EQ(of("local_norm_forward x=f16:8x10x3x3:nhwc"), "local normalisation 8x10x3x3 f16 nhwc, 5 along axes 1");
  EXPECT_EQ(of("local_norm_backward x=f32:8x10x3x3 axes=2,3 size=4"),
            "gradient of local normalisation 8x10x3x3, 4 along axes 2,3");
  EXPECT_EQ(of("attention_forward q=f16:2x4x5x8 k=f16:2x2x7x8 v=f16:2x2x7x6 right=0 align=end dropout=any n=?"),
            "attention 2x4x5x8 of 2x2x7x8, values of 6, causal at the end, dropout f16 n=?");
  EXPECT_EQ(of("attention_backward dy=f32:2x4x5x8 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x8 y=f32:2x4x5x8 "
               "lse=f32:2x4x5 left=3 right=2"),
            "gradients of attention 2x4x5x8 of 2x2x7x8, left 3, right 2");
  EXPECT_EQ(of("grid_sample x=f16:2x24x5x7:nhwc grid=f32:2x4x6x2 padding=border ends=centres"),
            "grid sample 2x24x5x7 at 2x24x4x6, linear, border, centres f16 nhwc (grid f32)");
  EXPECT_EQ(of("grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7 mode=cubic"),
            "gradient of grid sample 2x3x5x7 at 2x3x4x6, cubic");
  EXPECT_EQ(of("grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2"),
            "gradient by the grid of grid sample 2x3x5x7 at 2x3x4x6, linear");
  EXPECT_EQ(of("affine_grid theta=f32:2x2x3 grid=f32:2x4x6x2 ends=centres"), "affine grid 2x4x6x2, centres");
  EXPECT_EQ(of("affine_grid_backward dgrid=f32:2x3x4x6x3"), "gradient of affine grid 2x3x4x6x3");
  EXPECT_EQ(of("ctc_loss_forward x=f16:4x9x5 targets=i32:4x3 blank=4 n=?"), "CTC loss 4x9x5, 3 labels f16 n=?");
  EXPECT_EQ(of("ctc_loss_backward x=f32:4x9x5:5,20,1 targets=i32:4x3 prefixes=f32:4x9x7"),
            "gradient of CTC loss 4x9x5, 3 labels cnw");
  EXPECT_EQ(of("recurrent_forward gates=f16:4x5x2x16 r=f16:2x16x4 cell=lstm direction=both n=?"),
            "lstm 4x5x2x4, both f16 n=?");
  EXPECT_EQ(of("recurrent_backward dy=f32:3x5x1x4 r=f32:1x4x4 saved=f32:3x5x1x4 cell=tanh"),
            "gradient of tanh 3x5x1x4");
}

// Requests that differ in them have times of their own.
TEST(ShortForm, SaysWhatOperandsHaveDtypesOfTheirOwn) {
  EXPECT_EQ(of("conv_forward x=f16:1x8x4x4:nhwc w=f8e4m3:8x8x1x1 epilogue=bias"),
            "conv 1x8x4x4 f16 nhwc (w f8e4m3) -> 8, 1x1, bias");
  EXPECT_EQ(of("conv_forward x=f32:1x8x4x4 w=f32:8x8x1x1 y=f8e5m2:1x8x4x4"), "conv 1x8x4x4 (y f8e5m2) -> 8, 1x1");
  EXPECT_EQ(of("gemm a=f8e4m3:8x64 b=f8e5m2:64x10 c=f32:8x10 n=?"), "gemm 8x64 by 64x10 f8e4m3 (b f8e5m2, c f32) n=?");
  EXPECT_EQ(of("softmax_forward x=f8e4m3:4x10 y=f16:4x10"), "softmax 4x10 f16 (x f8e4m3), axis 1");
  EXPECT_EQ(of("tensor_transform x=f8e4m3:1x3x7x7 y=f32:1x3x7x7 n=?"), "transform 1x3x7x7 f8e4m3 n=? -> 1x3x7x7 f32");
  EXPECT_EQ(of("pool_forward x=f16:1x8x7x7 indices=i32:1x8x6x6 window=2"), "max pool 1x8x7x7 f16, 2");
  EXPECT_EQ(of("norm_forward x=f16:8x10 mean=f32:8x1 axes=1"), "normalisation 8x10 f16, axes 1");
  EXPECT_EQ(of("cross_entropy_forward x=f16:8x10 reduction=none"), "cross entropy 8x10 f16, none");
}

}  // namespace
}  // namespace kiln::short_form_test
