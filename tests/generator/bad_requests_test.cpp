// Refusals of each operation.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kiln/base/error.h"
#include "kiln/generator/request.h"

namespace kiln::bad_requests_test {
namespace {

using testing::HasSubstr;

struct Bad {
  std::string line, message;
};

class BadRequest : public testing::TestWithParam<Bad> {};

TEST_P(BadRequest, IsRefusedWithItsReason) {
  try {
    FAIL() << "accepted as " << Request::parse(GetParam().line).key();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr(GetParam().message));
  }
}

// Normalisations and filters of regions alone have a sixth.
INSTANTIATE_TEST_SUITE_P(Dimensions, BadRequest,
                         testing::Values(Bad{"tensor_set y=f32:1x1x1x1x1x1",
                                             "y has 6 dimensions (tensors of tensor_set have 1 to 5)"},
                                         Bad{"conv_forward x=f32:1x1x1x1x1x1 w=f32:1x1x1",
                                             "x has 6 dimensions (tensors of conv_forward have 1 to 5)"}));

INSTANTIATE_TEST_SUITE_P(Resize, BadRequest,
                         testing::Values(Bad{"resize x=f32:1x3x4x4 y=f32:1x3x8", "x has 4 and y has 3 dimensions"},
                                         Bad{"resize x=f32:1x3x4 y=f32:2x3x8", "y has extents 2x3x8, expected 1x3x8"},
                                         Bad{"resize_backward dy=f32:1x3x8", "operand dx is missing"},
                                         Bad{"resize_backward dy=i32:1x3x8 dx=f32:1x3x4", "dy is i32"},
                                         Bad{"resize_backward dy=f32:1x3x8x8 dx=f32:1x3x4",
                                             "dx has 3 and dy has 4 dimensions"},
                                         Bad{"resize_backward dy=f32:1x3x9 dx=f32:1x3x4 up=2 down=1",
                                             "dy has extent 9 along w, expected 8"}));

INSTANTIATE_TEST_SUITE_P(
    Im2col, BadRequest,
    testing::Values(
        Bad{"im2col x=f32:2x3x5x7", "the window is missing or not numbers (add window=h,w"},
        Bad{"im2col x=f32:2x3x5x7 window=3,3,3", "window=3,3,3 has 3 values (give 2)"},
        Bad{"im2col x=f32:2x3x5x7 window=0", "the window of h is 0 (it must be 1 or more)"},
        Bad{"im2col x=f32:2x3x5x7 window=3 stride=0", "the stride of h is 0 (it must be 1 or more)"},
        Bad{"im2col x=f32:2x3x5x7 window=3 pad=-1", "the padding in front of h is -1 (it must be 0 or more)"},
        Bad{"im2col x=f32:2x3x5x7 window=6",
            "the window does not fit into the padded input: along h it spans 6 elements, and x has 5 with its padding"},
        Bad{"im2col x=f32:2x3x5x7 y=f32:2x27x3x6 window=3",
            "y has extents 2x27x3x6, expected 2x27x3x5 (N and C of x with the elements of a window, and the windows "
            "along "
            "each axis)"},
        Bad{"im2col x=f32:2x3x5x7 y=f32:2x27x15 window=3", "y has extents 2x27x15, expected 2x27x3x5"},
        Bad{"im2col x=f32:1x4194304x1x1 window=2147483647 pad=1073741824",
            "the channels of its columns are more than 64 bits count (use a smaller window)"},
        Bad{"col2im x=f32:2x27x3x5 window=3", "operand y is missing"},
        Bad{"col2im x=i32:2x27x3x5 y=f32:2x3x5x7 window=3", "x is i32"},
        Bad{"col2im x=f32:2x26x3x5 y=f32:2x3x5x7 window=3", "x has extents 2x26x3x5, expected 2x27x3x5 (N and C of y"},
        Bad{"col2im x=f32:1x27x3x5 y=f32:2x3x5x7 window=3", "x has extents 1x27x3x5, expected 2x27x3x5 (N and C of y"},
        Bad{"col2im x=f32:2x27x3x5 y=f32:2x3x5x7 window=3 stride=2",
            "x has extents 2x27x3x5, expected 2x27x2x3 (N and C of y"},
        Bad{"col2im x=f32:2x27x3x5 y=f32:2x3x2x7 window=3",
            "along h it spans 3 elements, and y has 2 with its padding"}));

INSTANTIATE_TEST_SUITE_P(Dropout, BadRequest,
                         testing::Values(Bad{"dropout y=f32:3", "operand x is missing"},
                                         Bad{"dropout x=i32:3", "x is i32"},
                                         Bad{"dropout x=f32:3x4 y=f32:4x3", "y has extents 4x3, expected 3x4"}));

INSTANTIATE_TEST_SUITE_P(
    Gather, BadRequest,
    testing::Values(Bad{"gather indices=i32:3x1", "operand x is missing"},
                    Bad{"gather x=f32:4x5", "operand indices is missing"},
                    Bad{"gather x=f32:4x5 indices=i32:3x1 axis=2", "axis 2 is outside the 2 dimensions of x"},
                    Bad{"gather x=f32:4x5 indices=i32:3x1 axis=-3", "axis -3 is outside the 2 dimensions of x"},
                    Bad{"gather x=f32:4x5 indices=i32:3", "indices have 1 dimensions, x has 2"},
                    Bad{"gather x=f32:4x5 indices=i32:3x2", "along dimension 1 x has extent 5 and indices 2"}));

INSTANTIATE_TEST_SUITE_P(
    TensorOpBackward, BadRequest,
    testing::Values(Bad{"tensor_op_backward dy=f32:4x5 mode=add", "operand dx is missing"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x5 mode=mul",
                        "operand b is missing (the gradient of mul by a reads it)"},
                    Bad{"tensor_op_backward dy=f32:4x5 a=f32:4x5 b=f32:4x5 mode=mul",
                        "operand a is given (the gradient of mul by a does not read it)"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x5 mode=lt", "mode=lt is unknown"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x5 mode=select",
                        "select has no gradient by a (it is 0)"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x5 mode=exp input=b",
                        "exp has no gradient by b (it has no such input)"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x5 mode=add input=d", "input=d is unknown"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:4x2 mode=add", "dx has extents 4x2, expected 4x5"},
                    Bad{"tensor_op_backward dy=f32:4x5 b=f32:5 dx=f32:4x5 mode=mul", "b has extents 5, expected 4x5"},
                    Bad{"tensor_op_backward dy=f32:4x5 dx=f32:1x5 mode=add n=?", "batch"},
                    Bad{"tensor_op_backward dy=i32:4x5 dx=f32:4x5 mode=add", "dy is i32"}));

INSTANTIATE_TEST_SUITE_P(
    ReduceBackward, BadRequest,
    testing::Values(Bad{"reduce_backward dy=f32:4x1 axes=1", "operand dx is missing"},
                    Bad{"reduce_backward dy=f32:4x5 dx=f32:4x5 axes=1", "dy has extents 4x5, expected 4x1"},
                    Bad{"reduce_backward dy=f32:4x1 dx=f32:4x5 axes=2", "axis 2 is outside"},
                    Bad{"reduce_backward dy=f32:4x1 x=f32:4x5 dx=f32:4x5 axes=1",
                        "operand x is given (the gradient of add reads dy)"},
                    Bad{"reduce_backward dy=f32:4x1 dx=f32:4x5 axes=1 mode=norm1",
                        "operand x is missing (the gradient of norm1 reads dy, x)"},
                    Bad{"reduce_backward dy=f32:4x1 x=f32:4x5 axes=1 mode=norm2",
                        "operand y is missing (the gradient of norm2 reads dy, x, y)"},
                    Bad{"reduce_backward dy=f32:4x1 dx=f32:4x5 axes=1 mode=max",
                        "operand indices is missing (the gradient of max reads dy, indices)"},
                    Bad{"reduce_backward dy=f32:4x1 x=f32:4x6 dx=f32:4x5 axes=1 mode=norm1",
                        "x has extents 4x6, expected 4x5"},
                    Bad{"reduce_backward dy=f32:4x1 indices=i32:4x5 dx=f32:4x5 axes=1 mode=min",
                        "indices has extents 4x5, expected 4x1"},
                    Bad{"reduce_backward dy=f32:1x5 dx=f32:4x5 axes=0 n=?", "batch"},
                    Bad{"reduce_backward dy=i32:4x1 dx=f32:4x5 axes=1", "dy is i32"},
                    Bad{"reduce_backward dy=f32:4x1 dx=f32:4x5 axes=1 mode=median", "mode=median is unknown"}));

INSTANTIATE_TEST_SUITE_P(
    Scatter, BadRequest,
    testing::Values(
        Bad{"scatter updates=f32:6x3 indices=i32:6x1", "operand y is missing"},
        Bad{"scatter updates=f32:6x3 indices=i32:6x1 y=f32:4x3 axis=2", "axis 2 is outside the 2 dimensions of y"},
        Bad{"scatter updates=f32:6x3 indices=i32:6 y=f32:4x3", "updates have 2 dimensions, indices 1, y has 2"},
        Bad{"scatter updates=f32:6x2 indices=i32:6x1 y=f32:4x3", "updates has extents 6x2, expected 6x3"},
        Bad{"scatter updates=f32:6x3 indices=i32:5x1 y=f32:4x3",
            "along dimension 0 indices have extent 5 and updates 6 (they have to be equal)"},
        Bad{"scatter updates=f32:6x3 indices=i32:1x1 y=f32:4x3", "along dimension 0 indices have extent 1"},
        Bad{"scatter updates=f32:6x3 indices=i32:6x2 y=f32:4x3",
            "along dimension 1 indices have extent 2 and updates 3 (they have to be equal, or that of indices 1)"},
        Bad{"scatter updates=f32:4x3 indices=i32:4x1 y=f32:4x3 n=?", "the batch cannot be dynamic along the axis"},
        Bad{"scatter updates=i32:6x3 indices=i32:6x1 y=f32:4x3", "updates is i32"},
        Bad{"scatter updates=f32:6x3 indices=i32:6x1 y=f32:4x3 mode=mean", "mode=mean is unknown"}));

INSTANTIATE_TEST_SUITE_P(
    LocalNorm, BadRequest,
    testing::Values(
        Bad{"local_norm_forward y=f32:3x4", "operand x is missing"}, Bad{"local_norm_forward x=i8:3x4", "x is i8"},
        Bad{"local_norm_forward x=f32:3x4 y=f32:4x3", "y has extents 4x3, expected 3x4"},
        Bad{"local_norm_forward x=f32:3x4 means=f32:3x1", "means has extents 3x1, expected 3x4"},
        Bad{"local_norm_forward x=f32:3", "axis 1 is outside the 1 dimensions of x"},
        Bad{"local_norm_forward x=f32:3x4 axes=1,1", "an axis stands twice"},
        Bad{"local_norm_forward x=f32:3x4x5x6x7 axes=1,2,3,4", "the window has more than 3 axes"},
        Bad{"local_norm_forward x=f32:3x4 axes=0 n=?", "the batch cannot be dynamic along one of the axes"},
        Bad{"local_norm_forward x=f32:3x4 size=0", "size=0 is no extent of a window"},
        Bad{"local_norm_forward x=f32:3x4 size=65536", "size=65536 is no extent of a window"},
        Bad{"local_norm_forward x=f32:3x4 size=3,3", "size"}, Bad{"local_norm_forward x=f32:3x4 size=all", "size"},
        Bad{"local_norm_backward x=f32:3x4 dy=f32:3x5", "dy has extents 3x5, expected 3x4"},
        Bad{"local_norm_backward x=f32:3x4 dmeans=f32:3x4:1,1", "dmeans"},
        Bad{"local_norm_backward x=f32:3x4 dmeans_beta=1", "dmeans_alpha and dmeans_beta concern no output"},
        Bad{"local_norm_backward x=f32:3x4 dmeans=f32:3x4 dmeans_beta=2", "dmeans_beta=2 is unknown"}));

INSTANTIATE_TEST_SUITE_P(
    CrossEntropy, BadRequest,
    testing::Values(
        Bad{"cross_entropy_forward targets=i32:3", "operand x is missing"},
        Bad{"cross_entropy_forward x=f32:3", "x has 1 dimensions"},
        Bad{"cross_entropy_forward x=f32:3x0", "x has no classes"},
        Bad{"cross_entropy_forward x=f32:3x4 targets=f32:3", "targets is f32"},
        Bad{"cross_entropy_forward x=f32:3x4x5 targets=i32:3x4", "targets has extents 3x4, expected 3x5"},
        Bad{"cross_entropy_forward x=f32:3x4 losses=f32:3", "there is an operand losses with reduction=mean"},
        Bad{"cross_entropy_forward x=f32:3x4 loss=f32:1 reduction=none",
            "there is an operand loss with reduction=none"},
        Bad{"cross_entropy_forward x=f32:3x4 loss=f32:3", "loss has extents 3, expected 1"},
        Bad{"cross_entropy_forward x=f32:3x4 reduction=median", "reduction=median is unknown"},
        Bad{"cross_entropy_forward x=f32:3x4 ignore=3000000000", "ignore=3000000000 is no i32"},
        Bad{"cross_entropy_forward x=f32:3x4 weights=f32:3", "weights has extents 3, expected 4"},
        Bad{"cross_entropy_forward x=f32:3x4 weights=f16:4", "weights is f16"},
        Bad{"cross_entropy_forward x=f32:3x4 smoothing=0.1", "smoothing=0.1 is unknown"},
        Bad{"cross_entropy_backward x=f32:3x4 dlosses=f32:3", "there is an operand dlosses with reduction=mean"},
        Bad{"cross_entropy_backward x=f32:3x4 dx=f32:3x5", "dx has extents 3x5, expected 3x4"},
        Bad{"cross_entropy_backward x=f32:3x4 n=?", "the gradient of a mean depends on the whole batch"}));

INSTANTIATE_TEST_SUITE_P(
    Gemm, BadRequest,
    testing::Values(
        Bad{"gemm a=f32:3x4", "operand b is missing"}, Bad{"gemm a=f32:3 b=f32:3", "a has 1 and b 1 dimensions"},
        Bad{"gemm a=f32:2x3x4 b=f32:4x5", "a has 3 and b 2 dimensions"},
        Bad{"gemm a=f32:3x4 b=f32:5x6", "a has rows of 4 elements, b columns of 5"},
        Bad{"gemm a=f32:2x3x4 b=f32:3x4x5", "batch dimension 0 of a is 2, that of b 3"},
        Bad{"gemm a=f32:3x4 b=f32:4x5 c=f32:5x3", "c has extents 5x3, expected 3x5"},
        Bad{"gemm a=f32:1x3x4 b=f32:2x4x5 c=f32:1x3x5", "c has extents 1x3x5, expected 2x3x5"},
        Bad{"gemm a=f32:3x4 b=f32:4x5 c=f32:3x5:0,1", "share memory"}, Bad{"gemm a=i32:3x4 b=f32:4x5", "a is i32"},
        Bad{"gemm a=f32:3x4 b=f32:4x5 epilogue=bias bias=f32:3", "bias has extents 3, expected 5"},
        Bad{"gemm a=f32:3x4 b=f32:4x5 residual=f32:3x5", "no epilogue stage add"},
        Bad{"gemm a=f32:2x3x4 b=f32:1x4x5 n=?", "the batch can only be dynamic where there are no batch dimensions"}));

INSTANTIATE_TEST_SUITE_P(
    ConvForward, BadRequest,
    testing::Values(
        Bad{"conv_forward x=f32:1x3x8x8", "operand w is missing"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x4 dilation=4 pad=1,2,1,2",
            "into the padded input: along w it spans 13 elements, and x has 12 with its padding (pad more or use"},
        Bad{"conv_backward_data dy=f32:1x4x1x1 w=f32:4x3x3x3 dx=f32:1x3x2x5",
            "into the padded input: along h it spans 3 elements, and dx has 2 with its padding"},
        Bad{"pool_forward x=f32:1x3x8x5 window=3,9 pad=0,1",
            "the window does not fit into the padded input: along w it spans 9 elements, and x has 7 with its padding"},
        Bad{"conv_forward x=i32:1x3x8x8 w=f32:4x3x3x3", "x is i32"},
        Bad{"conv_backward_data dy=i8:1x4x6x6 w=f32:4x3x3x3 dx=f32:1x3x8x8", "dy is i8"},
        Bad{"local_conv_forward x=i8:1x3x8x8 w=f32:36x4x3x3x3", "x is i8"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=i8:36x4x3x3x3", "w is i8"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:36x4x3x3x3 y=i32:1x4x6x6", "y is i32"},
        Bad{"conv_forward w=f32:1x3x8x8", "operand x is missing"},
        Bad{"conv_forward x=f32:1x3x8 w=f32:4x3x3x3", "x has 3 and w has 4 dimensions"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x2x3x3", "w has 2 channels per filter, expected 3"},
        Bad{"conv_forward x=f32:1x4x8x8 w=f32:4x2x3x3 groups=3", "groups=3 does not divide the 4 channels"},
        Bad{"conv_forward x=f32:1x4x8x8 w=f32:3x2x3x3 groups=2", "groups=2 does not divide the 3 filters"},
        Bad{"conv_forward x=f32:1x4x8x8 w=f32:4x4x3x3 groups=0", "groups=0 does not divide"},
        Bad{"conv_forward x=f32:1x0x8x8 w=f32:4x0x3x3", "x has no channels"},
        Bad{"local_conv_forward x=f32:1x0x8x8 w=f32:144x0x3x3", "x has no channels"},
        Bad{"conv_forward x=f32:1x3x2x2 w=f32:4x3x3x3", "the filter does not fit"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 stride=0", "the stride of h is 0"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 pad=-1", "the padding in front of h is -1"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 dilation=0,1", "the dilation of h is 0"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 pad=same", "pad=same is not a list of integers"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 pad=1,1,1", "pad=1,1,1 has 3 values"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 y=f32:1x4x8x8", "y has extents 1x4x8x8, expected 1x4x6x6"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 y=f32:1x4x6x6:144,36,1,1", "share memory"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 y=f32:1 epilogue=bias", "y has extents 1, expected 1x4x6x6"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 bias=f32:4", "no epilogue stage bias"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 epilogue=bias bias=f32:5", "bias has extents 5, expected 4"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 epilogue=relu+relu", "stands twice"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 mode=fourier", "mode=fourier is unknown"},
        Bad{"conv_forward x=f32:1x3x8x8@2 w=f32:4x3x3x3", "x has alignment 2"},
        Bad{"conv_forward x=f32:1x3x0x8 w=f32:4x3x3x3 pad=3", "the extent of h is 0"}));

INSTANTIATE_TEST_SUITE_P(
    ConvBackward, BadRequest,
    testing::Values(
        Bad{"conv_backward_data dy=f32:1x4x6x6", "operand w is missing"},
        Bad{"conv_backward_data w=f32:4x3x3x3", "operand dy is missing"},
        Bad{"conv_backward_data dy=f32:4x6 w=f32:4x3x3x3", "dy has 2 dimensions"},
        Bad{"conv_backward_data dy=f32:1x4x6 w=f32:4x3x3x3", "dy has 3 and w has 4 dimensions"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 dx=f32:1 epilogue=bias",
            "dy has 4 and dx has 1 dimensions"},
        Bad{"conv_backward_data dy=f32:1x5x6x6 w=f32:4x3x3x3", "w has 4 filters, expected 5"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 groups=3", "groups=3 does not divide the 4 filters"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 groups=0", "groups=0 does not divide"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 groups=9223372036854775807",
            "groups=9223372036854775807 does not divide the 4 filters"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 dx=f32:1x3x8", "dy has 4 and dx has 3 dimensions"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 dx=f32:1x4x8x8",
            "dx has extents 1x4x8x8, expected 1x3x8x8"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 dx=f32:1x3x8x9",
            "dy has extents 1x4x6x6, expected 1x4x6x7"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 output_pad=1", "output_pad of h is 1"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 stride=2 output_pad=0,2", "output_pad of w is 2"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 dx=f32:1x3x13x14 stride=2 output_pad=1",
            "dx has extents 1x3x13x14, expected 1x3x14x14"},
        Bad{"conv_backward_data dy=f32:1x4x2x2 w=f32:4x3x1x1 pad=1", "dx would have the extent 0 along h"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 stride=0", "the stride of h is 0"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 epilogue=bias bias=f32:4",
            "bias has extents 4, expected 3"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:4x3x3x3 residual=f32:1x3x8x8", "no epilogue stage add"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x3x3x3 epilogue=relu",
            "it takes no epilogue of stages"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6", "operand dw is missing"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x3x3", "x has 4 and dw has 3 dimensions"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x2x3x3", "dw has 2 channels per filter"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x3x2x3",
            "dy has extents 1x4x6x6, expected 1x4x7x6"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:2x4x6x6 dw=f32:4x3x3x3",
            "dy has extents 2x4x6x6, expected 1x4x6x6"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6 dw=f32:4x3x3x3", "dy has extents 1x4x6, expected 1x4x6x6"},
        Bad{"conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x1x1 dw=f32:4x3x9x9", "the filter does not fit"},
        Bad{"conv_backward_bias dy=f32:4", "dy has 1 dimensions"},
        Bad{"conv_backward_bias dy=f32:4x0x3", "dy has no channels"},
        Bad{"conv_backward_bias dy=f32:1x4x6x6 db=f32:5", "db has extents 5, expected 4"}));

INSTANTIATE_TEST_SUITE_P(
    LocalConv, BadRequest,
    testing::Values(
        Bad{"local_conv_forward x=f32:1x3x8x8", "operand w is missing"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:144x3x3x3 grid=6,6,1", "grid=6,6,1 has 3 values"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:144x3x3x3 grid=7,6", "grid has 7 regions along h"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:144x3x3x3 grid=6,-1", "grid has -1 regions along w"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:144x3x3x3 grid=all", "grid=all is not a list of integers"},
        Bad{"reduce x=f32:3x4 axes=all", "axes=all is not a list of integers"},
        Bad{"norm_inference axes=all", "axes=all is not a list of integers"},
        Bad{"norm_forward x=f32:3x4 activation=sine", "activation=sine is unknown"},
        Bad{"norm_forward x=f32:3x4 epilogue=add+relu activation=tanh", "it has an activation besides"},
        Bad{"norm_affine x=f32:3x4 w=f32:1x3", "w has extents 1x3, expected 3x4"},
        Bad{"norm_affine x=f32:3x4 w=f32:1x4 scale=f32:3x1", "scale has extents 3x1, expected 3x4"},
        Bad{"norm_affine x=f32:3x4 scale=f32:1x1", "scale has extents 1x1, expected 3x1"},
        Bad{"norm_affine x=f32:3x4 scale=f32:3x2", "scale has extents 3x2, expected 3x1"},
        Bad{"norm_affine x=f32:3x4 scale=f32:3", "scale has extents 3, expected 3x1"},
        Bad{"norm_affine x=f32:3x4 scale=f32:3x4 shift=f32:3x1", "shift has extents 3x1, expected 3x4"},
        Bad{"norm_affine x=f32:3x4 scale=f16:3x1", "scale is f16"}, Bad{"norm_affine x=f32:3x4 beta=1", "beta"},
        Bad{"norm_affine x=f32:3x4 epilogue=relu", "it takes no epilogue of stages"},
        Bad{"norm_affine x=f32:3x4 axes=0 n=?", "the batch cannot be dynamic"},
        Bad{"norm_affine x=f32:4x4 w=f32:4x4 n=?", "w has a batch, which is dynamic"},
        Bad{"norm_backward dy=f32:3x4 y=f32:3x4 activation=relu", "y is given and there is an activation"},
        Bad{"norm_backward dy=f32:3x4 b=f32:1x4", "b is given, but there is no activation"},
        Bad{"norm_backward dy=f32:3x4 b=f32:1x3 activation=elu", "b has extents 1x3, expected 3x4"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3", "w has 4 filters for 6x6 regions"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:10x3x3x3 grid=2", "w has 10 filters for 2x2 regions"},
        Bad{"local_conv_forward x=f32:1x4x8x8 w=f32:12x2x3x3 grid=2 groups=2",
            "groups=2 does not divide the 3 filters"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:0x3x3x3 grid=2", "w has 0 filters for 2x2 regions"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:8x3x3x3 y=f32:1x8x6x6 grid=2", "y has extents 1x8x6x6, expected"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:8x3x3x3 grid=2 epilogue=bias bias=f32:8", "bias has extents 8"},
        Bad{"local_conv_forward x=f32:1x3x2x2 w=f32:4x3x3x3", "the filter does not fit"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 stride=0", "the stride of h is 0"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 dilation=9223372036854775807", "the dilation of h is"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:5x4x3x3x3 grid=2", "w has 5 regions, grid has 2x2"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:2x4x3x3x3 grid=2", "w has 2 regions, grid has 2x2"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x4x2x3x3 grid=2", "w has 2 channels per filter, expected 3"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x0x3x3x3 grid=2", "w has no filters (give 1 or more)"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:4x4x3x9x3 grid=2",
            "the filter does not fit into the padded input: along h it spans 9 elements, and x has 8 with its padding"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:1x4x4x3x3x3 grid=2", "x has 4 and w has 6 dimensions"},
        Bad{"local_conv_forward x=f32:1x3x8x8 w=f32:3x3x3 grid=2", "x has 4 and w has 3 dimensions"},
        Bad{"conv_forward x=f32:1x3x8x8 w=f32:1x4x3x3x3", "x has 4 and w has 5 dimensions"},
        Bad{"conv_forward x=f32:1x3x8x8x8 w=f32:1x4x3x3x3x3", "w has 6 dimensions"},
        Bad{"conv_backward_data dy=f32:1x4x6x6 w=f32:1x4x3x3x3", "dy has 4 and w has 5 dimensions"},
        Bad{"local_conv_backward_data dy=f32:1x5x6x6 w=f32:4x4x3x3x3 grid=2", "w has 4 filters, expected 5"},
        Bad{"local_conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:9x4x3x3x3 grid=2", "dw has 9 regions"},
        Bad{"local_conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x4x3x3x3:36,108,9,3,1 grid=2",
            "elements of output dw share memory"},
        Bad{"local_conv_backward_data dy=f32:1x5x6x6 w=f32:16x3x3x3 grid=2", "w has 4 filters, expected 5"},
        Bad{"local_conv_backward_data dy=f32:1x4x6x6 w=f32:16x3x3x3 grid=7", "grid has 7 regions along h"},
        Bad{"local_conv_backward_data dy=f32:1x4x6x6 w=f32:16x3x3x3 dx=f32:1x3x9x8 grid=2", "dy has extents 1x4x6x6"},
        Bad{"local_conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:4x3x3x3", "dw has 4 filters for 6x6"},
        Bad{"local_conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:20x3x3x3 grid=2", "dy has extents 1x4x6x6"},
        Bad{"local_conv_backward_filter x=f32:1x3x8x8 dy=f32:1x4x6x6 dw=f32:16x3x3x3 grid=2 epilogue=relu",
            "it takes no epilogue of stages"}));

INSTANTIATE_TEST_SUITE_P(
    PoolForward, BadRequest,
    testing::Values(Bad{"pool_forward x=f32:1x3x8x8 mode=max", "the window is missing"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=big", "the window is missing or not numbers"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=median window=2", "mode=median is unknown"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=9", "does not fit"},
                    Bad{"pool_forward x=f32:1x3x8x8 y=f32:1x3x5x4 mode=max window=2 stride=2", "extent 5 along h"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=2 epilogue=relu", "it takes no epilogue of stages"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=2 tf32", "no choice of arithmetic"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=2 ceil=2", "ceil is 2"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=max window=2 ceil=-7", "ceil is -7"},
                    Bad{"pool_forward x=f32:1x3x8x8 mode=3 window=2", "mode=3 is unknown"}));

INSTANTIATE_TEST_SUITE_P(
    Fp8, BadRequest,
    testing::Values(Bad{"norm_forward x=f8e4m3:2x3x4x4 axes=0,2,3", "x is f8e4m3 (it may be f32, f16 or bf16)"},
                    Bad{"reduce x=f8e5m2:2x3 axes=1", "x is f8e5m2 (it may be f32, f16, bf16, i32, i8 or u8)"},
                    Bad{"activation_forward x=i8:2x3", "it may be f32, f16, bf16, f8e4m3 or f8e5m2; integers"}));

INSTANTIATE_TEST_SUITE_P(
    PoolIndices, BadRequest,
    testing::Values(
        Bad{"pool_forward x=f32:1x3x8x8 indices=i32:1x3x4x5 window=2 stride=2",
            "indices has extents 1x3x4x5, expected"},
        Bad{"pool_forward x=f32:1x3x8x8 indices=f32:1x3x4x4 window=2 stride=2", "indices is f32 (it may be i32)"},
        Bad{"pool_forward x=i8:1x3x8x8 mode=avg window=2", "x is i8"},
        Bad{"pool_forward x=f32:1x3x8x8 y=u8:1x3x4x4 mode=avg window=2 stride=2", "y is u8"},
        Bad{"pool_forward x=f32:1x3x8x8 indices=i32:1x3x4x4 mode=avg window=2 stride=2", "only maxima have indices"},
        Bad{"pool_forward x=f32:1x1x65536x32768 indices=i32:1x1x1x1 window=global", "more positions than i32"},
        Bad{"pool_backward dy=f32:1x3x4x4 x=f32:1x3x8x8 indices=i32:1x3x4x4 window=2 stride=2", "say the same"},
        Bad{"pool_backward dy=f32:1x3x4x4 dx=f32:1x3x8x8 indices=i32:1x3x4x4 mode=avg window=2 stride=2",
            "only maxima have indices"},
        Bad{"pool_backward dy=f32:1x3x4x4 dx=f32:1x3x8x8 window=2 stride=2", "operand x is missing"},
        Bad{"pool_backward dy=f32:1x3x4x4 indices=i32:1x3x4x4 window=2 stride=2", "operand dx is missing"},
        Bad{"unpool_backward dy=f32:1x3x8x8 window=2 stride=2", "operand indices is missing"},
        Bad{"unpool_backward dy=f32:1x3x8x8 indices=f32:1x3x4x4 window=2 stride=2", "indices is f32 (it may be i32)"},
        Bad{"unpool_backward dy=f32:1x3x8x8 indices=i32:1x3x4x4 dx=f32:1x3x4x5 window=2 stride=2", "extent 5 along w"},
        Bad{"unpool_backward dy=f32:1x3x8x8 indices=i32:1x3x4x5 dx=f32:1x3x4x4 window=2 stride=2",
            "indices has extents 1x3x4x5"},
        Bad{"unpool_backward dy=f32:1x3x8x8 indices=i32:1x3x4x4 window=2 stride=2 epilogue=relu", "epilogue"},
        Bad{"unpool_backward dy=f32:1x1x65536x32768 indices=i32:1x1x1x1 window=global", "more positions than i32"}));

INSTANTIATE_TEST_SUITE_P(SoftmaxForward, BadRequest,
                         testing::Values(Bad{"softmax_forward x=f32:2x3 axis=2", "axis 2 is outside"},
                                         Bad{"softmax_forward x=f32:2x3 axis=-3", "axis -3 is outside"},
                                         Bad{"softmax_forward x=f32:2x3 y=f32:2x4", "y has extents 2x4, expected 2x3"},
                                         Bad{"softmax_forward x=f32:2x3 axis=0 n=?", "cannot be dynamic"}));

INSTANTIATE_TEST_SUITE_P(
    SoftmaxBackward, BadRequest,
    testing::Values(Bad{"softmax_backward dy=f32:2x3", "operand y is missing"},
                    Bad{"softmax_backward y=f32:2x3 axis=2", "axis 2 is outside the 2 dimensions of y"},
                    Bad{"softmax_backward y=f32:2x3 dy=f32:2x4", "dy has extents 2x4, expected 2x3"},
                    Bad{"softmax_backward y=f32:2x3 dx=f32:3x3", "dx has extents 3x3, expected 2x3"},
                    Bad{"softmax_backward y=i8:2x3", "y is i8"},
                    Bad{"softmax_backward y=f32:2x3 epilogue=relu", "it takes no epilogue of stages"},
                    Bad{"softmax_backward y=f32:2x3 axis=0 n=?", "cannot be dynamic"}));

INSTANTIATE_TEST_SUITE_P(
    Activation, BadRequest,
    testing::Values(
        Bad{"activation_forward mode=relu", "operand x is missing"},
        Bad{"activation_forward x=f32:2x3 mode=sine", "mode=sine is unknown"},
        Bad{"activation_forward x=f32:2x3 y=f32:3x2 mode=relu", "y has extents 3x2, expected 2x3"},
        Bad{"activation_forward x=f32:2x3 y=f32:2x3:1,1 mode=relu", "share memory"},
        Bad{"activation_forward x=i8:2x3 mode=relu", "x is i8"},
        Bad{"activation_forward x=f32:2x3 y=u8:2x3 mode=relu", "y is u8"},
        Bad{"activation_backward x=i8:2x3 dy=f32:2x3 mode=identity", "x is i8"},
        Bad{"activation_forward x=f32:2x3 mode=relu epilogue=relu", "it takes no epilogue of stages"},
        Bad{"activation_backward dy=f32:2x3 mode=relu", "both x and y are missing"},
        Bad{"activation_backward x=f32:2x3 y=f32:2x3 dy=f32:2x3 mode=relu", "both x and y are given"},
        Bad{"activation_backward y=f32:2x3 dy=f32:2x3 mode=swish", "the derivative of swish cannot be told from y"},
        Bad{"activation_backward x=f32:2x4 dy=f32:2x3 mode=relu", "x has extents 2x4, expected 2x3"},
        Bad{"activation_backward x=f32:2x3 dy=f32:2x3 dx=f32:2x2 mode=relu", "dx has extents 2x2, expected 2x3"}));

INSTANTIATE_TEST_SUITE_P(
    TensorFunctions, BadRequest,
    testing::Values(Bad{"tensor_transform x=f32:2x3 y=f32:2x4", "y has extents 2x4, expected 2x3"},
                    Bad{"tensor_transform x=f32:2x3 y=f32:2x4x1", "y has extents 2x4x1, expected 2x3"},
                    Bad{"tensor_transform x=f32:2x3 pad=1,2,3", "pad=1,2,3 has 3 values"},
                    Bad{"tensor_transform x=f32:2x3 pad=0,-1,0,0", "a pad is -1"},
                    Bad{"tensor_transform x=f32:2x3 pad=1,0,0,0 n=?", "the batch cannot be dynamic and padded"},
                    Bad{"tensor_transform x=f32:0x3 pad=1,0", "x has no batch, and y would be padding alone"},
                    Bad{"tensor_set y=f32:2x3 beta=1", "it has no alpha and no beta"},
                    Bad{"tensor_set y=f32:2x3:0,1", "share memory"},
                    Bad{"tensor_op a=f32:2x3 mode=add", "operand b is missing"},
                    Bad{"tensor_op a=f32:2x3 b=f32:2x3 mode=sqrt", "operand b is given"},
                    Bad{"tensor_op a=f32:2x3 b=f32:2x2 mode=add", "b has extents 2x2, expected 2x3"},
                    Bad{"tensor_op a=f32:2x3 b=f32:3 mode=add", "b has extents 3, expected 2x3"},
                    Bad{"tensor_op a=f32:2x3 b=f32:4x3 mode=add n=?", "b has batch 4, expected 2 as in a"},
                    Bad{"tensor_op a=f32:2x3 b=f32:2x3 mode=nand", "mode=nand is unknown"}));

INSTANTIATE_TEST_SUITE_P(
    Recurrent, BadRequest,
    testing::Values(
        Bad{"recurrent_forward gates=f32:2x3x8 r=f32:1x8x2",
            "gates has 3 dimensions (it is N,T,D,GH, also with one direction)"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:8x2", "r has 2 dimensions (it is D,GH,H)"},
        Bad{"recurrent_forward gates=f32:2x0x1x8 r=f32:1x8x2", "gates has no steps (T is at least 1)"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x0", "r has H 0"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x268435456", "a state has at most 268435455 elements"},
        Bad{"recurrent_forward gates=f32:1x2147483648x1x1 r=f32:1x1x1 cell=relu", "gates has T 2147483648"},
        Bad{"recurrent_forward gates=f32:2x3x2x8 r=f32:2x8x2",
            "gates has D 2 with direction=forward (D is 2 with direction=both, else 1)"},
        Bad{"recurrent_forward gates=f32:2x3x1x6 r=f32:1x6x2",
            "gates has GH 6, and r has H 2 (with cell=lstm GH is 4 times H)"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x6x2", "r has extents 1x6x2, expected 1x8x2"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 r_bias=f32:8x1", "r_bias has extents 8x1, expected 1x8"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 peepholes=f32:1x8",
            "peepholes has extents 1x8, expected 1x6"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 h0=f32:1x2x2", "h0 has extents 1x2x2, expected 2x1x2"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 cn=f32:2x1x3", "cn has extents 2x1x3, expected 2x1x2"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 lengths=i32:3", "lengths has extents 3, expected 2"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 lengths=f32:2", "lengths is f32"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 y=f32:2x3x1x8", "y has extents 2x3x1x8, expected 2x3x1x2"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 saved=f32:2x3x1x8",
            "saved has extents 2x3x1x8, expected 2x3x1x10"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 reset=before",
            "reset=before with cell=lstm (only a gru has a reset gate: leave it out)"},
        Bad{"recurrent_forward gates=f32:2x3x1x2 r=f32:1x2x2 cell=tanh order=iofc", "order=iofc with cell=tanh"},
        Bad{"recurrent_forward gates=f32:2x3x1x6 r=f32:1x6x2 cell=gru c0=f32:2x1x2",
            "there is c0 with cell=gru (only cell=lstm has it"},
        Bad{"recurrent_forward gates=f32:2x3x1x6 r=f32:1x6x2 cell=gru peepholes=f32:1x6",
            "there is peepholes with cell=gru"},
        Bad{"recurrent_forward gates=f32:2x3x1x8 r=f32:1x8x2 batch_invariant", "its kernels keep no order of sums"},
        Bad{"recurrent_backward dy=f32:2x3x2 r=f32:1x8x2 saved=f32:2x3x1x10", "dy has 3 dimensions (it is N,T,D,H"},
        Bad{"recurrent_backward dy=f32:2x3x1x3 r=f32:1x8x2 saved=f32:2x3x1x10",
            "dy has H 3, and r has H 2 (they have to be equal)"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x8x2", "operand saved is missing"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x8x2 saved=f32:2x3x1x8",
            "saved has extents 2x3x1x8, expected 2x3x1x10"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x8x2 saved=f32:2x3x1x10 dgates=f32:2x3x1x2",
            "dgates has extents 2x3x1x2, expected 2x3x1x8"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x8x2 saved=f32:2x3x1x10 dh0=f32:1x2x2",
            "dh0 has extents 1x2x2, expected 2x1x2"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x8x2 saved=f32:2x3x1x10 y=f32:2x3x1x2",
            "there is y with cell=lstm (only cell=gru has it"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x6x2 saved=f32:2x3x1x8 cell=gru",
            "there is no y with cell=gru (give the states that recurrent_forward gave)"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x6x2 saved=f32:2x3x1x8 cell=gru y=f32:2x3x1x3",
            "y has extents 2x3x1x3, expected 2x3x1x2"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x6x2 saved=f32:2x3x1x8 cell=gru y=f32:2x3x1x2 dcn=f32:2x1x2",
            "there is dcn with cell=gru"},
        Bad{"recurrent_backward dy=f32:2x3x1x2 r=f32:1x6x2 saved=f32:2x3x1x8 cell=gru y=f32:2x3x1x2 reset=before "
            "dproducts=f32:2x3x1x6",
            "there is dproducts with reset=before (it is dgates there: leave it out)"}));

INSTANTIATE_TEST_SUITE_P(
    CtcLoss, BadRequest,
    testing::Values(
        Bad{"ctc_loss_forward x=f32:9x5 targets=i32:4x3", "x has 2 dimensions (they are images, steps and classes)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:12", "targets has 1 dimensions (they are images and labels)"},
        Bad{"ctc_loss_forward x=f32:4x9x5", "operand targets is missing"},
        Bad{"ctc_loss_forward targets=i32:4x3", "operand x is missing"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:3x3", "targets has extents 3x3, expected 4x3 (N of x)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=f32:4x3", "targets is f32"},
        Bad{"ctc_loss_forward x=i32:4x9x5 targets=i32:4x3", "x is i32"},
        Bad{"ctc_loss_forward x=f32:4x9x0 targets=i32:4x3", "x has 0 classes (give 1 to 2147483647)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 blank=5", "blank=5 is none of the 5 classes (give 0 to 4)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 blank=-1", "blank=-1 is none of the 5 classes"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 blank=1,2", "blank=1,2 has 2 values"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 input=logits", "input=logits is unknown"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 input_lengths=i32:5",
            "input_lengths has extents 5, expected 4 (one for each image)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 target_lengths=f32:4", "target_lengths is f32"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 target_lengths=i32:5",
            "target_lengths has extents 5, expected 4"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 loss=f32:4x1", "loss has extents 4x1, expected 4"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 prefixes=f32:4x9x3",
            "prefixes has extents 4x9x3, expected 4x9x7 (N and T of x, and 2 L + 1 states)"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 prefixes=f16:4x9x7", "prefixes is f16"},
        Bad{"ctc_loss_forward x=f32:4x9x5 targets=i32:4x3 batch_invariant", "its kernels keep no order of sums"},
        Bad{"ctc_loss_backward x=f32:4x9x5 targets=i32:4x3", "operand prefixes is missing"},
        Bad{"ctc_loss_backward x=f32:4x9x5 targets=i32:4x3 prefixes=f32:4x9x7 dloss=f32:3",
            "dloss has extents 3, expected 4"},
        Bad{"ctc_loss_backward x=f32:4x9x5 targets=i32:4x3 prefixes=f32:4x9x7 dx=f32:4x9x6",
            "dx has extents 4x9x6, expected 4x9x5 (those of x)"}));

INSTANTIATE_TEST_SUITE_P(
    GridSample, BadRequest,
    testing::Values(
        Bad{"grid_sample x=f32:2x3x5 grid=f32:2x4x1", "x has 3 dimensions (it is N,C,H,W or N,C,D,H,W)"},
        Bad{"grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x3", "grid has extents 2x4x6x3 (it is N,P,Q,2)"},
        Bad{"grid_sample x=f32:2x3x4x5x7 grid=f32:2x3x4x6x2", "grid has extents 2x3x4x6x2 (it is N,Z,P,Q,3)"},
        Bad{"grid_sample x=f32:2x3x5x7 grid=f32:2x4x2", "grid has extents 2x4x2 (it is N,P,Q,2)"},
        Bad{"grid_sample x=f32:2x3x5x7 grid=f32:3x4x6x2", "grid has batch 3 (give 2)"},
        Bad{"grid_sample x=f32:2x3x0x7 grid=f32:2x4x6x2", "x has extents 2x3x0x7 (give 1 to 16777216 along each axis)"},
        Bad{"grid_sample x=f32:2x3x5x7", "operand grid is missing"},
        Bad{"grid_sample x=i8:2x3x5x7 grid=f32:2x4x6x2", "x is i8"},
        Bad{"grid_sample x=f32:2x3x4x5x7 grid=f32:2x3x4x6x3 mode=cubic", "mode=cubic in 3-D (use linear or nearest)"},
        Bad{"grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 y=f32:2x3x6x4",
            "y has extents 2x3x6x4, expected 2x3x4x6 (N and C of the image, and the positions of grid)"},
        Bad{"grid_sample x=f32:2x3x5x7 grid=f32:2x4x6x2 padding=mirror", "padding=mirror is unknown"},
        Bad{"grid_sample_backward_data dy=f32:2x3x4x6 grid=f32:2x4x6x2", "operand dx is missing"},
        Bad{"grid_sample_backward_data dy=f32:2x4x4x6 grid=f32:2x4x6x2 dx=f32:2x3x5x7",
            "dy has extents 2x4x4x6, expected 2x3x4x6"},
        Bad{"grid_sample_backward_grid dy=f32:2x3x4x6 x=f32:2x3x5x7 grid=f32:2x4x6x2 dgrid=f32:2x6x4x2",
            "dgrid has extents 2x6x4x2, expected 2x4x6x2 (those of grid)"},
        Bad{"affine_grid theta=f32:2x2x3", "operand grid is missing"},
        Bad{"affine_grid theta=f32:2x2x3 grid=f32:2x4x6x3", "grid has extents 2x4x6x3 (it is N,P,Q,2 or N,Z,P,Q,3)"},
        Bad{"affine_grid theta=f32:2x2x3 grid=f32:2x6x2", "grid has extents 2x6x2 (it is N,P,Q,2 or N,Z,P,Q,3)"},
        Bad{"affine_grid theta=f32:2x3x4 grid=f32:2x4x6x2",
            "theta has extents 2x3x4, expected 2x2x3 (a matrix for each image)"},
        Bad{"affine_grid theta=f32:1x2x3 grid=f32:2x4x6x2",
            "theta has extents 1x2x3, expected 2x2x3 (a matrix for each image)"},
        Bad{"affine_grid theta=f32:1x2x3 grid=f32:1x1x16777217x2",
            "grid has extents 1x1x16777217x2 (give at most 16777216 along each axis)"},
        Bad{"affine_grid theta=f32:2x2x3 grid=f32:2x4x6x2 ends=middles", "ends=middles is unknown"},
        Bad{"affine_grid_backward dgrid=f32:2x4x6x2 dtheta=f32:2x6",
            "dtheta has extents 2x6, expected 2x2x3 (a matrix for each image)"}));

const std::string attention = "attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6";
const std::string attention_gradient =
    "attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6 lse=f32:2x4x5";

INSTANTIATE_TEST_SUITE_P(
    Attention, BadRequest,
    testing::Values(
        Bad{"attention_forward q=f32:2x4x8 k=f32:2x2x7x8 v=f32:2x2x7x6",
            "q has 3 dimensions (they are images, heads, queries or keys, and the elements of each)"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7 v=f32:2x2x7x6", "k has 3 dimensions"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6x1", "v has 5 dimensions"},
        Bad{"attention_forward k=f32:2x2x7x8 v=f32:2x2x7x6", "operand q is missing"},
        Bad{"attention_forward q=f32:2x4x5x8 v=f32:2x2x7x6", "operand k is missing"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8", "operand v is missing"},
        Bad{"attention_forward q=f32:2x4x5x0 k=f32:2x2x7x0 v=f32:2x2x7x6", "q has elements of 0 numbers (give 1 to "},
        Bad{"attention_forward q=f32:2x4x5x1025 k=f32:2x2x7x1025 v=f32:2x2x7x6", "q has elements of 1025 numbers"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x0", "v has elements of 0 numbers"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x1025", "v has elements of 1025 numbers"},
        Bad{"attention_forward q=f32:1x1x536870912x1 k=f32:1x1x7x1 v=f32:1x1x7x1",
            "there are 536870912 queries and 7 keys (places are i32: give at most 536870911)"},
        Bad{"attention_forward q=f32:1x1x7x1 k=f32:1x1x536870912x1 v=f32:1x1x536870912x1",
            "there are 7 queries and 536870912 keys"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x3x7x8 v=f32:2x3x7x6",
            "q has 4 heads and k 3 (the heads of k must divide those of q: equally many heads of q share each)"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x8x7x8 v=f32:2x8x7x6", "q has 4 heads and k 8"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x0x7x8 v=f32:2x0x7x6", "q has 4 heads and k 0"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:3x2x7x8 v=f32:3x2x7x6",
            "k has extents 3x2x7x8, expected 2x2x7x8 (N and D of q)"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x9 v=f32:2x2x7x6", "k has extents 2x2x7x9, expected 2x2x7x8"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x1x7x6",
            "v has extents 2x1x7x6, expected 2x2x7x6 (N, K and L of k)"},
        Bad{"attention_forward q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x6x6", "v has extents 2x2x6x6, expected 2x2x7x6"},
        Bad{"attention_forward q=i8:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6", "q is i8"},
        Bad{attention + " bias=f32:2x2x5x7",
            "bias has extents 2x2x5x7, expected 2x4x5x7 (N, H, M and L, or 1 where it repeats)"},
        Bad{attention + " bias=f32:1x4x1x6", "bias has extents 1x4x1x6, expected 1x4x1x7"},
        Bad{attention + " bias=f32:4x5x7", "bias has extents 4x5x7, expected 2x4x5x7"},
        Bad{attention + " mask=u8:2x4x7x5", "mask has extents 2x4x7x5, expected 2x4x5x7"},
        Bad{attention + " mask=f32:2x4x5x7", "mask is f32"},
        Bad{attention + " mask=u8:3x4x5x7 n=?", "mask has batch 3, expected 2 as in q"},
        Bad{attention + " lengths=i32:4", "lengths has extents 4, expected 2 (one for each image)"},
        Bad{attention + " lengths=f32:2", "lengths is f32"},
        Bad{attention + " y=f32:2x4x5x8", "y has extents 2x4x5x8, expected 2x4x5x6 (N, H and M of q, and E of v)"},
        Bad{attention + " lse=f32:2x4x7", "lse has extents 2x4x7, expected 2x4x5 (N, H and M of q)"},
        Bad{attention + " lse=f16:2x4x5", "lse is f16"},
        Bad{attention + " left=-2", "left is -2 (give 0 to 536870911, or -1 for all keys)"},
        Bad{attention + " right=-2", "right is -2"}, Bad{attention + " right=536870912", "right is 536870912"},
        Bad{attention + " left=536870912", "left is 536870912"},
        Bad{attention + " right=1,2", "right=1,2 has 2 values"},
        Bad{attention + " align=end", "align=end without left or right (every query sees all keys: leave it out)"},
        Bad{attention + " align=middle right=0", "align=middle is unknown"},
        Bad{attention + " epilogue=relu", "it takes no epilogue of stages"},
        Bad{attention + " dropout=0.5", "dropout=0.5 is unknown"},
        Bad{attention + " fast", "it has no choice of arithmetic"}));

INSTANTIATE_TEST_SUITE_P(
    AttentionGradients, BadRequest,
    testing::Values(
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 lse=f32:2x4x5",
            "operand y is missing"},
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6",
            "operand lse is missing"},
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x3x7x8 v=f32:2x3x7x6 y=f32:2x4x5x6 lse=f32:2x4x5",
            "q has 4 heads and k 3"},
        Bad{"attention_backward dy=f32:2x4x5x8 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6 lse=f32:2x4x5",
            "dy has extents 2x4x5x8, expected 2x4x5x6 (N, H and M of q, and E of v)"},
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x6x6 lse=f32:2x4x5",
            "y has extents 2x4x6x6, expected 2x4x5x6"},
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6 lse=f32:2x4x7",
            "lse has extents 2x4x7, expected 2x4x5"},
        Bad{"attention_backward dy=f32:2x4x5x6 q=f32:2x4x5x8 k=f32:2x2x7x8 v=f32:2x2x7x6 y=f32:2x4x5x6 lse=bf16:2x4x5",
            "lse is bf16"},
        Bad{attention_gradient + " bias=f32:3x4x5x7", "bias has extents 3x4x5x7, expected 2x4x5x7"},
        Bad{attention_gradient + " lengths=i32:3", "lengths has extents 3, expected 2"},
        Bad{attention_gradient + " dq=f32:2x4x5x6", "dq has extents 2x4x5x6, expected 2x4x5x8 (those of q)"},
        Bad{attention_gradient + " dk=f32:2x4x7x8", "dk has extents 2x4x7x8, expected 2x2x7x8 (those of k)"},
        Bad{attention_gradient + " dv=f32:2x2x7x8", "dv has extents 2x2x7x8, expected 2x2x7x6 (those of v)"},
        Bad{attention_gradient + " bias=f32:1x4x5x7 dbias=f32:1x4x5x7",
            "dbias has extents 1x4x5x7, expected 2x4x5x7 (N, H and M of q, and L of k)"},
        Bad{attention_gradient + " left=-2", "left is -2"},
        Bad{attention_gradient + " align=end", "align=end without left or right"},
        Bad{attention_gradient + " batch_invariant", "it cannot be batch_invariant: its kernels keep no order of sums"},
        Bad{attention_gradient + " dk=f32:2x2x7x8:0,56,8,1", "elements of output dk share memory"}));

}  // namespace
}  // namespace kiln::bad_requests_test
