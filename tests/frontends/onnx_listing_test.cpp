// List of a model's calls: batch, types and extents.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "listing.h"

namespace kiln::test::onnx_listing_test {
namespace {

using testing::ElementsAre;

/// Conv, Flatten and Softmax over an image of the given extents.
OnnxModel classifier(const std::vector<Extent>& image) {
  OnnxModel model;
  model.input("image", image).weights("w", {5, 3, 4, 4});
  model.node("Conv", {"image", "w"}, {"c"});
  model.node("Flatten", {"c"}, {"f"});
  model.node("Softmax", {"f"}, {"y"});
  model.output("y");
  return model;
}

std::vector<std::string> classifier_lines(int64_t n) {
  const std::string batch = std::to_string(n);
  return {line("conv_forward x=f32:" + batch + "x3x4x4 w=f32:5x3x4x4 constant_weights"),
          line("softmax_forward x=f32:" + batch + "x5 axis=1")};
}

TEST(OnnxListing, KeepsTheModelsBatchUnlessAnotherIsGiven) {
  EXPECT_EQ(steps_of(classifier({2, 3, 4, 4})), classifier_lines(2));
  EXPECT_EQ(steps_of(classifier({2, 3, 4, 4}), {.batch = 16}), classifier_lines(16));
}

TEST(OnnxListing, SetsABatchThatTheModelLeavesOpen) {
  for (const char* open : {"N", ""}) {
    EXPECT_EQ(steps_of(classifier({open, 3, 4, 4})), classifier_lines(1));
    EXPECT_EQ(steps_of(classifier({open, 3, 4, 4}), {.batch = 16}), classifier_lines(16));
  }
}

// Exporters such as PaddlePaddle's write an open extent as -1.
TEST(OnnxListing, AnExtentBelowZeroIsOpen) {
  EXPECT_EQ(steps_of(classifier({-1, 3, 4, 4})), classifier_lines(1));
  EXPECT_EQ(steps_of(classifier({-1, 3, 4, 4}), {.batch = 16}), classifier_lines(16));
  OnnxModel behind_a_fixed_one;
  behind_a_fixed_one.input("k", {1, 3}).input("x", {-1, 3}).input("z", {-1, 3});
  behind_a_fixed_one.node("Max", {"x", "k"}, {"y"});
  behind_a_fixed_one.node("Softmax", {"z"}, {"p"});
  behind_a_fixed_one.output("y").output("p");
  EXPECT_THAT(steps_of(behind_a_fixed_one, {.batch = 4}),
              ElementsAre(line("tensor_op a=f32:4x3 b=f32:1x3 mode=max"), line("softmax_forward x=f32:4x3 axis=1")));
}

TEST(OnnxListing, SetsTheBatchOfEveryInput) {
  OnnxModel model;
  model.input("a", {"N", 3}).input("b", {"N", 3}).input("table", {7, 3});
  model.node("Softmax", {"a"}, {"p"});
  model.node("Softmax", {"b"}, {"q"});
  model.node("Softmax", {"table"}, {"t"});
  model.output("p").output("q").output("t");
  const std::string four = line("softmax_forward x=f32:4x3 axis=1");
  EXPECT_THAT(steps_of(model, {.batch = 4}), ElementsAre(four, four, line("softmax_forward x=f32:7x3 axis=1")));
}

TEST(OnnxListing, RefusesABatchBelowOneAndOtherOpenExtents) {
  const auto code = ErrorCode::invalid_argument;
  expect_error(classifier({1, 3, 4, 4}), "the batch is 0, expected 1 or more", code, {.batch = 0});
  expect_error(classifier({1, 3, 4, 4}), "the batch is -2, expected 1 or more", code, {.batch = -2});
  expect_error(classifier({1, 3, "height", 4}), "open: 'image' [1, 3, height, 4]", code);
  expect_error(classifier({1, 3, -1, 4}), "open: 'image' [1, 3, ?, 4]", code);
}

TEST(OnnxListing, DynamicBatchesAreOfTheBucketWhereTheOperationHasThem) {
  const ModelOptions dynamic{.batch = 5, .dynamic_batch = true};
  EXPECT_THAT(steps_of(classifier({"N", 3, 4, 4}), dynamic),
              ElementsAre(line("conv_forward x=f32:8x3x4x4 w=f32:5x3x4x4 constant_weights n=?"),
                          line("softmax_forward x=f32:8x5 axis=1 n=?")));
  EXPECT_THAT(steps_of(one_node("ReduceMax", {{5, 3}}, {{"axes", Ints{0}}}), dynamic),
              ElementsAre(line("reduce x=f32:5x3 axes=0 mode=max")));
  EXPECT_THAT(steps_of(one_node("Add", {{5, 3}, {3}}), dynamic),
              ElementsAre(line("tensor_op a=f32:8x3 b=f32:1x3 y=f32:8x3 mode=add n=?")));
}

TEST(OnnxListing, TypesAreTheModelsUnlessOthersAreGiven) {
  const auto elements_of = [](int32_t type, const ModelOptions& options = {}) {
    const OnnxModel model = one_node("Relu", {{2, 3}}, {}, 14, type);
    return lowered(model, options).schedule.steps.at(0).request.at("x").dtype;
  };
  EXPECT_EQ(elements_of(onnx::TensorProto::FLOAT16), DType::f16);
  EXPECT_EQ(elements_of(onnx::TensorProto::BFLOAT16), DType::bf16);
  EXPECT_EQ(elements_of(onnx::TensorProto::DOUBLE), DType::f32);
  EXPECT_EQ(elements_of(onnx::TensorProto::DOUBLE, {.dtype = DType::bf16}), DType::bf16);
}

TEST(OnnxListing, HasConstantWeightsWhereTheModelHasThem) {
  OnnxModel model;
  model.input("x", {1, 3, 8, 8}).weights("w", {5, 3, 3, 3}).input("given", {5, 5, 3, 3});
  model.node("Conv", {"x", "w"}, {"y"});
  model.node("Conv", {"y", "given"}, {"z"});
  model.output("z");
  EXPECT_THAT(steps_of(model), ElementsAre(line("conv_forward x=f32:1x3x8x8 w=f32:5x3x3x3 constant_weights"),
                                           line("conv_forward x=f32:1x5x6x6 w=f32:5x5x3x3")));
}

TEST(OnnxListing, FollowsShapesThatNodesCompute) {
  // Reshape to {0, -1} made of Shape, Gather, Unsqueeze and Concat, as exporters write flattening.
  OnnxModel model;
  model.input("x", {"N", 3, 4}).integers("index", {0}).integers("axes", {0}).integers("rest", {-1});
  model.graph().mutable_initializer(0)->clear_dims();
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "index"}, {"n"}, {{"axis", 0}});
  model.node("Unsqueeze", {"n", "axes"}, {"n1"});
  model.node("Concat", {"n1", "rest"}, {"flat"}, {{"axis", 0}});
  model.node("Reshape", {"x", "flat"}, {"f"});
  model.node("Softmax", {"f"}, {"y"});
  model.output("y");
  EXPECT_THAT(steps_of(model, {.batch = 6}), ElementsAre(line("softmax_forward x=f32:6x12 axis=1")));
}

// As of spectrograms, whose frames reach over the ends of the signal.
TEST(OnnxListing, AMirroredBorderIsOneCallASideHoweverWide) {
  for (const int64_t width : {3, 128, 2000}) {
    OnnxModel model(13);
    model.input("x", {1, 1, 4000}).integers("pads", {0, 0, width, 0, 0, width});
    model.node("Pad", {"x", "pads"}, {"y"}, {{"mode", std::string("reflect")}});
    model.output("y");
    std::vector<std::string> operations;
    for (const graph::Step& step : lowered(model).schedule.steps) operations.push_back(step.request.operation);
    EXPECT_THAT(operations, ElementsAre("gather", "gather", "tensor_transform")) << width;
  }
}

TEST(OnnxListing, ElementsOfManyPlacesAreOneCall) {
  const auto operations_of = [](const test::Ints& indices) {
    OnnxModel model(13);
    model.input("x", {9, 4}).integers("indices", indices);
    model.node("Gather", {"x", "indices"}, {"g"}, {{"axis", int64_t{0}}});
    model.node("Relu", {"g"}, {"y"});
    model.output("y");
    std::vector<std::string> operations;
    for (const graph::Step& step : lowered(model).schedule.steps) operations.push_back(step.request.operation);
    return operations;
  };
  EXPECT_THAT(operations_of({2, 4, 6}), ElementsAre("activation_forward"));  // a view
  EXPECT_THAT(operations_of({5, 1}), ElementsAre("tensor_transform", "tensor_transform", "activation_forward"));
  EXPECT_THAT(operations_of({5, 4, 1}), ElementsAre("gather"));  // with relu in its epilogue
}

TEST(OnnxListing, LeavesOutViewsAndWhatDependsOnConstants) {
  OnnxModel model;
  model.input("x", {2, 3, 4}).weights("large", {300, 300});
  model.node("Sqrt", {"large"}, {"root"});
  model.node("MatMul", {"large", "root"}, {"product"});
  model.node("Identity", {"x"}, {"a"});
  model.node("Dropout", {"a"}, {"b"});
  model.node("Flatten", {"b"}, {"c"});
  model.node("Softmax", {"c"}, {"y"});
  model.node("ReduceMax", {"product"}, {"m"});
  model.node("Add", {"y", "m"}, {"z"});
  model.output("z");
  EXPECT_THAT(steps_of(model, {.fuse = false}),
              ElementsAre(line("softmax_forward x=f32:2x12 axis=1"), line("tensor_op a=f32:2x12 b=f32:1x1 mode=add")));
}

}  // namespace
}  // namespace kiln::test::onnx_listing_test
