// LayerClass: a request's line without its sizes.
#include "kiln/generator/layer_class.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kiln/generator/request.h"

namespace kiln::layer_class_test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

LayerClass of(const std::string& line) {
  return layer_class_of(Request::parse(line).key());
}

TEST(LayerClass, LeavesOutWhatASizeIs) {
  const LayerClass layer = of("conv_forward x=f16:8x64x56x28:nhwc w=f16:32x64x3x3:nhwc pad=1 epilogue=bias+relu");
  EXPECT_EQ(layer.text,
            "conv_forward x=f16:?x?x?x?:nhwc w=f16:32x64x3x3:nhwc y=f16:?x?x?x?:nhwc pad=1,1,1,1 stride=1,1 "
            "dilation=1,1 groups=1 acc=f32 epilogue=bias+relu");
  EXPECT_THAT(layer.sizes, ElementsAre(8, 64, 56, 28, 8, 32, 56, 28));
}

TEST(LayerClass, OfLayersThatDifferInSizesAloneIsTheSame) {
  const char* const one = "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 pad=1";
  EXPECT_EQ(of(one).text, of("conv_forward x=f32:7x16x5x90 w=f32:16x16x3x3 pad=1").text);
  EXPECT_EQ(of("gemm a=f32:3x4 b=f32:4x5").text, of("gemm a=f32:300x40 b=f32:40x1").text);
  EXPECT_EQ(of("softmax_forward x=f32:3x4:40,1").text, of("softmax_forward x=f32:5x6:60,1").text) << "strides follow";
  for (const char* const other :
       {"conv_forward x=f32:1x16x20x20 w=f32:32x16x3x3 pad=1", "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 pad=0",
        "conv_forward x=f16:1x16x20x20 w=f16:16x16x3x3 pad=1",
        "conv_forward x=f32:1x16x20x20:nhwc w=f32:16x16x3x3 pad=1",
        "conv_forward x=f32:1x16x20x20@4 w=f32:16x16x3x3 pad=1",
        "conv_forward x=f32:1x16x20x20 w=f32:16x16x3x3 pad=1 tf32",
        "conv_forward x=f32:1x16x20x20:6400,400,20,1 w=f32:16x16x3x3 pad=1 beta=1"}) {
    EXPECT_NE(of(one).text, of(other).text) << other;
  }
  EXPECT_NE(of("softmax_forward x=f32:3x4:40,1@4").text, of("softmax_forward x=f32:3x4:40,1").text);
}

TEST(LayerClass, TakesTheScaleOfANormalisationForNoFilter) {
  EXPECT_EQ(of("norm_forward x=f32:32x256 w=f32:1x256 b=f32:1x256").text,
            of("norm_forward x=f32:48x384 w=f32:1x384 b=f32:1x384").text);
  EXPECT_NE(of("conv_backward_filter x=f32:1x4x9x9 dy=f32:1x8x9x9 dw=f32:8x4x3x3 pad=1").text,
            of("conv_backward_filter x=f32:1x6x9x9 dy=f32:1x8x9x9 dw=f32:8x6x3x3 pad=1").text);
}

TEST(LayerClass, OfAnyTextIsOne) {
  EXPECT_EQ(layer_class_of("").text, "");
  for (const char* const text :
       {" ", "=", "x=", "x=:", "x=f32:", "x=f32:x", "x=f32:1x", "x=f32:1xx2:nc",
        "a=::::", "::", "x=f32:99999999999999999999x1:nc", "x=f32:-5x1:nc", "w=f32:1x2:nc", "\xff=\xff:1:\xff"}) {
    const LayerClass layer = layer_class_of(text);
    EXPECT_EQ(layer.text, layer_class_of(text).text) << text;
    EXPECT_LE(layer.sizes.size(), 3U) << text;
  }
  EXPECT_EQ(layer_class_of("x=f32:99999999999999999999x1:nc").text, "x=f32:99999999999999999999x?:nc");
}

TEST(LayerClass, DistanceCountsDoublings) {
  EXPECT_EQ(distance_between({8, 64}, {8, 64}), 0);
  EXPECT_EQ(distance_between({8, 64}, {16, 16}), 3);
  EXPECT_EQ(distance_between({16, 16}, {8, 64}), 3);
  EXPECT_EQ(distance_between({0, -3}, {1, 1}), 0) << "an empty batch is next to one";
  EXPECT_EQ(distance_between({}, {}), 0);
}

}  // namespace
}  // namespace kiln::layer_class_test
