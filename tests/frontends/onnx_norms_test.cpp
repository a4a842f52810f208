// Normalisations.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

const OnnxOptions dynamic{.batch = 4, .dynamic_batch = true};

/// y = a node over x and constants p1, p2 and so on of the given extents; further outputs are y1, y2 and so on.
OnnxModel norm(const std::string& type, const Ints& x, const std::vector<Ints>& parameters,
               const Attributes& attributes = {}, int64_t opset = 17, int outputs = 1) {
  OnnxModel model(opset);
  model.input("x", {x.begin(), x.end()});
  std::vector<std::string> inputs{"x"}, results{"y"};
  for (const Ints& extents : parameters) {
    inputs.push_back("p" + std::to_string(inputs.size()));
    model.weights(inputs.back(), extents);
  }
  for (int i = 1; i < outputs; ++i) results.push_back("y" + std::to_string(i));
  model.node(type, inputs, results, attributes);
  for (const std::string& result : results) model.output(result);
  return model;
}

OnnxModel batch_norm(const Ints& x, int64_t opset = 15, const Attributes& attributes = {}, int outputs = 1) {
  const Ints channels{x.size() > 1 ? x[1] : 1};
  return norm("BatchNormalization", x, std::vector<Ints>(4, channels), attributes, opset, outputs);
}

const std::string inference = "norm_inference x=f32:2x3x5x7:nchw w=f32:1x3x1x1:nchw b=f32:1x3x1x1:nchw axes=0,2,3";
const std::string training = "norm_forward x=f32:2x3x5x7:nchw w=f32:1x3x1x1:nchw b=f32:1x3x1x1:nchw axes=0,2,3";
const std::string running = " running_mean=f32:1x3x1x1:nchw running_variance=f32:1x3x1x1:nchw";
const Attributes trains{{"training_mode", 1}};

TEST(OnnxBatchNormalization, OfAllOpsetsInfersByRunningStatistics) {
  for (const int64_t opset : {7, 8, 9, 13, 14, 15, 22}) {
    EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}, opset, {{"momentum", 0.5F}, {"epsilon", 1e-3F}}).read()),
                ElementsAre(line(inference)))
        << opset;
  }
}

TEST(OnnxBatchNormalization, TakesAnyNumberOfSpatialDimensions) {
  EXPECT_THAT(lines_of(batch_norm({2, 3}).read()),
              ElementsAre(line("norm_inference x=f32:2x3:nc w=f32:1x3:nc b=f32:1x3:nc axes=0")));
  EXPECT_THAT(lines_of(batch_norm({2, 3, 4, 5, 6}).read({.dtype = DType::f16, .order = MemoryOrder::nhwc})),
              ElementsAre(line("norm_inference x=f16:2x3x4x5x6:ndhwc w=f16:1x3x1x1x1 b=f16:1x3x1x1x1 axes=0,2,3,4")));
  EXPECT_THAT(uncovered_of(batch_norm({2}).read()), ElementsAre("BatchNormalization *1: its input has no channels"));
}

TEST(OnnxBatchNormalization, TrainsByItsModeSinceOpset14) {
  EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}, 14, trains).read()), ElementsAre(line(training)));
  EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}, 15, trains, 3).read()), ElementsAre(line(training + running)));
  expect_error(batch_norm({2, 3, 5, 7}, 14, {}, 3),
               "node 'y' (BatchNormalization): gives running statistics, which it does with training_mode=1");
}

TEST(OnnxBatchNormalization, TrainsByItsOutputsBeforeOpset14) {
  for (const int64_t opset : {7, 9}) {
    EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}, opset, {}, 3).read()), ElementsAre(line(training + running)));
    EXPECT_THAT(
        uncovered_of(batch_norm({2, 3, 5, 7}, opset, {}, 5).read()),
        ElementsAre("BatchNormalization *1: it saves a variance, and norm_forward the inverse of the deviation"));
  }
  OnnxModel unused(9);  // outputs that nothing uses ask for nothing
  unused.input("x", {2, 3, 5, 7}).weights("p", {3});
  unused.node("BatchNormalization", {"x", "p", "p", "p", "p"}, {"y", "mean", "variance"});
  unused.output("y");
  EXPECT_THAT(lines_of(unused.read()), ElementsAre(line(inference)));
}

TEST(OnnxBatchNormalization, OfEachActivationIsNotCovered) {
  const std::vector<Ints> parameters(4, Ints{3, 5, 7});
  for (const int64_t opset : {7, 8}) {
    EXPECT_THAT(
        uncovered_of(norm("BatchNormalization", {2, 3, 5, 7}, parameters, {{"spatial", 0}}, opset).read()),
        ElementsAre(
            "BatchNormalization *1: it normalises each activation by itself (spatial=0), and channels are covered"));
  }
  EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}, 8, {{"spatial", 1}}).read()), ElementsAre(line(inference)));
}

TEST(OnnxBatchNormalization, InfersWithADynamicBatchAndDoesNotTrain) {
  EXPECT_THAT(lines_of(batch_norm({2, 3, 5, 7}).read(dynamic)),
              ElementsAre(line("norm_inference x=f32:4x3x5x7 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=0,2,3 n=?")));
  EXPECT_THAT(uncovered_of(batch_norm({2, 3, 5, 7}, 15, trains).read(dynamic)),
              ElementsAre("BatchNormalization *1: it normalises over the batch, which is dynamic"));
}

TEST(OnnxBatchNormalization, SaysWhatDoesNotFit) {
  expect_error(norm("BatchNormalization", {2, 3, 5, 7}, {{3}, {3}, {4}, {3}}),
               "node 'y' (BatchNormalization): input 3 is 4, expected 3");
  expect_error(norm("BatchNormalization", {2, 3, 5, 7}, {{3}, {3}, {3}}),
               "node 'y' (BatchNormalization): has 4 inputs and 1 outputs, expected 5 to 5");
}

TEST(OnnxInstanceNormalization, IsOverTheSpatialDimensions) {
  for (const int64_t opset : {7, 17, 22}) {
    EXPECT_THAT(lines_of(norm("InstanceNormalization", {2, 3, 5}, {{3}, {3}}, {}, opset).read()),
                ElementsAre(line("norm_forward x=f32:2x3x5 w=f32:1x3x1 b=f32:1x3x1 axes=2")));
  }
  EXPECT_THAT(lines_of(norm("InstanceNormalization", {2, 3, 5, 7}, {{3}, {3}}).read(dynamic)),
              ElementsAre(line("norm_forward x=f32:4x3x5x7 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=2,3 n=?")));
  EXPECT_THAT(uncovered_of(norm("InstanceNormalization", {2, 3}, {{3}, {3}}).read()),
              ElementsAre("InstanceNormalization *1: its input has no spatial dimensions"));
  expect_error(norm("InstanceNormalization", {2, 3, 5}, {{3}, {5}}),
               "node 'y' (InstanceNormalization): input 2 is 5, expected 3");
}

OnnxModel group_norm(const Ints& x, int64_t groups, int64_t parameters, int64_t opset) {
  return norm("GroupNormalization", x, {{parameters}, {parameters}}, {{"num_groups", groups}}, opset);
}

TEST(OnnxGroupNormalization, SeesChannelsInGroups) {
  EXPECT_THAT(lines_of(group_norm({2, 6, 5}, 3, 6, 21).read()),
              ElementsAre(line("norm_forward x=f32:2x3x2x5 w=f32:1x3x2x1 b=f32:1x3x2x1 axes=2,3")));
  EXPECT_THAT(lines_of(group_norm({2, 6, 5, 7}, 2, 6, 22).read(dynamic)),
              ElementsAre(line("norm_forward x=f32:4x2x3x5x7 w=f32:1x2x3x1x1 b=f32:1x2x3x1x1 axes=2,3,4 n=?")));
  // In memory 2x5x7x6, and the last of these as 2x3.
  EXPECT_THAT(
      lines_of(group_norm({2, 6, 5, 7}, 2, 6, 21).read({.order = MemoryOrder::nhwc})),
      ElementsAre(line("norm_forward x=f32:2x2x3x5x7:210,3,1,42,6 w=f32:1x2x3x1x1 b=f32:1x2x3x1x1 axes=2,3,4")));
}

TEST(OnnxGroupNormalization, HasThreeSpatialDimensionsAsOne) {
  EXPECT_THAT(lines_of(group_norm({2, 6, 3, 5, 7}, 2, 6, 21).read()),
              ElementsAre(line("norm_forward x=f32:2x2x3x105 w=f32:1x2x3x1 b=f32:1x2x3x1 axes=2,3")));
  EXPECT_THAT(lines_of(group_norm({2, 6, 3, 5, 7}, 2, 6, 21).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("norm_forward x=f32:2x2x3x105:630,3,1,6 w=f32:1x2x3x1 b=f32:1x2x3x1 axes=2,3")));
}

TEST(OnnxGroupNormalization, HasAScaleForEachGroupBeforeOpset21) {
  for (const int64_t opset : {18, 20}) {
    EXPECT_THAT(lines_of(group_norm({2, 6, 5, 7}, 3, 3, opset).read()),
                ElementsAre(line("norm_forward x=f32:2x3x2x5x7 w=f32:1x3x1x1x1 b=f32:1x3x1x1x1 axes=2,3,4")));
    expect_error(group_norm({2, 6, 5, 7}, 3, 6, opset), "node 'y' (GroupNormalization): input 1 is 6, expected 3");
  }
  expect_error(group_norm({2, 6, 5, 7}, 3, 3, 21), "node 'y' (GroupNormalization): input 1 is 3, expected 6");
}

TEST(OnnxGroupNormalization, SaysWhatIsWrong) {
  EXPECT_THAT(uncovered_of(group_norm({2, 6}, 3, 6, 21).read()),
              ElementsAre("GroupNormalization *1: its input has no spatial dimensions"));
  for (const int64_t groups : {-1, 0, 4}) {
    expect_error(group_norm({2, 6, 5}, groups, 6, 21), "expected a divisor of the 6 channels");
  }
  expect_error(norm("GroupNormalization", {2, 6, 5}, {{6}, {6}}, {{"num_groups", 2}, {"stash_type", 7}}, 21),
               "node 'y' (GroupNormalization): stash_type is 7, expected a type of floating-point numbers");
}

TEST(OnnxLayerNormalization, IsOverTheDimensionsFromItsAxisOn) {
  EXPECT_THAT(lines_of(norm("LayerNormalization", {2, 5, 7}, {{7}}).read()),
              ElementsAre(line("norm_forward x=f32:2x5x7 w=f32:1x1x7 axes=2")));
  EXPECT_THAT(lines_of(norm("LayerNormalization", {2, 5, 7}, {{5, 7}, {5, 7}}, {{"axis", 1}}).read(dynamic)),
              ElementsAre(line("norm_forward x=f32:4x5x7 w=f32:1x5x7 b=f32:1x5x7 axes=1,2 n=?")));
  EXPECT_THAT(lines_of(norm("LayerNormalization", {2, 5, 7}, {{7}, {5, 1}}, {{"axis", -3}}).read()),
              ElementsAre(line("norm_forward x=f32:2x5x7 w=f32:1x1x7 b=f32:1x5x1 axes=0,1,2")));
}

TEST(OnnxLayerNormalization, GivesItsStatistics) {
  OnnxModel model = norm("LayerNormalization", {2, 5, 7}, {{7}, {7}}, {{"stash_type", 10}}, 17, 3);
  EXPECT_THAT(lines_of(model.read({.dtype = DType::f16})),
              ElementsAre(line("norm_forward x=f16:2x5x7 w=f16:1x1x7 b=f16:1x1x7 mean=f32:2x5x1 "
                               "inv_deviation=f32:2x5x1 axes=2")));
  OnnxModel second(17);
  second.input("x", {2, 7}).weights("p", {7});
  second.node("LayerNormalization", {"x", "p", ""}, {"y", "", "r"});
  second.output("y").output("r");
  EXPECT_THAT(lines_of(second.read()), ElementsAre(line("norm_forward x=f32:2x7 w=f32:1x7 inv_deviation=f32:2x1")));
}

TEST(OnnxLayerNormalization, SaysWhatIsWrong) {
  EXPECT_THAT(uncovered_of(norm("LayerNormalization", {4, 7}, {{7}}, {{"axis", 0}}).read(dynamic)),
              ElementsAre("LayerNormalization *1: it normalises over the batch, which is dynamic"));
  EXPECT_THAT(uncovered_of(norm("LayerNormalization", {4, 7}, {{4, 7}}).read(dynamic)),
              ElementsAre("LayerNormalization *1: its scale has the batch, which is dynamic"));
  expect_error(norm("LayerNormalization", {2, 7}, {{7}}, {{"axis", 2}}), "axis is 2, expected -2 to 1");
  expect_error(norm("LayerNormalization", {2, 7}, {{5}}),
               "node 'y' (LayerNormalization): input 1 is 1x5, which does not repeat to 2x7");
  expect_error(norm("LayerNormalization", {2, 7}, {{1, 1, 7}}), "input 1 is 1x1x7, which does not repeat to 2x7");
  expect_error(norm("LayerNormalization", {2, 7}, {{7}}, {{"stash_type", 0}}), "stash_type is 0");
}

TEST(OnnxMeanVarianceNormalization, HasTheAxesOfABatchUnlessGiven) {
  for (const int64_t opset : {9, 13}) {
    EXPECT_THAT(lines_of(norm("MeanVarianceNormalization", {2, 3, 5, 7}, {}, {}, opset).read()),
                ElementsAre(line("norm_forward x=f32:2x3x5x7 axes=0,2,3")));
    EXPECT_THAT(
        lines_of(norm("MeanVarianceNormalization", {2, 3, 5}, {}, {{"axes", Ints{-1, 1}}}, opset).read(dynamic)),
        ElementsAre(line("norm_forward x=f32:4x3x5 axes=1,2 n=?")));
  }
  EXPECT_THAT(uncovered_of(norm("MeanVarianceNormalization", {2, 3, 5, 7}, {}).read(dynamic)),
              ElementsAre("MeanVarianceNormalization *1: it normalises over the batch, which is dynamic"));
  expect_error(norm("MeanVarianceNormalization", {2, 3, 5}, {}), "axis is 3, expected -3 to 2");
}

TEST(OnnxNormalization, GivesItsShapeToWhatFollows) {
  const auto followed = [](OnnxModel model) {
    model.node("Flatten", {"y"}, {"f"});
    model.node("Softmax", {"f"}, {"z"});
    model.output("z");
    return lines_of(model.read({.fuse = false})).back();
  };
  const std::string softmax = line("softmax_forward x=f32:2x30:nc axis=1");
  for (const int64_t opset : {18, 21, 22})
    EXPECT_EQ(followed(group_norm({2, 6, 5}, 3, opset < 21 ? 3 : 6, opset)), softmax);
  EXPECT_EQ(followed(norm("LayerNormalization", {2, 6, 5}, {{5}})), softmax);
  EXPECT_EQ(followed(norm("InstanceNormalization", {2, 6, 5}, {{6}, {6}})), softmax);
  EXPECT_EQ(followed(norm("MeanVarianceNormalization", {2, 6, 5}, {}, {{"axes", Ints{0}}})), softmax);
  EXPECT_EQ(followed(batch_norm({2, 6, 5}, 15, trains, 3)), softmax);
}

TEST(OnnxNormalization, IsNotCoveredForIntegersAndOpenExtents) {
  OnnxModel open;
  open.input("x", {1, 3, "height", 5}).weights("p", {3});
  open.node("InstanceNormalization", {"x", "p", "p"}, {"y"});
  EXPECT_THAT(uncovered_of(open.read()), ElementsAre("InstanceNormalization *1: its extents are not all known"));
  OnnxModel integers(13);
  integers.input("x", {1, 3, 5}, onnx::TensorProto::INT32);
  integers.node("MeanVarianceNormalization", {"x"}, {"y"}, {{"axes", Ints{2}}});
  EXPECT_THAT(uncovered_of(integers.read()),
              ElementsAre("MeanVarianceNormalization *1: its elements are not floating-point numbers"));
}

/// A model whose value `v` is a normalisation of x; `r` has its shape, `c` is a constant for each channel.
OnnxModel normalised(const std::string& type = "InstanceNormalization") {
  OnnxModel model(17);
  model.input("x", {2, 3, 5, 7}).input("r", {2, 3, 5, 7}).weights("p", {3}).weights("c", {3, 1, 1}).scalar("zero", 0);
  model.scalar("six", 6);
  const bool is_batch = type == "BatchNormalization";
  model.node(type, is_batch ? std::vector<std::string>(1, "x") : std::vector<std::string>{"x", "p", "p"}, {"v"});
  if (is_batch) {
    for (int i = 0; i < 4; ++i) model.graph().mutable_node(0)->add_input("p");
  }
  return model;
}

const std::string instance = "norm_forward x=f32:2x3x5x7 w=f32:1x3x1x1 b=f32:1x3x1x1 axes=2,3";

TEST(OnnxNormalization, TakesInReluAndAddAndBoth) {
  for (const auto& [type, request] :
       {std::pair{"InstanceNormalization", instance}, {"BatchNormalization", inference}}) {
    OnnxModel relu = normalised(type), clip = normalised(type), add = normalised(type), both = normalised(type);
    relu.node("Relu", {"v"}, {"y"});
    EXPECT_THAT(lines_of(relu.read()), ElementsAre(line(request + " epilogue=relu")));
    clip.node("Clip", {"v", "zero"}, {"y"});
    EXPECT_THAT(lines_of(clip.read()), ElementsAre(line(request + " epilogue=relu")));
    add.node("Add", {"r", "v"}, {"y"});
    EXPECT_THAT(lines_of(add.read()), ElementsAre(line(request + " epilogue=add")));
    both.node("Add", {"v", "r"}, {"a"});
    both.node("Relu", {"a"}, {"y"});
    EXPECT_THAT(lines_of(both.read()), ElementsAre(line(request + " epilogue=add+relu")));
    EXPECT_THAT(lines_of(both.read({.fuse = false})),
                ElementsAre(line(request), line("tensor_op a=f32:2x3x5x7 b=f32:2x3x5x7 mode=add"),
                            line("activation_forward x=f32:2x3x5x7 mode=relu")));
  }
}

TEST(OnnxNormalization, LeavesConstantsOfChannelsAlone) {
  OnnxModel constant = normalised(), late = normalised();
  constant.node("Add", {"v", "c"}, {"y"});
  EXPECT_THAT(lines_of(constant.read()),
              ElementsAre(line(instance), line("tensor_op a=f32:2x3x5x7 b=f32:1x3x1x1 mode=add")));
  late.node("Relu", {"v"}, {"a"});
  late.node("Add", {"a", "r"}, {"y"});
  EXPECT_THAT(lines_of(late.read()),
              ElementsAre(line(instance + " epilogue=relu"), line("tensor_op a=f32:2x3x5x7 b=f32:2x3x5x7 mode=add")));
}

TEST(OnnxNormalization, TakesNoAddWhereNodesUseItsStatistics) {
  const auto request_of = [](bool is_computed) {
    OnnxModel model(17);
    model.input("x", {2, 7}).weights("p", {7});
    model.node("LayerNormalization", {"x", "p"}, {"v", "mean"});
    model.node("Mul", {"x", is_computed ? "mean" : "x"}, {"r"});
    model.node("Add", {"v", "r"}, {"y"});
    model.output("mean").output("y");
    return lines_of(model.read()).front();
  };
  const std::string norm = "norm_forward x=f32:2x7 w=f32:1x7 mean=f32:2x1 axes=1";
  EXPECT_EQ(request_of(true), line(norm));
  EXPECT_EQ(request_of(false), line(norm + " epilogue=add"));
}

TEST(OnnxNormalization, HasItsResidualInGroupsToo) {
  OnnxModel model = group_norm({2, 6, 5}, 3, 6, 21);
  model.graph().clear_output();
  model.input("r", {2, 6, 5});
  model.node("Add", {"y", "r"}, {"z"});
  EXPECT_THAT(
      lines_of(model.read({.order = MemoryOrder::nhwc})),
      ElementsAre(line("norm_forward x=f32:2x3x2x5:30,2,1,6 w=f32:1x3x2x1 b=f32:1x3x2x1 axes=2,3 epilogue=add")));
}

}  // namespace
}  // namespace kiln::test
