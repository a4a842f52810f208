// Nodes that move elements.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OnnxModel moving(const std::string& type, const Ints& extents, const Attributes& attributes = {}, int64_t opset = 13,
                 const std::vector<Ints>& integers = {}, int32_t element_type = floating) {
  return one_node(type, {extents}, attributes, opset, element_type, integers);
}

void expect_free(const OnnxModel& model, const OnnxOptions& options = {}) {
  const ModelListing listing = model.read(options);
  EXPECT_THAT(lines_of(listing), IsEmpty());
  EXPECT_THAT(uncovered_of(listing), IsEmpty());
}

const OnnxOptions dynamic{.batch = 4, .dynamic_batch = true};

TEST(OnnxTranspose, IsACopyBetweenStrides) {
  EXPECT_THAT(lines_of(moving("Transpose", {2, 3, 5, 7}, {{"perm", Ints{0, 2, 3, 1}}}).read()),
              ElementsAre(line("tensor_transform x=f32:2x5x7x3:105,7,1,35 y=f32:2x5x7x3:nchw")));
  EXPECT_THAT(lines_of(moving("Transpose", {3, 5}, {}, 13, {}, onnx::TensorProto::INT32).read()),
              ElementsAre(line("tensor_transform x=i32:5x3:1,5 y=i32:5x3:nc")));
  EXPECT_THAT(lines_of(moving("Transpose", {4, 3, 5}, {{"perm", Ints{0, 2, 1}}}).read(dynamic)),
              ElementsAre(line("tensor_transform x=f32:4x5x3:15,1,5 y=f32:4x5x3:ncw n=?")));
}

TEST(OnnxTranspose, CostsNothingWhereMemoryStaysAsItIs) {
  expect_free(moving("Transpose", {2, 1, 7}, {{"perm", Ints{1, 0, 2}}}));
  expect_free(moving("Transpose", {2, 3, 1, 1}, {{"perm", Ints{0, 2, 3, 1}}}));
  expect_free(moving("Transpose", {5}));
  expect_free(moving("Transpose", {}));
}

TEST(OnnxTranspose, ChecksItsPermutation) {
  expect_error(moving("Transpose", {2, 3}, {{"perm", Ints{0}}}), "node 'y' (Transpose): perm has 1 values, expected 2");
  expect_error(moving("Transpose", {2, 3}, {{"perm", Ints{1, 1}}}), "axis 1 stands twice");
  expect_error(moving("Transpose", {2, 3}, {{"perm", Ints{0, 2}}}), "axis is 2, expected -2 to 1");
  EXPECT_THAT(uncovered_of(moving("Transpose", {4, 3}).read(dynamic)),
              ElementsAre("Transpose *1: it moves the batch, which is dynamic"));
}

TEST(OnnxSlice, IsACopyOfARegion) {
  const Ints starts{1, -4}, ends{INT64_MAX, -1}, axes{2, -1}, steps{2, 1};
  const std::string expected = line("tensor_transform x=f32:2x3x2x3:105,35,14,1@8 y=f32:2x3x2x3:nchw");
  EXPECT_THAT(lines_of(moving("Slice", {2, 3, 5, 7}, {}, 13, {starts, ends, axes, steps}).read()),
              ElementsAre(expected));
  EXPECT_THAT(lines_of(moving("Slice", {2, 3, 5, 7}, {{"starts", Ints{1, 0}}, {"ends", Ints{2, 100}}}, 9).read()),
              ElementsAre(line("tensor_transform x=f32:1x3x5x7:nchw@4 y=f32:1x3x5x7:nchw")));
  EXPECT_THAT(lines_of(moving("Slice", {2, 4, 5, 7}, {{"starts", Ints{4}}, {"ends", Ints{7}}, {"axes", Ints{3}}}, 9)
                           .read({.dtype = DType::f16, .order = MemoryOrder::nhwc})),
              ElementsAre(line("tensor_transform x=f16:2x4x5x3:140,1,28,4 y=f16:2x4x5x3:nhwc")));
}

TEST(OnnxSlice, CostsNothingWhereMemoryStaysAsItIs) {
  expect_free(moving("Slice", {2, 3}, {}, 13, {{0}, {INT64_MAX}}));
  expect_free(moving("Slice", {4, 4}, {}, 13, {{2}, {4}}));  // the lower half, aligned as any tensor
}

TEST(OnnxSlice, IsNotCoveredBackwardsEmptyOrComputed) {
  EXPECT_THAT(uncovered_of(moving("Slice", {9}, {}, 13, {{-1}, {INT64_MIN}, {0}, {-1}}).read()),
              ElementsAre("Slice *1: it runs backwards, and strides are not negative"));
  EXPECT_THAT(uncovered_of(moving("Slice", {9}, {}, 13, {{5}, {5}}).read()),
              ElementsAre("Slice *1: its result has no elements"));
  EXPECT_THAT(uncovered_of(moving("Slice", {4, 9}, {}, 13, {{1}, {3}}).read(dynamic)),
              ElementsAre("Slice *1: it cuts the batch, which is dynamic"));
  OnnxModel computed;
  computed.input("x", {4}).input("starts", {1}, onnx::TensorProto::INT64).integers("ends", {3});
  computed.node("Slice", {"x", "starts", "ends"}, {"y"});
  EXPECT_THAT(uncovered_of(computed.read()), ElementsAre("Slice *1: its starts and ends do not stand in the file"));
}

TEST(OnnxSlice, ChecksItsLists) {
  expect_error(moving("Slice", {9}, {}, 13, {{1}, {5}, {0}, {0}}), "node 'y' (Slice): steps holds 0");
  expect_error(moving("Slice", {9}, {}, 13, {{1}, {5, 6}}), "node 'y' (Slice): has 1 starts, 2 ends");
  expect_error(moving("Slice", {9, 9}, {}, 13, {{1, 1}, {5, 5}, {0, -2}}), "axis 0 stands twice");
}

OnnxModel split(const Ints& extents, int64_t opset, const Attributes& attributes, const Ints& sizes = {}) {
  OnnxModel model(opset);
  model.input("x", {extents.begin(), extents.end()});
  if (!sizes.empty()) model.integers("sizes", sizes);
  model.node("Split", sizes.empty() ? std::vector<std::string>{"x"} : std::vector<std::string>{"x", "sizes"},
             {"a", "b", "c"}, attributes);
  model.output("a").output("c");
  return model;
}

TEST(OnnxSplit, CopiesThePartsThatAreUsed) {
  const std::vector<std::string> parts = {line("tensor_transform x=f32:2x2x5:35,5,1 y=f32:2x2x5:ncw"),
                                          line("tensor_transform x=f32:2x4x5:35,5,1@4 y=f32:2x4x5:ncw")};
  EXPECT_EQ(lines_of(split({2, 7, 5}, 13, {{"axis", 1}}, {2, 1, 4}).read()), parts);
  EXPECT_EQ(lines_of(split({2, 7, 5}, 11, {{"axis", -2}, {"split", Ints{2, 1, 4}}}).read()), parts);
  EXPECT_THAT(lines_of(split({4, 12}, 13, {{"axis", 1}}).read()),
              ElementsAre(line("tensor_transform x=f32:4x4:12,1 y=f32:4x4:nc", 2)));
  EXPECT_THAT(lines_of(split({4, 7}, 18, {{"axis", 1}, {"num_outputs", 3}}).read()),
              ElementsAre(line("tensor_transform x=f32:4x3:7,1 y=f32:4x3:nc"),
                          line("tensor_transform x=f32:4x1:7,1@8 y=f32:4x1:nc")));
}

TEST(OnnxSplit, ChecksItsParts) {
  expect_error(split({4, 7}, 13, {{"axis", 1}}), "node 'a' (Split): 7 elements are not 3 equal parts");
  expect_error(split({4, 7}, 13, {{"axis", 1}}, {3, 3, 3}),
               "parts of 3, 3, 3 for 3 outputs, expected as many that add up to 7");
  expect_error(split({4, 7}, 13, {{"axis", 1}}, {3, 4}), "parts of 3, 4 for 3 outputs");
  expect_error(split({4, 7}, 13, {{"axis", 2}}), "axis is 2, expected -2 to 1");
  EXPECT_THAT(uncovered_of(split({4, 7}, 13, {}, {1, 1, 2}).read(dynamic)),
              ElementsAre("Split *1: it cuts the batch, which is dynamic"));
  EXPECT_THAT(uncovered_of(split({4, 7}, 13, {{"axis", 1}}, {1, 2, 4}).read(dynamic)), IsEmpty());
}

OnnxModel concat(const std::vector<Ints>& parts, const Attributes& attributes) {
  OnnxModel model;
  std::vector<std::string> names;
  for (const Ints& extents : parts) {
    names.push_back("x" + std::to_string(names.size()));
    model.input(names.back(), {extents.begin(), extents.end()});
  }
  model.node("Concat", names, {"y"}, attributes);
  model.output("y");
  return model;
}

TEST(OnnxConcat, CopiesEachInputIntoItsPlace) {
  EXPECT_THAT(lines_of(concat({{2, 3, 5, 7}, {2, 1, 5, 7}}, {{"axis", 1}}).read()),
              ElementsAre(line("tensor_transform x=f32:2x3x5x7:nchw y=f32:2x3x5x7:140,35,7,1"),
                          line("tensor_transform x=f32:2x1x5x7:nchw y=f32:2x1x5x7:140,35,7,1@4")));
  EXPECT_THAT(lines_of(concat({{4, 8, 5, 7}, {4, 8, 5, 7}}, {{"axis", -3}})
                           .read({.dtype = DType::f16, .order = MemoryOrder::nhwc, .batch = 4, .dynamic_batch = true})),
              ElementsAre(line("tensor_transform x=f16:4x8x5x7:nhwc y=f16:4x8x5x7:560,1,112,16 n=?", 2)));
  expect_free(concat({{2, 3}}, {{"axis", 0}}));
}

TEST(OnnxConcat, ChecksItsInputs) {
  expect_error(concat({{2, 3}, {2, 3}}, {}), "node 'y' (Concat): attribute axis is missing");
  expect_error(concat({{2, 3}, {3, 3}}, {{"axis", 1}}), "node 'y' (Concat): input 1 does not fit the others");
  expect_error(concat({{2, 3}, {2, 3, 1}}, {{"axis", 1}}), "node 'y' (Concat): input 1 does not fit the others");
  EXPECT_THAT(uncovered_of(concat({{4, 3}, {4, 3}}, {{"axis", 0}}).read(dynamic)),
              ElementsAre("Concat *1: it joins tensors along the batch, which is dynamic"));
}

TEST(OnnxPad, PadsAndCrops) {
  const std::string expected = line("tensor_transform x=f32:2x3x5:ncw pad=0,0,1,0,0,2");
  EXPECT_THAT(lines_of(moving("Pad", {2, 3, 5}, {{"pads", Ints{0, 0, 1, 0, 0, 2}}}, 10).read()), ElementsAre(expected));
  EXPECT_THAT(lines_of(moving("Pad", {2, 3, 5}, {}, 13, {{0, 0, 1, 0, 0, 2}}).read()), ElementsAre(expected));
  OnnxModel axes(18);
  axes.input("x", {2, 3, 5}).integers("pads", {1, 2}).scalar("value", 3).integers("axes", {-1});
  axes.node("Pad", {"x", "pads", "value", "axes"}, {"y"});
  EXPECT_THAT(lines_of(axes.read()), ElementsAre(expected));
  EXPECT_THAT(lines_of(moving("Pad", {2, 9}, {}, 13, {{0, -4, 0, 2}}).read()),
              ElementsAre(line("tensor_transform x=f32:2x5:9,1 y=f32:2x7:nc pad=0,0,0,2")));
  EXPECT_THAT(lines_of(moving("Pad", {2, 9}, {}, 13, {{0, -1, 0, -1}}).read()),
              ElementsAre(line("tensor_transform x=f32:2x7:9,1@4 y=f32:2x7:nc")));
  expect_free(moving("Pad", {2, 9}, {}, 13, {{0, 0, 0, 0}}));
}

TEST(OnnxPad, IsNotCoveredForOtherModesAndComputedPads) {
  EXPECT_THAT(uncovered_of(moving("Pad", {2, 9}, {{"mode", "reflect"}}, 13, {{0, 1, 0, 1}}).read()),
              ElementsAre("Pad *1: it pads by 'reflect', and constants are covered"));
  EXPECT_THAT(uncovered_of(moving("Pad", {2, 9}, {}, 13, {{0, -5, 0, -4}}).read()),
              ElementsAre("Pad *1: it takes all elements away"));
  EXPECT_THAT(uncovered_of(moving("Pad", {4, 9}, {}, 13, {{1, 0, 0, 0}}).read(dynamic)),
              ElementsAre("Pad *1: it pads the batch, which is dynamic"));
  OnnxModel computed;
  computed.input("x", {2, 9}).input("pads", {4}, onnx::TensorProto::INT64);
  computed.node("Pad", {"x", "pads"}, {"y"});
  EXPECT_THAT(uncovered_of(computed.read()), ElementsAre("Pad *1: its pads do not stand in the file"));
  expect_error(moving("Pad", {2, 9}, {}, 13, {{0, 1}}), "node 'y' (Pad): has 2 pads, expected 2 for each of 2 axes");
  expect_error(moving("Pad", {9}, {}, 13, {{0, INT64_MAX}}), "node 'y' (Pad): pads holds 9223372036854775807");
}

TEST(OnnxExpand, RepeatsDimensions) {
  EXPECT_THAT(lines_of(moving("Expand", {3, 1}, {}, 13, {{2, 3, 5}}).read()),
              ElementsAre(line("tensor_transform x=f32:1x3x1:ncw y=f32:2x3x5:ncw")));
  expect_free(moving("Expand", {3, 4}, {}, 13, {{1, 1}}));
  EXPECT_THAT(uncovered_of(moving("Expand", {4, 1}, {}, 13, {{2, 4, 5}}).read(dynamic)),
              ElementsAre("Expand *1: it puts dimensions before the batch, which is dynamic"));
}

constexpr int64_t float8_e4m3fn = 17;
constexpr int float8_e5m2 = 19;

// The types of ONNX 1.14, which its operators convert and move.
TEST(OnnxFp8, IsConvertedAndMoved) {
  EXPECT_THAT(lines_of(moving("Cast", {3, 4}, {{"to", float8_e4m3fn}}).read()),
              ElementsAre(line("tensor_transform x=f32:3x4:nc y=f8e4m3:3x4:nc")));
  EXPECT_THAT(lines_of(moving("Cast", {3, 4}, {{"to", floating}}, 13, {}, float8_e5m2).read()),
              ElementsAre(line("tensor_transform x=f8e5m2:3x4:nc y=f32:3x4:nc")));
  expect_free(moving("Transpose", {2, 1, 7}, {{"perm", Ints{1, 0, 2}}}, 13, {}, float8_e5m2));
  EXPECT_THAT(uncovered_of(moving("Relu", {3}, {}, 13, {}, float8_e5m2).read()),
              ElementsAre("Relu *1: its elements are f8e5m2, which are converted and moved only"));
  EXPECT_THAT(uncovered_of(moving("Max", {3}, {}, 13, {}, float8_e5m2).read()),
              ElementsAre("Max *1: its elements are f8e5m2, which are converted and moved only"));
}

TEST(OnnxFp8, IsStorageWhereTheOperationTakesIt) {
  EXPECT_THAT(lines_of(moving("Relu", {3, 4}).read({.dtype = DType::f8e4m3})),
              ElementsAre(line("activation_forward x=f8e4m3:3x4:nc y=f8e4m3:3x4:nc mode=relu")));
  EXPECT_THAT(uncovered_of(moving("Sqrt", {3, 4}).read({.dtype = DType::f8e4m3})),
              ElementsAre("Sqrt *1: its operation does not take f8e4m3"));
}

TEST(OnnxCast, CostsNothingBetweenFloatingPointNumbers) {
  expect_free(moving("Cast", {3, 4}, {{"to", onnx::TensorProto::FLOAT16}}));
  EXPECT_THAT(lines_of(moving("Cast", {3, 4}, {{"to", floating}}, 13, {}, onnx::TensorProto::UINT8).read()),
              ElementsAre(line("tensor_transform x=u8:3x4:nc y=f32:3x4:nc")));
  EXPECT_THAT(uncovered_of(moving("Cast", {3}, {{"to", onnx::TensorProto::INT32}}).read()),
              ElementsAre("Cast *1: it makes integers of its elements"));
  EXPECT_THAT(uncovered_of(moving("Cast", {3}, {{"to", floating}}, 13, {}, onnx::TensorProto::INT64).read()),
              ElementsAre("Cast *1: there is no dtype for its elements"));
}

TEST(OnnxDropout, CostsNothingInInference) {
  expect_free(moving("Dropout", {3, 4}));
  OnnxModel trains;
  trains.input("x", {3, 4}).scalar("ratio", 0.5F).input("trains", {}, onnx::TensorProto::BOOL);
  trains.node("Dropout", {"x", "ratio", "trains"}, {"y"});
  EXPECT_THAT(uncovered_of(trains.read()), ElementsAre("Dropout *1: it drops elements out, as in training"));
}

}  // namespace
}  // namespace kiln::test
