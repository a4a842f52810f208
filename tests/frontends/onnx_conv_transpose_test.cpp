#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// One ConvTranspose of 1x6x4x5 with 6 filters of 4 channels, 3x2.
OnnxModel one_transposed(const Attributes& attributes, const Ints& filter = {6, 4, 3, 2}) {
  OnnxModel model;
  model.input("x", {1, 6, 4, 5}).weights("w", filter);
  model.node("ConvTranspose", {"x", "w"}, {"y"}, attributes);
  model.output("y");
  return model;
}

const std::string operands = "conv_backward_data dy=f32:1x6x4x5:nchw w=f32:6x4x3x2:nchw ";

TEST(OnnxConvTranspose, HasTheDefaultsOfTheSpecification) {
  EXPECT_THAT(lines_of(one_transposed({}).read()), ElementsAre(line(operands + "dx=f32:1x4x6x6:nchw")));
}

TEST(OnnxConvTranspose, TakesEveryAttribute) {
  const OnnxModel model = one_transposed({{"kernel_shape", Ints{3, 2}},
                                          {"strides", Ints{2, 3}},
                                          {"pads", Ints{1, 0, 2, 1}},
                                          {"dilations", Ints{2, 1}},
                                          {"output_padding", Ints{1, 2}},
                                          {"group", 2}});
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line(operands + "stride=2,3 pad=1,0,2,1 dilation=2,1 groups=2 "
                                                                  "output_pad=1,2 dx=f32:1x8x9x15:nchw")));
}

TEST(OnnxConvTranspose, PadsToTheStrideTimesTheInputWithTheOddElementAtTheEndOrTheStart) {
  // h: 2 * 3 + 3 = 9, 1 more than 8; w: 4 + 2 = 6, 1 more than 5.
  EXPECT_THAT(lines_of(one_transposed({{"auto_pad", "SAME_UPPER"}, {"strides", Ints{2, 1}}}).read()),
              ElementsAre(line(operands + "stride=2,1 pad=0,0,1,1 dx=f32:1x4x8x5:nchw")));
  EXPECT_THAT(lines_of(one_transposed({{"auto_pad", "SAME_LOWER"}, {"strides", Ints{2, 1}}}).read()),
              ElementsAre(line(operands + "stride=2,1 pad=1,1,0,0 dx=f32:1x4x8x5:nchw")));
}

TEST(OnnxConvTranspose, PadsToTheOutputShape) {
  // Unpadded 9 x 6: 3 and 1 to take off.
  EXPECT_THAT(lines_of(one_transposed({{"output_shape", Ints{6, 5}}, {"strides", Ints{2, 1}}}).read()),
              ElementsAre(line(operands + "stride=2,1 pad=2,1,1,0 dx=f32:1x4x6x5:nchw")));
}

TEST(OnnxConvTranspose, PadsNothingWhenValid) {
  EXPECT_THAT(lines_of(one_transposed({{"auto_pad", "VALID"}}).read()), lines_of(one_transposed({}).read()));
}

// Of 2x6x5, with 6 filters of 4 channels and a number for each channel.
OnnxModel with_bias() {
  OnnxModel model;
  model.input("x", {2, 6, 5}).weights("w", {6, 4, 3}).weights("b", {4});
  model.node("ConvTranspose", {"x", "w", "b"}, {"y"}, {{"strides", Ints{2}}});
  return model;
}

const std::string biased = "conv_backward_data dy=f32:2x6x5:ncw w=f32:6x4x3:ncw stride=2 epilogue=bias";

TEST(OnnxConvTranspose, TakesItsBias) {
  EXPECT_THAT(lines_of(with_bias().output("y").read()), ElementsAre(line(biased)));
}

TEST(OnnxConvTranspose, StoresItsBiasAsTheOptionsSay) {
  OnnxOptions options;
  options.dtype = DType::f16;
  options.order = MemoryOrder::nhwc;
  options.dynamic_batch = true;
  EXPECT_THAT(lines_of(with_bias().output("y").read(options)),
              ElementsAre(line("conv_backward_data dy=f16:2x6x5:nwc w=f16:6x4x3:nwc stride=2 epilogue=bias n=?")));
}

TEST(OnnxConvTranspose, TakesInWhatFollows) {
  OnnxModel model = with_bias();
  model.input("r", {2, 4, 11});
  for (const char* name : {"scale", "shift", "mean", "variance"}) model.weights(name, {4});
  model.node("BatchNormalization", {"y", "scale", "shift", "mean", "variance"}, {"n"});
  model.node("Add", {"r", "n"}, {"s"});
  model.node("Relu", {"s"}, {"z"});
  EXPECT_THAT(lines_of(model.output("z").read()), ElementsAre(line(biased + "+add+relu")));
}

TEST(OnnxConvTranspose, TakesAConstantForEachChannelOfItsResult) {
  OnnxModel model;
  model.input("x", {1, 6, 4, 5}).weights("w", {6, 4, 3, 2}).weights("b", {4, 1, 1}).weights("other", {6, 1});
  model.node("ConvTranspose", {"x", "w"}, {"y"});
  model.node("Add", {"y", "b"}, {"z"});
  model.node("Add", {"z", "other"}, {"u"});
  EXPECT_THAT(lines_of(model.output("u").read()), ElementsAre(line(operands + "dx=f32:1x4x6x6:nchw epilogue=bias"),
                                                              line("tensor_op a=f32:1x4x6x6 b=f32:1x1x6x1 mode=add")));
}

TEST(OnnxConvTranspose, SaysWhatIsNotCovered) {
  const auto reasons = [](const Attributes& attributes) { return uncovered_of(one_transposed(attributes).read()); };
  EXPECT_THAT(reasons({{"output_padding", Ints{1, 0}}}), ElementsAre(HasSubstr("output_padding is not below")));
  EXPECT_THAT(reasons({{"output_shape", Ints{9, 6}}}), ElementsAre(HasSubstr("larger than its windows reach")));
  EXPECT_THAT(lines_of(one_transposed({{"output_shape", Ints{9, 6}}}).read()), IsEmpty());
}

}  // namespace
}  // namespace kiln::test
