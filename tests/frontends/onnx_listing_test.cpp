#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

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
  return {line("conv_forward x=f32:" + batch + "x3x4x4:nchw w=f32:5x3x4x4:nchw"),
          line("softmax_forward x=f32:" + batch + "x5:nc axis=1")};
}

TEST(OnnxListing, MergesEqualLayersAndKeepsTheirNames) {
  OnnxModel model;
  model.input("x", {1, 4, 5, 5}).weights("w", {4, 4, 1, 1}).weights("v", {4, 4, 3, 3});
  model.node("Conv", {"x", "w"}, {"a"}).set_name("first");
  model.node("Conv", {"a", "v"}, {"b"}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}).set_name("second");
  model.node("Conv", {"b", "w"}, {"c"});
  model.output("c");
  const ModelListing listing = model.read();
  EXPECT_THAT(lines_of(listing), ElementsAre(line("conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x1x1:nchw", 2),
                                             line("conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x3x3:nchw pad=1,1")));
  EXPECT_THAT(listing.layers[0].nodes, ElementsAre("first", "c"));
  EXPECT_THAT(listing.layers[1].nodes, ElementsAre("second"));
}

TEST(OnnxListing, CountsWhatIsNotCoveredByTypeAndReason) {
  OnnxModel model;
  model.input("x", {1, 4});
  model.node("Hardmax", {"x"}, {"a"});
  model.node("Selu", {"a"}, {"b"}, {{"alpha", 1.0F}});
  model.node("Hardmax", {"b"}, {"c"});
  model.node("Gelu", {"c"}, {"d"}).set_domain("com.example");
  model.output("d");
  onnx::OperatorSetIdProto& import = *model.proto().add_opset_import();
  import.set_domain("com.example");
  import.set_version(1);
  EXPECT_THAT(uncovered_of(model.read()), ElementsAre("Hardmax *2: no operation of Kiln serves it",
                                                      "Selu *1: its alpha and gamma are not those of SELU",
                                                      "com.example.Gelu *1: no operation of Kiln serves it"));
}

TEST(OnnxListing, LeavesOutViewsAndConstants) {
  OnnxModel model;
  model.input("x", {2, 3, 4}).weights("k", {4});
  model.node("Sqrt", {"k"}, {"root"});
  model.node("Identity", {"x"}, {"a"});
  model.node("Dropout", {"a"}, {"b"});
  model.node("Flatten", {"b"}, {"c"});
  model.node("Softmax", {"c"}, {"y"});
  model.output("y").output("root");
  const ModelListing listing = model.read();
  EXPECT_THAT(lines_of(listing), ElementsAre(line("softmax_forward x=f32:2x12:nc axis=1")));
  EXPECT_THAT(listing.uncovered, IsEmpty());
}

TEST(OnnxListing, DoesNotTakeRandomNumbersForConstants) {
  OnnxModel model;
  model.node("RandomNormal", {}, {"r"}, {{"shape", std::vector<int64_t>{1, 4}}});
  model.node("Softmax", {"r"}, {"y"});
  model.output("y");
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line("softmax_forward x=f32:1x4:nc axis=1")));
}

TEST(OnnxListing, KeepsTheModelsBatchUnlessAnotherIsGiven) {
  EXPECT_EQ(lines_of(classifier({2, 3, 4, 4}).read()), classifier_lines(2));
  EXPECT_EQ(lines_of(classifier({2, 3, 4, 4}).read({.batch = 16})), classifier_lines(16));
}

TEST(OnnxListing, SetsABatchThatTheModelLeavesOpen) {
  for (const char* open : {"N", ""}) {
    EXPECT_EQ(lines_of(classifier({open, 3, 4, 4}).read()), classifier_lines(1));
    EXPECT_EQ(lines_of(classifier({open, 3, 4, 4}).read({.batch = 16})), classifier_lines(16));
  }
}

TEST(OnnxListing, IgnoresShapesThatWereStoredForAnotherBatch) {
  OnnxModel model = classifier({1, 3, 4, 4});
  onnx::ValueInfoProto& stored = *model.graph().add_value_info();
  stored.set_name("c");
  auto& tensor = *stored.mutable_type()->mutable_tensor_type();
  tensor.set_elem_type(onnx::TensorProto::FLOAT);
  for (const int64_t extent : {1, 5, 1, 1}) {
    tensor.mutable_shape()->add_dim()->set_dim_value(extent);
  }
  EXPECT_EQ(lines_of(model.read({.batch = 3})), classifier_lines(3));
}

TEST(OnnxListing, SetsTheBatchOfEveryInput) {
  OnnxModel model;
  model.input("a", {"N", 3}).input("b", {"N", 3}).input("table", {7, 3});
  model.node("Softmax", {"a"}, {"p"});
  model.node("Softmax", {"b"}, {"q"});
  model.node("Softmax", {"table"}, {"t"});
  model.output("p").output("q").output("t");
  EXPECT_THAT(lines_of(model.read({.batch = 4})),
              ElementsAre(line("softmax_forward x=f32:4x3:nc axis=1", 2), line("softmax_forward x=f32:7x3:nc axis=1")));
}

TEST(OnnxListing, FollowsShapesThatNodesCompute) {
  // Reshape to {0, -1} made of Shape, Gather, Unsqueeze and Concat, as exporters write flattening.
  OnnxModel model;
  model.input("x", {"N", 3, 4});
  const auto constant = [&](const std::string& name, const std::vector<int64_t>& extents, int64_t value) {
    onnx::TensorProto& tensor = *model.graph().add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::INT64);
    for (const int64_t extent : extents) {
      tensor.add_dims(extent);
    }
    tensor.add_int64_data(value);
  };
  constant("index", {}, 0);
  constant("axes", {1}, 0);
  constant("rest", {1}, -1);
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "index"}, {"n"}, {{"axis", 0}});
  model.node("Unsqueeze", {"n", "axes"}, {"n1"});
  model.node("Concat", {"n1", "rest"}, {"flat"}, {{"axis", 0}});
  model.node("Reshape", {"x", "flat"}, {"f"});
  model.node("Softmax", {"f"}, {"y"});
  model.output("y");
  EXPECT_THAT(lines_of(model.read({.batch = 6})), ElementsAre(line("softmax_forward x=f32:6x12:nc axis=1")));
}

TEST(OnnxListing, NamesTheNodeWhoseExtentsAreUnknown) {
  try {
    classifier({1, 3, "height", 4}).read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(),
                HasSubstr("node 'c' (Conv): the extents of 'image' are not all known: its shape is 1x3xheightx4"));
  }
}

TEST(OnnxListing, RefusesABatchBelowOne) {
  EXPECT_THROW(classifier({1, 3, 4, 4}).read({.batch = 0}), Error);
  EXPECT_THROW(classifier({1, 3, 4, 4}).read({.batch = -2}), Error);
}

}  // namespace
}  // namespace kiln::test
