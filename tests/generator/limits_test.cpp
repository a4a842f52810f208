// The last value that is accepted and the first that is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/generator/arch.h"
#include "kiln/generator/argument.h"
#include "kiln/generator/expression.h"
#include "kiln/generator/operations/resize.h"
#include "kiln/generator/request.h"
#include "kiln/generator/window_axis.h"

namespace kiln::limits_test {
namespace {

using testing::HasSubstr;

// Why the line is refused, or "accepted".
std::string answer(const std::string& line) {
  try {
    (void)Request::parse(line);
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

struct Limit {
  std::string within, beyond, message;
};

class Limits : public testing::TestWithParam<Limit> {};

TEST_P(Limits, AreTheLastThatIsAccepted) {
  EXPECT_EQ(answer(GetParam().within), "accepted") << GetParam().within;
  EXPECT_THAT(answer(GetParam().beyond), HasSubstr(GetParam().message)) << GetParam().beyond;
}

INSTANTIATE_TEST_SUITE_P(
    Operands, Limits,
    testing::Values(
        Limit{"softmax_forward x=f32:3x4:nc@4096", "softmax_forward x=f32:3x4:nc@8192", "alignment '8192'"},
        Limit{"softmax_forward x=f32:3x4:nc@4", "softmax_forward x=f32:3x4:nc@2", "x has alignment 2"},
        Limit{"tensor_set y=u8:3:n@1", "tensor_set y=u8:3:n@0", "alignment '0'"},
        Limit{"tensor_set y=u8:288230376151711744", "tensor_set y=u8:288230376151711745", "more than 2^58 elements"},
        Limit{"reduce x=f32:2x3:288230376151711742,1 axes=1", "reduce x=f32:2x4:288230376151711744,1 axes=1",
              "more than 2^58 elements"},
        Limit{"tensor_set y=f32:2x3:3,1", "tensor_set y=f32:2x3:2,1", "elements of output y share memory"},
        Limit{"tensor_set y=f32:2x3x2:1,4,2", "tensor_set y=f32:2x3x2:1,3,2", "elements of output y share memory"},
        Limit{"tensor_set y=f32:1x1x1x1x1", "tensor_set y=f32:1x1x1x1x1x1", "y has 6 dimensions"},
        Limit{"norm_forward x=f32:2x2x2x2x2x2", "norm_forward x=f32:2x2x2x2x2x2x2", "more than 6"}));

INSTANTIATE_TEST_SUITE_P(
    Dimensions, Limits,
    testing::Values(
        Limit{"conv_backward_bias dy=f32:4x3", "conv_backward_bias dy=f32:4", "dy has 1 dimensions"},
        Limit{"conv_backward_bias dy=f32:4x3x1x1x1", "conv_backward_bias dy=f32:4x3x1x1x1x1", "dy has 6 dimensions"},
        Limit{"conv_forward x=f32:1x3x8 w=f32:4x3x3", "conv_forward x=f32:1x3 w=f32:4x3", "x has 2 dimensions"},
        Limit{"conv_forward x=f32:1x3x8x8x8 w=f32:4x3x3x3x3", "conv_forward x=f32:1x3x8x8x8x8 w=f32:4x3x3x3x3x3",
              "x has 6 dimensions"},
        Limit{"pool_forward x=f32:1x3x8 mode=max window=2", "pool_forward x=f32:1x3 mode=max window=2",
              "x has 2 dimensions"},
        Limit{"resize x=f32:1x3x8 up=2 down=1", "resize x=f32:1x3 up=2 down=1", "x has 2 dimensions"},
        Limit{"resize_backward dy=f32:1x3x8 dx=f32:1x3x4", "resize_backward dy=f32:1x3x8 dx=f32:1x3",
              "dx has 2 dimensions"},
        Limit{"im2col x=f32:1x3x8 window=2", "im2col x=f32:1x3 window=2", "x has 2 dimensions"},
        Limit{"im2col x=f32:1x3x8x8x8 window=2", "im2col x=f32:1x3x8x8x8x8 window=2", "x has 6 dimensions"},
        Limit{"col2im x=f32:1x6x7 y=f32:1x3x8 window=2", "col2im x=f32:1x6x7 y=f32:1x3 window=2", "y has 2 dimensions"},
        Limit{"cross_entropy_forward x=f32:3x4", "cross_entropy_forward x=f32:3", "x has 1 dimensions"},
        Limit{"gemm a=f32:3x4 b=f32:4x5", "gemm a=f32:3 b=f32:3", "a has 1 and b 1 dimensions"},
        Limit{"gemm a=f32:1x1x1x3x4 b=f32:1x1x1x4x5", "gemm a=f32:1x1x1x1x3x4 b=f32:1x1x1x1x4x5", "a has 6 dimensions"},
        Limit{"softmax_forward x=f32:3x1x1x1x4", "softmax_forward x=f32:3x1x1x1x1x4", "x has 6 dimensions"},
        Limit{"gather x=f32:3x1x1x1x4 indices=i32:1x1x1x1x4", "gather x=f32:3x1x1x1x1x4 indices=i32:1x1x1x1x1x4",
              "x has 6 dimensions"},
        Limit{"tensor_op_backward dy=f32:3x1x1x1x4 dx=f32:3x1x1x1x4 mode=add",
              "tensor_op_backward dy=f32:3x1x1x1x1x4 dx=f32:3x1x1x1x1x4 mode=add", "dy has 6 dimensions"},
        Limit{"tensor_op a=f32:3x1x1x1x4 b=f32:3x1x1x1x4 mode=add",
              "tensor_op a=f32:3x1x1x1x1x4 b=f32:3x1x1x1x1x4 mode=add", "a has 6 dimensions"},
        Limit{"reduce x=f32:3x1x1x1x4 axes=0", "reduce x=f32:3x1x1x1x1x4 axes=0", "x has 6 dimensions"}));

// Channels and classes.
INSTANTIATE_TEST_SUITE_P(
    Channels, Limits,
    testing::Values(Limit{"conv_backward_bias dy=f32:4x1x3", "conv_backward_bias dy=f32:4x0x3", "dy has no channels"},
                    Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x3", "conv_forward x=f32:1x0x8 w=f32:1x0x3",
                          "x has no channels"},
                    Limit{"pool_forward x=f32:1x1x8 mode=max window=2", "pool_forward x=f32:1x0x8 mode=max window=2",
                          "x has no channels"},
                    Limit{"resize x=f32:1x1x8 up=2 down=1", "resize x=f32:1x0x8 up=2 down=1", "x has no channels"},
                    Limit{"im2col x=f32:1x1x8 window=2", "im2col x=f32:1x0x8 window=2", "x has no channels"},
                    Limit{"col2im x=f32:1x2x7 y=f32:1x1x8 window=2", "col2im x=f32:1x0x7 y=f32:1x0x8 window=2",
                          "y has no channels"},
                    Limit{"cross_entropy_forward x=f32:3x1", "cross_entropy_forward x=f32:3x0", "x has no classes"},
                    Limit{"conv_forward x=f32:1x4x8 w=f32:4x1x3 groups=4",
                          "conv_forward x=f32:1x4x8 w=f32:4x1x3 groups=5", "groups=5 does not divide"},
                    Limit{"local_conv_forward x=f32:1x3x8x8 w=f32:36x3x3x3 grid=6",
                          "local_conv_forward x=f32:1x3x8x8 w=f32:36x3x3x3 grid=7", "grid has 7 regions along h"}));

INSTANTIATE_TEST_SUITE_P(
    Indices, Limits,
    testing::Values(
        Limit{"gather x=i8:2147483647 indices=i32:3", "gather x=i8:2147483648 indices=i32:3",
              "x has extent 2147483648 along the axis"},
        Limit{"gather x=f32:3x4 indices=i32:3x4 axis=1", "gather x=f32:3x4 indices=i32:3x4 y=f32:3x4 axis=2",
              "axis 2 is outside"},
        Limit{"gather x=f32:3x4 indices=i32:3x4 axis=-2", "gather x=f32:3x4 indices=i32:3x4 y=f32:3x4 axis=-3",
              "axis -3 is outside"},
        Limit{"softmax_forward x=f32:3x4 axis=1", "softmax_forward x=f32:3x4 axis=2", "axis 2 is outside"},
        Limit{"softmax_forward x=f32:3x4 axis=-2", "softmax_forward x=f32:3x4 axis=-3", "axis -3 is outside"},
        Limit{"reduce x=f32:3x4 axes=-2", "reduce x=f32:3x4 axes=-3", "axis -3 is outside"},
        Limit{"reduce x=f32:3x4 axes=1", "reduce x=f32:3x4 axes=2", "axis 2 is outside"},
        Limit{"reduce_backward dy=f32:1x1 dx=f32:1x2147483647 axes=1 mode=max indices=i32:1x1",
              "reduce_backward dy=f32:1x1 dx=f32:1x2147483648 axes=1 mode=max indices=i32:1x1",
              "more positions than i32 has numbers"},
        Limit{"reduce x=f32:1x2147483647 axes=1 mode=max indices=i32:1x1",
              "reduce x=f32:1x2147483648 axes=1 mode=max indices=i32:1x1", "more positions than i32 has numbers"},
        Limit{"pool_forward x=f32:1x1x65536x32767 mode=max window=1 indices=i32:1x1x65536x32767",
              "pool_forward x=f32:1x1x65536x32768 mode=max window=1 indices=i32:1x1x65536x32768",
              "more positions than i32 has numbers"},
        Limit{"cross_entropy_forward x=f32:3x4 ignore=2147483647", "cross_entropy_forward x=f32:3x4 ignore=2147483648",
              "ignore=2147483648 is no i32"},
        Limit{"cross_entropy_forward x=f32:3x4 ignore=-2147483648",
              "cross_entropy_forward x=f32:3x4 ignore=-2147483649", "ignore=-2147483649 is no i32"}));

INSTANTIATE_TEST_SUITE_P(
    Windows, Limits,
    testing::Values(
        Limit{"local_norm_forward x=f32:3x4 size=65535", "local_norm_forward x=f32:3x4 size=65536", "size=65536"},
        Limit{"local_norm_forward x=f32:3x4 size=1", "local_norm_forward x=f32:3x4 size=0", "size=0"},
        Limit{"local_norm_forward x=f32:3x4x5x6 axes=1,2,3", "local_norm_forward x=f32:3x4x5x6 axes=0,1,2,3",
              "more than 3 axes"},
        Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x3 stride=2147483647",
              "conv_forward x=f32:1x1x8 w=f32:1x1x3 stride=2147483648", "it must lie between 1 and 2147483647"},
        Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x1 dilation=2147483647",
              "conv_forward x=f32:1x1x8 w=f32:1x1x1 dilation=2147483648", "the dilation of"},
        Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x3 pad=2147483647,0",
              "conv_forward x=f32:1x1x8 w=f32:1x1x3 pad=2147483648,0", "the padding in front of"},
        Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x3 pad=0,2147483647",
              "conv_forward x=f32:1x1x8 w=f32:1x1x3 pad=0,2147483648", "the padding behind"},
        Limit{"pool_forward x=f32:1x1x8 mode=max window=8", "pool_forward x=f32:1x1x8 mode=max window=9",
              "the window does not fit"},
        Limit{"conv_forward x=f32:1x1x8 w=f32:1x1x8", "conv_forward x=f32:1x1x8 w=f32:1x1x9",
              "the filter does not fit"},
        Limit{"tensor_transform x=u8:1 y=u8:2147483648 pad=2147483647,0",
              "tensor_transform x=u8:1 y=u8:2147483649 pad=2147483648,0", "a pad is 2147483648"},
        Limit{"resize x=f32:1x1x4 up=2147483647 down=2147483647", "resize x=f32:1x1x4 up=2147483648 down=1",
              "up and down are 1 to 2147483647"},
        Limit{"resize x=f32:1x1x2147483647 up=1 down=2147483647", "resize x=f32:1x1x2147483648 up=1 down=2147483648",
              "up and down are 1 to 2147483647"}));

const std::string attention = "attention_forward q=f32:1x1x4x8 k=f32:1x1x4x8 v=f32:1x1x4x8";

INSTANTIATE_TEST_SUITE_P(
    Attention, Limits,
    testing::Values(
        Limit{"attention_forward q=f32:1x1x4x1024 k=f32:1x1x4x1024 v=f32:1x1x4x1024",
              "attention_forward q=f32:1x1x4x1025 k=f32:1x1x4x1025 v=f32:1x1x4x1024", "q has elements of 1025 numbers"},
        Limit{"attention_forward q=f32:1x1x536870911x1 k=f32:1x1x7x1 v=f32:1x1x7x1",
              "attention_forward q=f32:1x1x536870912x1 k=f32:1x1x7x1 v=f32:1x1x7x1", "there are 536870912 queries"},
        Limit{"attention_forward q=f32:1x1x7x1 k=f32:1x1x536870911x1 v=f32:1x1x536870911x1",
              "attention_forward q=f32:1x1x7x1 k=f32:1x1x536870912x1 v=f32:1x1x536870912x1", "and 536870912 keys"},
        Limit{attention + " left=536870911", attention + " left=536870912", "left is 536870912"},
        Limit{attention + " right=0 align=end", attention + " align=end", "align=end without left or right"},
        Limit{attention + " left=0 align=end", attention + " left=-1 align=end", "align=end without left or right"}));

INSTANTIATE_TEST_SUITE_P(Scatter, Limits,
                         testing::Values(Limit{"scatter updates=f32:1 indices=i32:1 y=f32:2147483647",
                                               "scatter updates=f32:1 indices=i32:1 y=f32:2147483648",
                                               "y has extent 2147483648 along the axis"}));

INSTANTIATE_TEST_SUITE_P(
    GridSample, Limits,
    testing::Values(Limit{"grid_sample x=f32:1x1x16777216x1 grid=f32:1x2x3x2",
                          "grid_sample x=f32:1x1x16777217x1 grid=f32:1x2x3x2", "x has extents 1x1x16777217x1"},
                    Limit{"affine_grid theta=f32:1x2x3 grid=f32:1x1x16777216x2",
                          "affine_grid theta=f32:1x2x3 grid=f32:1x1x16777217x2", "grid has extents 1x1x16777217x2"}));

INSTANTIATE_TEST_SUITE_P(
    CtcLoss, Limits,
    testing::Values(Limit{"ctc_loss_forward x=f32:1x536870911x2 targets=i32:1x1",
                          "ctc_loss_forward x=f32:1x536870912x2 targets=i32:1x1", "there are 536870912 steps"},
                    Limit{"ctc_loss_forward x=f32:1x1x2 targets=i32:1x536870911",
                          "ctc_loss_forward x=f32:1x1x2 targets=i32:1x536870912", "and 536870912 labels"},
                    Limit{"ctc_loss_forward x=f32:1x1x2147483647 targets=i32:1x1",
                          "ctc_loss_forward x=f32:1x1x2147483648 targets=i32:1x1", "x has 2147483648 classes"},
                    Limit{"ctc_loss_forward x=f32:1x1x2 targets=i32:1x1 blank=1",
                          "ctc_loss_forward x=f32:1x1x2 targets=i32:1x1 blank=2", "blank=2"}));

INSTANTIATE_TEST_SUITE_P(
    Recurrent, Limits,
    testing::Values(Limit{"recurrent_forward gates=f32:1x2147483647x1x1 r=f32:1x1x1 cell=tanh",
                          "recurrent_forward gates=f32:1x2147483648x1x1 r=f32:1x1x1 cell=tanh",
                          "gates has T 2147483648"},
                    Limit{"recurrent_forward gates=f32:1x1x1x268435455 r=f32:1x268435455x268435455 cell=tanh",
                          "recurrent_forward gates=f32:1x1x1x268435456 r=f32:1x268435456x268435456 cell=tanh",
                          "r has H 268435456"}));

TEST(ScalesOfResize, AreFractionsFromAHundredTwentyEighthToAHundredTwentyEight) {
  const auto scale = [](float value) {
    const ResizeScale fraction = ResizeScale::of(value);
    return std::pair(fraction.up, fraction.down);
  };
  EXPECT_EQ(scale(128), std::pair(int64_t{128}, int64_t{1}));
  EXPECT_EQ(scale(1.0F / 128), std::pair(int64_t{1}, int64_t{128}));
  EXPECT_EQ(scale(0.75F), std::pair(int64_t{3}, int64_t{4}));
  EXPECT_EQ(scale(0), std::pair(int64_t{0}, int64_t{0}));
  const float least = std::nextafter(0x1p-7F, 1.0F);
  EXPECT_EQ(static_cast<float>(scale(least).first) / static_cast<float>(scale(least).second), least);
  for (const float wrong : {std::nextafter(128.0F, 200.0F), std::nextafter(0x1p-7F, 0.0F), -1.0F,
                            std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_THROW(ResizeScale::of(wrong), Error) << wrong;
  }
}

TEST(Windows, AreAsManyAsFit) {
  for (int64_t extent = 0; extent <= 7; ++extent) {
    for (int64_t window = 1; window <= 4; ++window) {
      for (int64_t bits = 0; bits < 81; ++bits) {
        const WindowAxis axis{.extent = extent,
                              .window = window,
                              .pad_begin = bits % 3,
                              .pad_end = bits / 3 % 3,
                              .stride = 1 + bits / 9 % 3,
                              .dilation = 1 + bits / 27};
        const int64_t padded = extent + axis.pad_begin + axis.pad_end;
        const auto end_of = [&](int64_t i) { return i * axis.stride + axis.dilation * (window - 1) + 1; };
        int64_t within = 0;
        while (end_of(within) <= padded) ++within;
        // Where one fits, enough to reach the end, less one that would see only the padding behind.
        int64_t covering = within == 0 ? 0 : 1;
        while (covering > 0 && end_of(covering - 1) < padded) ++covering;
        if (covering > 0 && (covering - 1) * axis.stride >= extent + axis.pad_begin) --covering;
        EXPECT_EQ(axis.outputs_floor(), within) << extent << " " << window << " " << bits;
        EXPECT_EQ(axis.outputs_ceil(), covering) << extent << " " << window << " " << bits;
      }
    }
  }
}

TensorMapArgument map_with(Swizzle swizzle, unsigned box) {
  return {.memory = OperandArgument{"x"},
          .dtype = DType::f16,
          .extents = {Count{64}, Count{8}},
          .byte_strides = {128},
          .box = {box, 8},
          .swizzle = swizzle};
}

TEST(TensorMaps, AreTakenUpToTheLimitsOfTheDriver) {
  const auto fault = [](const TensorMapArgument& map) { return fault_of(map, 1024); };
  for (const auto& [swizzle, bytes] :
       {std::pair(Swizzle::bytes_32, 32U), std::pair(Swizzle::bytes_64, 64U), std::pair(Swizzle::bytes_128, 128U)}) {
    EXPECT_EQ(fault(map_with(swizzle, bytes / 2)), "");
    EXPECT_THAT(fault(map_with(swizzle, bytes / 2 + 8)), HasSubstr("narrower than its box"));
  }
  for (const int unknown : {-1, 4}) {  // as a stored program may have them
    EXPECT_THAT(fault(map_with(static_cast<Swizzle>(unknown), 8)), HasSubstr("unknown swizzle")) << unknown;
  }
  TensorMapArgument map = map_with(Swizzle::none, 256);
  EXPECT_EQ(fault(map), "");
  map.box[1] = 256;
  map.byte_strides[0] = 0;
  EXPECT_EQ(fault(map), "");
  map.byte_strides[0] = (int64_t{1} << 40) - 16;
  EXPECT_EQ(fault(map), "");
  map.byte_strides[0] += 16;
  EXPECT_THAT(fault(map), HasSubstr("stride"));
  map = map_with(Swizzle::none, 8);
  map.extents.resize(5, Count{1});
  map.byte_strides.resize(4, 128);
  map.box.resize(5, 1);
  EXPECT_EQ(fault(map), "");
  map.memory = WorkspaceArgument{1000, 24};
  EXPECT_EQ(fault(map), "");
}

TEST(Counts, AreLegalUpToTwoToThe42) {
  constexpr int64_t most = int64_t{1} << 42;
  for (const Count& count : {Count{most}, Count{-most}, Count{0, most}, Count{0, 0, most}, Count{0, 0, 1}}) {
    EXPECT_TRUE(is_legal(count)) << identity_of(count);
  }
  for (const Count& count :
       {Count{most + 1}, Count{-most - 1}, Count{0, most + 1}, Count{0, -1}, Count{0, 0, most + 1}, Count{0, 0, 0}}) {
    EXPECT_FALSE(is_legal(count)) << identity_of(count);
  }
  EXPECT_EQ(fault_of(OperandArgument{"x", most}, 0), "");
  EXPECT_EQ(fault_of(OperandArgument{"x", 0}, 0), "");
  EXPECT_NE(fault_of(OperandArgument{"x", most + 1}, 0), "");
}

TEST(Ranges, EndWithTheWorkspaceAtMost) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_TRUE(is_range_within(0, 0, 0));
  EXPECT_TRUE(is_range_within(10, 0, 10));
  EXPECT_TRUE(is_range_within(0, 10, 10));
  EXPECT_TRUE(is_range_within(4, 6, 10));
  EXPECT_TRUE(is_range_within(0, most, most));
  for (const auto& [offset, bytes] :
       {std::pair<int64_t, int64_t>{4, 7}, {11, 0}, {-1, 5}, {0, -1}, {most, 1}, {1, most}}) {
    EXPECT_FALSE(is_range_within(offset, bytes, 10)) << offset << " " << bytes;
  }
}

TEST(Expressions, HaveNamesAndTextsUpToTheirLongest) {
  const auto refusal = [](const std::string& text, const std::vector<std::string>& tensors,
                          const std::vector<std::string>& scalars = {}) -> std::string {
    try {
      (void)Expression(text, tensors, scalars);
      return "accepted";
    } catch (const Error& error) {
      return error.message();
    }
  };
  const auto names = [](const std::string& first, size_t count) {
    std::vector<std::string> made;
    for (size_t i = 0; i < count; ++i) made.push_back(first + std::to_string(i));
    return made;
  };
  EXPECT_EQ(refusal("acc", names("t", 8), names("s", 8)), "accepted");
  EXPECT_THAT(refusal("acc", names("t", 9)), HasSubstr("9 tensors and 0 scalars"));
  EXPECT_THAT(refusal("acc", {}, names("s", 9)), HasSubstr("0 tensors and 9 scalars"));
  EXPECT_EQ(refusal("acc", {std::string(32, 'a')}), "accepted");
  EXPECT_NE(refusal("acc", {std::string(33, 'a')}), "accepted");
  const auto long_text = [](size_t bytes) { return "acc //" + std::string(bytes - 6, '-'); };
  EXPECT_EQ(refusal(long_text(64 * 1024), {}), "accepted");
  EXPECT_THAT(refusal(long_text(64 * 1024 + 1), {}), HasSubstr("65537 bytes, the most is 65536"));
}

// CUDA C++ Programming Guide, "Technical Specifications per Compute Capability" and "Arithmetic Instructions".
TEST(Arch, HasTheLimitsOfTheProgrammingGuide) {
  struct Row {
    int major, minor, threads, blocks, shared_of_block, shared_of_sm, f32;  // shared memory in KiB
  };
  const Row rows[] = {{7, 5, 1024, 16, 64, 64, 64},   {8, 0, 2048, 32, 163, 164, 64},  {8, 6, 1536, 16, 99, 100, 128},
                      {8, 9, 1536, 24, 99, 100, 128}, {9, 0, 2048, 32, 227, 228, 128}, {10, 0, 2048, 32, 227, 228, 128},
                      {12, 0, 1536, 24, 99, 100, 128}};
  ASSERT_EQ(Arch::all().size(), std::size(rows));
  for (const Row& row : rows) {
    const Arch arch = Arch::of(row.major, row.minor);
    EXPECT_EQ(arch.major, row.major);
    EXPECT_EQ(arch.minor, row.minor);
    EXPECT_EQ(arch.threads_per_block, 1024);
    EXPECT_EQ(arch.threads_per_sm, row.threads) << arch.name();
    EXPECT_EQ(arch.blocks_per_sm, row.blocks) << arch.name();
    EXPECT_EQ(arch.registers_per_sm, 65536);
    EXPECT_EQ(arch.registers_per_thread, 255);
    EXPECT_EQ(arch.shared_per_block_default, 48 * 1024);
    EXPECT_EQ(arch.shared_per_block, row.shared_of_block * 1024) << arch.name();
    EXPECT_EQ(arch.shared_per_sm, row.shared_of_sm * 1024) << arch.name();
    EXPECT_EQ(arch.f32_lanes_per_sm, row.f32) << arch.name();
    EXPECT_EQ(arch.products_per_clock(MathClass::f32_lanes), row.f32) << arch.name();
    const int f16 = arch.products_per_clock(MathClass::tensor_f16);
    EXPECT_EQ(arch.products_per_clock(MathClass::tensor_tf32), row.major >= 8 ? f16 / 2 : 0) << arch.name();
    EXPECT_EQ(arch.products_per_clock(MathClass::tensor_int8), 2 * f16) << arch.name();
    EXPECT_EQ(arch.products_per_clock(MathClass::tensor_fp8), 10 * row.major + row.minor >= 89 ? 2 * f16 : 0)
        << arch.name();
  }
  // Dense f16 rates of T4, A100, A10, L40S, H100, B200 and RTX PRO 6000 Blackwell by their data sheets, in Tflop/s,
  // over SMs and boost clock.
  const struct {
    int major, minor, sms;
    double tflops, mhz;
  } cards[] = {{7, 5, 40, 65, 1590},   {8, 0, 108, 312, 1410},   {8, 6, 72, 125, 1695},  {8, 9, 142, 362, 2520},
               {9, 0, 132, 989, 1830}, {10, 0, 148, 2250, 1850}, {12, 0, 188, 503, 2617}};
  for (const auto& card : cards) {
    const double products = Arch::of(card.major, card.minor).products_per_clock(MathClass::tensor_f16);
    EXPECT_NEAR(2e-6 * products * card.sms * card.mhz, card.tflops, 0.02 * card.tflops) << card.major << card.minor;
    EXPECT_EQ(std::ldexp(1.0, std::ilogb(products)), products) << "a power of two";
  }
  EXPECT_EQ(Arch::of(8, 7).shared_per_sm, Arch::of(8, 6).shared_per_sm);
  EXPECT_EQ(Arch::of(10, 3).blocks_per_sm, 32);
  for (const auto& [major, minor] :
       {std::pair(7, 4), std::pair(7, 0), std::pair(6, 1), std::pair(11, 0), std::pair(13, 0)}) {
    EXPECT_THROW(Arch::of(major, minor), Error) << major << "." << minor;
  }
}

}  // namespace
}  // namespace kiln::limits_test
