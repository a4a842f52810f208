#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// One Conv of 1x4x9x10 with 6 filters of 3x2.
OnnxModel one_conv(const Attributes& attributes, const Ints& filter = {6, 4, 3, 2}) {
  OnnxModel model;
  model.input("x", {1, 4, 9, 10}).weights("w", filter);
  model.node("Conv", {"x", "w"}, {"y"}, attributes);
  model.output("y");
  return model;
}

TEST(OnnxConv, HasTheDefaultsOfTheSpecification) {
  EXPECT_THAT(lines_of(one_conv({}).read()),
              ElementsAre(line("conv_forward x=f32:1x4x9x10:nchw w=f32:6x4x3x2:nchw y=f32:1x6x7x9:nchw")));
}

TEST(OnnxConv, TakesEveryAttribute) {
  const OnnxModel model = one_conv({{"kernel_shape", Ints{3, 2}},
                                    {"strides", Ints{2, 3}},
                                    {"pads", Ints{1, 0, 2, 1}},
                                    {"dilations", Ints{2, 1}},
                                    {"group", 2}},
                                   {6, 2, 3, 2});
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line("conv_forward x=f32:1x4x9x10:nchw w=f32:6x2x3x2:nchw stride=2,3 "
                                                       "pad=1,0,2,1 dilation=2,1 groups=2")));
}

TEST(OnnxConv, PadsToKeepTheSizeWithTheOddElementAtTheEndOrTheStart) {
  const std::string operands = "conv_forward x=f32:1x4x9x10:nchw w=f32:6x4x3x2:nchw ";
  // h: ceil(9/2) = 5 outputs span 11, 2 more than there are; w: ceil(10/1) = 10 span 11, 1 more.
  EXPECT_THAT(lines_of(one_conv({{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 1}}}).read()),
              ElementsAre(line(operands + "stride=2,1 pad=1,0,1,1 y=f32:1x6x5x10:nchw")));
  EXPECT_THAT(lines_of(one_conv({{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2, 1}}}).read()),
              ElementsAre(line(operands + "stride=2,1 pad=1,1,1,0 y=f32:1x6x5x10:nchw")));
  EXPECT_THAT(lines_of(one_conv({{"auto_pad", "SAME_UPPER"}, {"dilations", Ints{3, 4}}}).read()),
              ElementsAre(line(operands + "dilation=3,4 pad=3,2,3,2 y=f32:1x6x9x10:nchw")));
}

TEST(OnnxConv, PadsNothingWhereTheStrideLeavesGaps) {
  EXPECT_THAT(lines_of(one_conv({{"auto_pad", "SAME_UPPER"}, {"strides", Ints{5, 4}}}).read()),
              ElementsAre(line("conv_forward x=f32:1x4x9x10:nchw w=f32:6x4x3x2:nchw stride=5,4 y=f32:1x6x2x3:nchw")));
}

TEST(OnnxConv, PadsNothingWhenValid) {
  EXPECT_THAT(lines_of(one_conv({{"auto_pad", "VALID"}}).read()), lines_of(one_conv({}).read()));
}

TEST(OnnxConv, ShowsItsBias) {
  OnnxModel model;
  model.input("x", {2, 3, 8, 8}).weights("w", {5, 3, 3, 3}).weights("b", {5});
  model.node("Conv", {"x", "w", "b"}, {"y"});
  model.output("y");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("conv_forward x=f32:2x3x8x8:nchw w=f32:5x3x3x3:nchw epilogue=bias")));
}

TEST(OnnxConv, IsStoredAsTheOptionsSay) {
  const OnnxModel model = one_conv({});
  EXPECT_THAT(lines_of(model.read({.dtype = DType::f16, .order = MemoryOrder::nhwc})),
              ElementsAre(line("conv_forward x=f16:1x4x9x10:nhwc w=f16:6x4x3x2:nhwc y=f16:1x6x7x9:nhwc")));
  EXPECT_THAT(lines_of(model.read({.dtype = DType::bf16, .batch = 7})),
              ElementsAre(line("conv_forward x=bf16:7x4x9x10:nchw w=bf16:6x4x3x2:nchw")));
  EXPECT_THAT(lines_of(model.read({.batch = 7, .dynamic_batch = true})),
              ElementsAre(line("conv_forward x=f32:8x4x9x10:nchw w=f32:6x4x3x2:nchw n=?")));
}

TEST(OnnxConv, HasConstantWeightsWhereTheOptionsSayAndTheModelHasThem) {
  OnnxModel model;
  model.input("x", {1, 3, 8, 8}).weights("w", {5, 3, 3, 3}).input("given", {5, 5, 3, 3});
  model.node("Conv", {"x", "w"}, {"y"});
  model.node("Conv", {"y", "given"}, {"z"});
  model.output("z");
  const std::string first = "conv_forward x=f32:1x3x8x8:nchw w=f32:5x3x3x3:nchw";
  const std::string second = "conv_forward x=f32:1x5x6x6:nchw w=f32:5x5x3x3:nchw";
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line(first), line(second)));
  EXPECT_THAT(lines_of(model.read({.constant_weights = true})),
              ElementsAre(line(first + " constant_weights"), line(second)));
}

TEST(OnnxConv, HasOneToThreeDimensions) {
  OnnxModel model;
  model.input("line", {1, 2, 9})
      .input("volume", {1, 2, 9, 8, 7})
      .weights("w1", {4, 2, 3})
      .weights("w3", {4, 2, 3, 2, 3});
  model.node("Conv", {"line", "w1"}, {"a"}, {{"pads", Ints{1, 2}}, {"strides", Ints{2}}});
  model.node("Conv", {"volume", "w3"}, {"b"}, {{"pads", Ints{1, 0, 2, 0, 1, 1}}, {"dilations", Ints{2, 1, 1}}});
  model.output("a").output("b");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("conv_forward x=f32:1x2x9:ncw w=f32:4x2x3:ncw pad=1,2 stride=2"),
                          line("conv_forward x=f32:1x2x9x8x7:ncdhw w=f32:4x2x3x2x3:ncdhw pad=1,0,2,0,1,1 "
                               "dilation=2,1,1")));
  EXPECT_THAT(lines_of(model.read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("conv_forward x=f32:1x2x9:nwc w=f32:4x2x3:nwc pad=1,2 stride=2"),
                          line("conv_forward x=f32:1x2x9x8x7:ndhwc w=f32:4x2x3x2x3:ndhwc pad=1,0,2,0,1,1 "
                               "dilation=2,1,1")));
}

TEST(OnnxConv, IsNotCoveredInFourDimensions) {
  OnnxModel model;
  model.input("x", {1, 2, 5, 5, 5, 5}).weights("w", {2, 2, 3, 3, 3, 3});
  model.node("Conv", {"x", "w"}, {"y"});
  model.output("y");
  const ModelListing listing = model.read();
  EXPECT_THAT(listing.layers, IsEmpty());
  EXPECT_THAT(uncovered_of(listing), ElementsAre("Conv *1: it is 4-D, and 1-D to 3-D are covered"));
}

TEST(OnnxConv, TakesFiltersThatNodesCompute) {
  OnnxModel model;
  model.input("x", {1, 4, 9, 10});
  onnx::TensorProto& shape = *model.graph().add_initializer();
  shape.set_name("shape");
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.add_dims(4);
  for (const int64_t extent : {6, 4, 3, 2}) {
    shape.add_int64_data(extent);
  }
  model.node("ConstantOfShape", {"shape"}, {"zeros"});
  model.node("Identity", {"zeros"}, {"w"});
  model.node("Conv", {"x", "w"}, {"y"});
  model.output("y");
  const ModelListing listing = model.read();
  EXPECT_THAT(lines_of(listing), lines_of(one_conv({}).read()));
  EXPECT_THAT(listing.uncovered, IsEmpty());
}

}  // namespace
}  // namespace kiln::test
