// Nodes that mean something else, or say it elsewhere, from one opset to another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "listing.h"

namespace kiln::test::onnx_opsets_test {
namespace {

using testing::ElementsAre;

struct Case {
  std::string type;
  std::vector<int64_t> opsets;
  Attributes attributes;
  std::vector<Ints> integers;  ///< Constant inputs behind x, of 2x3x5.
  std::string expected;
};

TEST(OnnxOpsets, SayTheSameInOtherPlaces) {
  const std::string rows = "tensor_transform x=f32:2x5:15,1@4 y=f32:2x5",
                    padded = "tensor_transform x=f32:2x3x5 pad=0,0,1,0,0,2";
  const std::vector<Case> cases = {
      // Before opset 13 the rows of a matrix are normalised.
      {"Softmax", {7, 12}, {}, {}, "softmax_forward x=f32:2x15 axis=1"},
      {"Softmax", {13, 22}, {}, {}, "softmax_forward x=f32:2x3x5 axis=2"},
      {"LogSoftmax", {12}, {{"axis", 2}}, {}, "softmax_forward x=f32:6x5 axis=1 mode=log"},
      {"LogSoftmax", {13}, {{"axis", 1}}, {}, "softmax_forward x=f32:2x3x5 axis=1 mode=log"},
      {"Clip", {7, 10}, {{"min", 0.0F}}, {}, "activation_forward x=f32:2x3x5 mode=relu"},
      {"ReduceSum", {11}, {{"axes", Ints{-1}}}, {}, "reduce x=f32:2x3x5 axes=2 mode=add"},
      {"ReduceSum", {13, 22}, {}, {{-1}}, "reduce x=f32:2x3x5 axes=2 mode=add"},
      {"ReduceMean", {17}, {{"axes", Ints{1, 2}}}, {}, "reduce x=f32:2x3x5 axes=1,2 mode=mean"},
      {"ReduceMean", {18}, {}, {{1, 2}}, "reduce x=f32:2x3x5 axes=1,2 mode=mean"},
      {"Slice", {7, 9}, {{"starts", Ints{1}}, {"ends", Ints{2}}, {"axes", Ints{1}}}, {}, rows},
      {"Slice", {10, 13}, {}, {{1}, {2}, {1}}, rows},
      {"Pad", {10}, {{"pads", Ints{0, 0, 1, 0, 0, 2}}}, {}, padded},
      {"Pad", {11, 18}, {}, {{0, 0, 1, 0, 0, 2}}, padded}};
  for (const Case& each : cases) {
    for (const int64_t opset : each.opsets) {
      const OnnxModel model = one_node(each.type, {{2, 3, 5}}, each.attributes, opset, floating, each.integers);
      EXPECT_THAT(steps_of(model), ElementsAre(line(each.expected))) << each.type << " of opset " << opset;
    }
  }
}

TEST(OnnxOpsets, ClipHasItsBoundsAsInputsSince11) {
  for (const int64_t opset : {11, 13}) {
    OnnxModel model(opset);
    model.input("x", {2, 3}).scalar("low", 0);
    model.node("Clip", {"x", "low", ""}, {"y"});
    model.output("y");
    EXPECT_THAT(steps_of(model), ElementsAre(line("activation_forward x=f32:2x3 mode=relu"))) << opset;
  }
}

/// BatchNormalization with those outputs.
OnnxModel batch_norm(int64_t opset, const std::vector<std::string>& outputs, const Attributes& attributes = {}) {
  OnnxModel model(opset);
  model.input("x", {2, 3, 5, 7});
  for (const char* name : {"s", "b", "m", "v"}) model.input(name, {3});
  model.node("BatchNormalization", {"x", "s", "b", "m", "v"}, outputs, attributes);
  for (const std::string& output : outputs) model.output(output);
  return model;
}

TEST(OnnxOpsets, BatchNormalizationTrainsByAttributeSince14AndByItsOutputsBefore) {
  const std::string operands = " x=f32:2x3x5x7 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=0,2,3";
  for (const int64_t opset : {7, 13, 14, 15}) {
    EXPECT_THAT(steps_of(batch_norm(opset, {"y"})), ElementsAre(line("norm_inference" + operands))) << opset;
  }
  const auto training = ElementsAre("BatchNormalization y: it takes its statistics from its input, as in training");
  EXPECT_THAT(reasons_of(batch_norm(14, {"y", "mean", "variance"}, {{"training_mode", 1}})), training);
  EXPECT_THAT(reasons_of(batch_norm(9, {"y", "mean", "variance"})), training);
}

TEST(OnnxOpsets, GroupNormalizationHasAScaleForEachGroupBefore21) {
  const auto of = [](int64_t opset, int64_t parameters) {
    OnnxModel model(opset);
    model.input("x", {2, 6, 5}).input("s", {parameters}).input("b", {parameters});
    model.node("GroupNormalization", {"x", "s", "b"}, {"y"}, {{"num_groups", 3}});
    model.output("y");
    return model;
  };
  EXPECT_THAT(steps_of(of(18, 3)),
              ElementsAre(line("norm_forward x=f32:2x3x2x5 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=2,3")));
  EXPECT_THAT(steps_of(of(21, 6)),
              ElementsAre(line("norm_forward x=f32:2x3x2x5 w=f32:1x3x2x1 b=f32:1x3x2x1 axes=2,3")));
  expect_error(of(20, 6), "(GroupNormalization): input 2 is 6, expected 3");
  expect_error(of(21, 3), "(GroupNormalization): input 2 is 3, expected 6");
}

}  // namespace
}  // namespace kiln::test::onnx_opsets_test
