// Files that are no models, and models that are wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "listing.h"

namespace kiln::test::onnx_faults_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

void expect_unreadable(const std::string& path, ErrorCode code, const std::string& text) {
  try {
    (void)read_onnx(path);
    FAIL() << "no error, expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.message(), AllOf(StartsWith(path + ": "), HasSubstr(text)));
  }
}

std::string contents_of(const std::string& path) {
  std::ostringstream contents;
  contents << std::ifstream(path, std::ios::binary).rdbuf();
  return contents.str();
}

std::string example() {
  return contents_of(std::string(KILN_EXAMPLE_MODELS) + "/squeezenet1_1.onnx");
}

TEST(OnnxFaults, NamesAFileThatCannotBeRead) {
  expect_unreadable("/nonexistent/model.onnx", ErrorCode::io_error, "No such file");
  expect_unreadable(testing::TempDir(), ErrorCode::io_error, "Is a directory");
}

TEST(OnnxFaults, SaysWhenAFileIsNoModel) {
  for (const char* text :
       {"", "version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "{\"graph\": []}", "\xff\xff\xff"}) {
    expect_unreadable(TemporaryFile(text).path(), ErrorCode::parse_error, "is not an ONNX model");
  }
}

TEST(OnnxFaults, SaysWhenAFileIsCutShort) {
  const std::string whole = example();
  for (const size_t size : {whole.size() - 1, whole.size() / 2, whole.size() / 3, size_t{20}}) {
    const TemporaryFile file(whole.substr(0, size));
    EXPECT_THROW((void)read_onnx(file.path()), Error) << size;
  }
}

TEST(OnnxFaults, RefusesOpsetsItDoesNotKnow) {
  for (const int64_t opset : {1, 6, 26, 1000}) {
    OnnxModel model(opset);
    model.input("x", {1, 2});
    model.node("Softmax", {"x"}, {"y"});
    expect_error(model, "uses opset " + std::to_string(opset) + ", expected 7 to 25", ErrorCode::unsupported);
  }
}

TEST(OnnxFaults, ReadsTheOldestAndNewestOpset) {
  for (const int64_t opset : {7, 25}) {
    OnnxModel model(opset);
    model.input("x", {1, 2});
    model.node("Softmax", {"x"}, {"y"});
    model.output("y");
    EXPECT_EQ(steps_of(model).size(), 1U) << opset;
  }
}

/// A model of ONNX's operations for classical machine learning alone.
OnnxModel classifier() {
  OnnxModel model;
  model.proto().mutable_opset_import(0)->set_domain("ai.onnx.ml");
  model.proto().mutable_opset_import(0)->set_version(1);
  model.input("x", {3, 2});
  model.node("LinearClassifier", {"x"}, {"label", "scores"}).set_domain("ai.onnx.ml");
  model.node("Normalizer", {"scores"}, {"y"}, {{"norm", "L1"}}).set_domain("ai.onnx.ml");
  model.output("y");
  return model;
}

TEST(OnnxFaults, NamesTheNodesOfAModelThatImportsNoneOfOnnxsOwnOperations) {
  EXPECT_THAT(reasons_of(classifier()),
              testing::ElementsAre("ai.onnx.ml.LinearClassifier label: no operation of Kiln serves it",
                                   "ai.onnx.ml.Normalizer y: no operation of Kiln serves it"));
}

TEST(OnnxFaults, RefusesOnnxsOwnOperationsWithoutTheirOpset) {
  const std::string message = "does not say which opset of ONNX's own operations it uses";
  OnnxModel model = classifier();
  model.node("Relu", {"y"}, {"z"});
  expect_error(model, message);
  OnnxModel in_a_body = classifier();
  test::add_graph(*in_a_body.graph().mutable_node(0), "body") = model.graph();
  expect_error(in_a_body, message);
}

TEST(OnnxFaults, FindsCyclesAndValuesThatNothingDefines) {
  OnnxModel cyclic;
  cyclic.input("x", {1, 2});
  cyclic.node("Add", {"x", "b"}, {"a"});
  cyclic.node("Relu", {"a"}, {"b"});
  expect_error(cyclic, "node 'a' (Add) uses 'b' before it is computed");
  OnnxModel undefined;
  undefined.node("Relu", {"x"}, {"y"});
  expect_error(undefined, "node 'y' (Relu) uses 'x', which nothing defines");
  OnnxModel twice;
  twice.input("x", {1, 2});
  twice.node("Relu", {"x"}, {"y"});
  twice.node("Relu", {"x"}, {"y"});
  expect_error(twice, "node 'y' (Relu) defines 'y' a second time");
}

TEST(OnnxFaults, RefusesAnEmptyGraph) {
  expect_error(OnnxModel(), "holds no nodes");
}

/// A Conv with one thing wrong.
OnnxModel conv(const Attributes& attributes, const Ints& filter = {6, 4, 3, 2}) {
  OnnxModel model;
  model.input("x", {1, 4, 9, 10}).weights("w", filter);
  model.node("Conv", {"x", "w"}, {"y"}, attributes);
  model.output("y");
  return model;
}

TEST(OnnxFaults, NamesTheNodeAndAttributeThatAreWrong) {
  const std::string node = "node 'y' (Conv): ";
  expect_error(conv({{"strides", 2}}), node + "attribute strides is of type INT, expected INTS");
  expect_error(conv({{"pads", Ints{1, 1}}}), node + "attribute pads has 2 values, expected 4");
  expect_error(conv({{"strides", Ints{0, 1}}}), node + "strides holds 0, expected 1 to");
  expect_error(conv({{"pads", Ints{0, 0, -1, 0}}}), node + "pads holds -1, expected 0 to");
  expect_error(conv({{"dilations", Ints{1, int64_t{1} << 40}}}), node + "dilations holds 1099511627776");
  expect_error(conv({{"group", 0}}), node + "group holds 0, expected 1 to");
  expect_error(conv({{"auto_pad", "SAME"}}), node + "auto_pad is 'SAME', expected NOTSET");
  expect_error(conv({{"kernel_shape", Ints{3, 3}}}), node + "kernel_shape is 3x3, but the filter is 3x2");
  expect_error(conv({}, {6, 4, 3}), node + "the input has 4 dimensions, but the filter has 3");
  expect_error(conv({}, {6, 4, 12, 2}), node + "the window spans 12 elements along h, but the padded input has 9");
}

TEST(OnnxFaults, NamesTheNodeWhoseOperandsDoNotFit) {
  const auto code = ErrorCode::invalid_argument;
  expect_error(conv({}, {6, 3, 3, 2}), "node 'y' (Conv): conv_forward: w has 3 channels per filter, expected 4", code);
  expect_error(conv({{"group", 3}}), "node 'y' (Conv): conv_forward: groups=3 does not divide the 4 channels of x",
               code);
  OnnxModel large;
  large.input("x", {1, 4, int64_t{1} << 36, 2}).weights("w", {6, 4, 3, 2});
  large.node("Conv", {"x", "w"}, {"y"});
  large.output("y");
  expect_error(large, "node 'y' (Conv): its input holds 68719476736, expected 0 to 2147483647");
}

TEST(OnnxFaults, RefusesContentsThatShapeInferenceWouldTripOver) {
  OnnxModel scan, data;
  scan.input("x", {1, 4});
  scan.node("Scan", {"x"}, {"y"});
  expect_error(scan, "node 'y' (Scan): attribute body is missing, or no graph");
  data.input("x", {1, 4}).weights("shape", {2});
  onnx::TensorProto& shape = *data.graph().mutable_initializer(0);
  shape.set_data_type(onnx::TensorProto::INT64);
  shape.set_raw_data("123456789");
  data.node("Reshape", {"x", "shape"}, {"y"});
  expect_error(data, "initializer 'shape': 9 bytes of data are not a whole number of 8-byte elements");
}

TEST(OnnxFaults, CountsInputs) {
  OnnxModel none, missing;
  none.input("x", {1, 4, 9, 10});
  none.node("Conv", {"x"}, {"y"});
  expect_error(none, "node 'y' (Conv): has 1 inputs and 1 outputs, expected 2 to 3");
  missing.input("x", {1, 4, 9, 10});
  missing.node("MaxPool", {""}, {"y"}, {{"kernel_shape", Ints{2, 2}}});
  expect_error(missing, "node 'y' (MaxPool): has 1 inputs");
  OnnxModel windowless;
  windowless.input("x", {1, 4, 9, 10});
  windowless.node("MaxPool", {"x"}, {"y"});
  expect_error(windowless, "node 'y' (MaxPool): attribute kernel_shape is missing");
}

TEST(OnnxFaults, SurvivesDamagedFiles) {
  // Every damaged file is read or refused with an Error; nothing else may happen.
  const std::string whole = example();
  std::mt19937 random(7);
  int refused = 0;
  for (int round = 0; round < 150; ++round) {
    std::string damaged = whole;
    for (int change = 0; change <= round % 4; ++change) {
      damaged[random() % damaged.size()] = static_cast<char>(random());
    }
    const TemporaryFile file(damaged);
    try {
      (void)read_onnx(file.path());
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 10);
}

}  // namespace
}  // namespace kiln::test::onnx_faults_test
