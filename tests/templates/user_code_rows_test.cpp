// User code of reductions, of losses, and of the gradients of softmax, losses and pooling, in every kernel of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/generator/operation.h"
#include "kiln/generator/request.h"
#include "user_code_cases.h"

namespace kiln::user_code_rows_test {
namespace {

using testing_support::check_as;

const Expressions& expressions() {
  static const Expressions all = {
      {"gated", Expression("acc * gate + slope * bias", {"gate", "bias"}, {"slope"})},
      {"columns", Expression("acc * gate + (k % 2 == 0 ? bias[k] : 0.5f)", {"gate", "bias"})},
      {"channels", Expression("acc * gate + (c % 2 == 0 ? bias[c] : 0.5f)", {"gate", "bias"})},
      {"pooled", Expression("--- prologue\n(x + mean) * (c % 2 == 0 ? 0.25f : 2.0f) + 1.0f\n---\n"
                            "acc * gate + (c % 2 == 0 ? bias[c] : 0.5f)",
                            {"mean", "gate", "bias"})},
      {"scaled", Expression("acc * gate", {"gate"})},
      {"both", Expression("--- prologue\nx * 0.75f - s * x * x\n---\nacc * gate + s * bias", {"gate", "bias"}, {"s"})},
      {"squared", Expression("--- prologue\nx * x")},
      {"centred", Expression("--- prologue\n(x - mean[c]) * (x - mean[c])\n---\nacc * gate", {"gate", "mean"})},
      {"from_below", Expression("--- prologue\n-x\n---\n0.0f")},
      {"nothing", Expression("0.0f")},
      {"factors", Expression("--- prologue\nx > 0.5f ? 0.0f : 1.0f + 0.25f * x")},
      {"entered", Expression("--- prologue\n(x - s) * (x - s)\n---\nsqrtf(fabsf(acc)) * gate", {"gate"}, {"s"})}};
  return all;
}

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, expressions());
}

// Along the last dimension and across others, few long rows in parts, with indices.
TEST(UserCodeOfReductions, IsRightInEveryKernel) {
  const std::vector<std::string> all = {"reduce_simple", "reduce_blocks"};
  expect_served_right(
      "reduce x=f16:3x5x7 axes=2 mode=mean alpha=any beta=any epilogue=user:gated epilogue.gate=f32:3x5x1 "
      "epilogue.bias=f16:1x5x1",
      all);
  expect_served_right(
      "reduce x=f32:5x40x6 y=f32:5x1x6:40,40,3 axes=1 mode=add n=? epilogue=user:gated epilogue.gate=f32:5x1x6 "
      "epilogue.bias=bf16:1x1x6",
      all);
  expect_served_right(
      "reduce x=f32:2x20000 y=i32:2x1 axes=1 mode=norm2 epilogue=user:both epilogue.gate=f32:2x1 epilogue.bias=u8:1x1",
      all);
  expect_served_right(
      "reduce x=f32:4x3x8 y=f32:1x3x8 indices=i32:1x3x8 axes=0 mode=max epilogue=user:both epilogue.gate=f32:1x3x8 "
      "epilogue.bias=f32:1x1x1",
      all);
}

TEST(UserCodeOfGradientsOfReductions, IsRightInEveryKernel) {
  const std::vector<std::string> all = {"reduce_backward_simple", "reduce_backward_blocks"};
  expect_served_right(
      "reduce_backward dy=f16:3x5x1 x=f16:3x5x7 axes=2 mode=norm1 alpha=any beta=any epilogue=user:gated "
      "epilogue.gate=f32:3x5x7 epilogue.bias=f16:1x5x1",
      all);
  expect_served_right(
      "reduce_backward dy=f32:1x24x1x1 dx=f32:2x24x3x5:nhwc axes=0,2,3 mode=mean epilogue=user:gated "
      "epilogue.gate=f32:2x24x3x5:nhwc epilogue.bias=f32:1x24x1x1",
      all);
}

TEST(UserCodeOfGradientsOfTensorFunctions, IsRightInEveryKernel) {
  expect_served_right(
      "tensor_op_backward dy=f16:3x5x7 a=f16:3x5x7 mode=abs alpha=any beta=any epilogue=user:gated "
      "epilogue.gate=f32:3x5x7 epilogue.bias=f16:1x5x1",
      {"tensor_op_backward_simple", "tensor_op_backward_vector"});
  expect_served_right(
      "tensor_op_backward dy=f32:2x24x3x5:nhwc b=f32:2x24x3x5:nhwc dx=f32:1x24x1x1 mode=mul epilogue=user:gated "
      "epilogue.gate=f32:1x24x1x1 epilogue.bias=f32:1x24x1x1",
      {"tensor_op_backward_simple", "tensor_op_backward_blocks"});
}

TEST(UserCodeOfScatter, IsRightInEveryKernel) {
  expect_served_right(
      "scatter updates=f32:31x7 indices=i32:31x1 y=f32:9x7 alpha=any beta=any epilogue=user:gated "
      "epilogue.gate=f32:9x7 epilogue.bias=f32:9x1",
      {"scatter_simple", "scatter_exact", "scatter_lists"});
  expect_served_right(
      "scatter updates=f32:31x7 indices=i32:31x1 y=f32:9x7 mode=min epilogue=user:scaled epilogue.gate=f32:9x7",
      {"scatter_simple", "scatter_extremes"});
}

TEST(UserCodeOfColumns, IsRightInEveryKernel) {
  expect_served_right(
      "im2col x=f32:2x3x5x7 window=3,2 alpha=any beta=any epilogue=user:columns epilogue.gate=f32:2x18x3x6 "
      "epilogue.bias=f32:18",
      {"im2col_simple", "im2col_nchw"});
  expect_served_right(
      "im2col x=f16:2x4x5x7:nhwc window=3 epilogue=user:columns epilogue.gate=f32:2x36x3x5 epilogue.bias=f32:36",
      {"im2col_simple", "im2col_nhwc"});
  expect_served_right(
      "col2im x=f32:2x27x3x5 y=f16:2x3x5x7 window=3 epilogue=user:channels epilogue.gate=f32:2x3x5x7 "
      "epilogue.bias=f32:3",
      {"col2im_simple", "col2im_gather"});
}

TEST(UserCodeOfGridSamples, IsRightInEveryKernel) {
  expect_served_right(
      "grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 alpha=any beta=any epilogue=user:channels epilogue.gate=f32:2x3x4x6 "
      "epilogue.bias=f32:3",
      {"grid_sample_simple", "grid_sample_pixels"});
  expect_served_right(
      "grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2 dx=f16:2x3x5x7 epilogue=user:channels "
      "epilogue.gate=f32:2x3x5x7 epilogue.bias=f32:3",
      {"grid_sample_backward_data_simple", "grid_sample_backward_data_exact"});
  expect_served_right(
      "grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 epilogue=user:scaled "
      "epilogue.gate=f32:2x4x6x2",
      {"grid_sample_backward_grid_simple", "grid_sample_backward_grid_pixels"});
  expect_served_right("affine_grid theta=f32:2x2x3 grid=f32:2x4x6x2 epilogue=user:scaled epilogue.gate=f32:2x4x6x2",
                      {"affine_grid_simple", "affine_grid_pixels"});
  expect_served_right("affine_grid_backward dgrid=f32:2x4x6x2 epilogue=user:scaled epilogue.gate=f32:2x2x3",
                      {"affine_grid_backward_simple", "affine_grid_backward_split"});
}

TEST(UserPrologueOfReductions, IsRightInEveryKernel) {
  const std::vector<std::string> all = {"reduce_simple", "reduce_blocks"};
  expect_served_right("reduce x=f16:3x40x6 axes=1 mode=mul_no_zeros epilogue=user:factors", all);
  expect_served_right("reduce x=u8:3x37 axes=1 mode=norm2 n=? epilogue=user:entered epilogue.gate=f32:3x1", all);
}

TEST(UserCodeOfSoftmaxGradients, IsRightInEveryKernel) {
  expect_served_right(
      "softmax_backward y=f16:5x24 dx=f32:5x24 mode=log beta=any epilogue=user:both epilogue.gate=f16:5x24:1,6 "
      "epilogue.bias=f32:5x1",
      {"softmax_backward_simple", "softmax_backward_rows"});
  expect_served_right(
      "softmax_backward y=f16:3x290 dx=f32:3x290 beta=any n=? epilogue=user:both epilogue.gate=f16:3x290 "
      "epilogue.bias=f32:3x1",
      {"softmax_backward_simple", "softmax_backward_rows", "softmax_backward_split"});
  expect_served_right(
      "softmax_backward y=f32:3x7x4x5 dy=bf16:3x7x4x5:nhwc n=? epilogue=user:both epilogue.gate=f32:3x7x4x5 "
      "epilogue.bias=bf16:1x7x1x5",
      {"softmax_backward_simple", "softmax_backward_strided"});
}

TEST(UserCodeOfCrossEntropyGradients, IsRightInEveryKernel) {
  expect_served_right(
      "cross_entropy_backward x=f16:6x12 reduction=mean dloss=f32:1 alpha=any epilogue=user:both "
      "epilogue.gate=f32:6x12:1,7 epilogue.bias=f32:1x12",
      {"cross_entropy_backward_simple", "cross_entropy_backward_rows"});
  expect_served_right(
      "cross_entropy_backward x=f32:2x5x3x4 weights=f32:5 reduction=none smoothing=any n=? epilogue=user:both "
      "epilogue.gate=f32:2x5x3x4 "
      "epilogue.bias=f16:1x5x3x1",
      {"cross_entropy_backward_simple", "cross_entropy_backward_strided"});
}

// A loss for each row, or one for all of them: the second kernel's.
TEST(UserCodeOfCrossEntropy, IsRightInEveryKernel) {
  expect_served_right(
      "cross_entropy_forward x=f16:6x12 losses=f32:6:2 reduction=none n=? epilogue=user:both epilogue.gate=f32:6 "
      "epilogue.bias=f32:1",
      {"cross_entropy_forward_simple", "cross_entropy_forward_rows"});
  expect_served_right(
      "cross_entropy_forward x=f32:2x5x3x4 reduction=none beta=any epilogue=user:both epilogue.gate=f16:2x3x4:nwc "
      "epilogue.bias=f32:1x3x4",
      {"cross_entropy_forward_simple", "cross_entropy_forward_strided"});
  const std::string code = " beta=1 smoothing=any epilogue=user:both epilogue.gate=f32:1 epilogue.bias=f32:1";
  expect_served_right("cross_entropy_forward x=f32:300x12 reduction=mean" + code,
                      {"cross_entropy_forward_simple", "cross_entropy_forward_rows"});
  expect_served_right("cross_entropy_forward x=f32:2x5x3x70 reduction=sum" + code,
                      {"cross_entropy_forward_simple", "cross_entropy_forward_strided"});
}

// A prologue of dy: where it goes is said by x, or by the indices.
TEST(UserCodeOfPoolingGradients, IsRightInEveryKernel) {
  const std::vector<std::string> all = {"pool_backward_simple", "pool_backward_gather"};
  expect_served_right(
      "pool_backward dy=f16:2x8x4x4:nhwc x=f16:2x8x8x8:nhwc mode=max window=3,3 pad=1,1 stride=2,2 beta=any "
      "epilogue=user:pooled prologue.mean=f16:8 epilogue.gate=f32:2x8x8x8:nchw epilogue.bias=f32:8:2",
      all);
  expect_served_right(
      "pool_backward dy=f32:3x5x4 dx=f32:3x5x9:70,11,1 mode=avg window=3 stride=2 n=? epilogue=user:pooled "
      "prologue.mean=f32:5:2 epilogue.gate=f32:1x5x9 epilogue.bias=f16:5",
      all);
  expect_served_right(
      "pool_backward dy=f32:2x3x2x3 indices=i32:2x3x2x3 dx=f32:2x3x4x6 mode=max window=2,2 stride=2,2 "
      "epilogue=user:pooled prologue.mean=u8:3 epilogue.gate=bf16:2x3x4x6 epilogue.bias=f32:3",
      all);
}

TEST(UserCodeOfPoolingGradients, IsRightWindowByWindow) {
  expect_served_right(
      "pool_backward dy=f16:2x8x2x3:nhwc x=f16:2x8x7x9:nhwc mode=max window=3,2 stride=4,3 beta=any "
      "epilogue=user:pooled prologue.mean=f16:8 epilogue.gate=f32:2x8x7x9:nchw epilogue.bias=f32:8:2",
      {"pool_backward_scatter"});
}

TEST(UserCodeOfPoolingGradients, IsRightAxisByAxis) {
  expect_served_right(
      "pool_backward dy=f16:2x8x4x5:nhwc x=f16:2x8x8x8:nhwc mode=max window=5,4 beta=any epilogue=user:pooled "
      "prologue.mean=f16:8 epilogue.gate=f32:2x8x8x8:nchw epilogue.bias=f32:8:2",
      {"pool_backward_separable"});
  expect_served_right(
      "pool_backward dy=f32:3x5x4x7 dx=f32:3x5x6x9 mode=avg window=3 n=? epilogue=user:pooled "
      "prologue.mean=f32:5:2 epilogue.gate=f32:1x5x6x9 epilogue.bias=f16:5",
      {"pool_backward_separable"});
}

// The code reads dy, too: the indices say where it comes from.
TEST(UserCodeOfUnpoolingsGradient, IsRightInEveryKernel) {
  const std::vector<std::string> all = {"unpool_backward_simple", "unpool_backward_gather"};
  expect_served_right(
      "unpool_backward dy=f16:2x8x8x8:nhwc indices=i32:2x8x4x4:nhwc window=3,3 pad=1,1 stride=2,2 beta=any "
      "epilogue=user:pooled prologue.mean=f16:8 epilogue.gate=f32:2x8x4x4:nchw epilogue.bias=f32:8:2",
      all);
  expect_served_right(
      "unpool_backward dy=f32:3x5x9:70,11,1 indices=i32:3x5x4 window=3 stride=2 n=? epilogue=user:pooled "
      "prologue.mean=f32:5:2 epilogue.gate=f32:1x5x4 epilogue.bias=f16:5",
      all);
}

TEST(UserCodeOfPooling, GoesWithIndices) {
  for (const std::string order : {"nchw", "nhwc"}) {
    expect_served_right("pool_forward x=f16:2x8x9x8:" + order + " indices=i32:2x8x4x4:" + order +
                            " mode=max window=2,2 stride=2,2 beta=any epilogue=user:centred "
                            "epilogue.gate=f32:2x8x4x4:nchw prologue.mean=f16:8",
                        {"pool_simple", "pool_indexed"});
  }
}

// The step that adds the losses up, and the kernel that writes indices, too; and prologues.
TEST(CheckOfUserEpiloguesOfRows, FindsCodeThatWasLeftOut) {
  for (const char* line :
       {"cross_entropy_forward x=f32:3x5 epilogue=user:scaled epilogue.gate=f32:1",
        "pool_forward x=f32:1x2x4x4 indices=i32:1x2x2x2 window=2,2 stride=2,2 epilogue=user:scaled "
        "epilogue.gate=f32:1x2x2x2",
        "softmax_backward y=f32:2x3 epilogue=user:squared", "cross_entropy_backward x=f32:3x5 epilogue=user:squared"}) {
    const Request coded = Request::parse(line, expressions());
    EXPECT_FALSE(check_as(coded, stripped_of_user_code(coded)));
  }
}

// By the indices alone: the results are as they should be.
TEST(CheckOfUserEpiloguesOfRows, FindsIndicesOfOtherElements) {
  const std::string pool = "pool_forward x=f32:1x2x4x4 indices=i32:1x2x2x2 window=2 stride=2 epilogue=user:";
  EXPECT_FALSE(
      check_as(Request::parse(pool + "from_below", expressions()), Request::parse(pool + "nothing", expressions())));
}

}  // namespace
}  // namespace kiln::user_code_rows_test
