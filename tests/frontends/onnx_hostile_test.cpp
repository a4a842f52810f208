// Small models that ask for memory, time or elements that nobody has: read, or refused with an Error, at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numeric>
#include <tuple>

#include "listing.h"

namespace kiln::test::onnx_hostile_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
constexpr int64_t large = int64_t{1} << 40;

/// Expects that the one node is not covered, for a reason that holds `text`.
void expect_uncovered(const OnnxModel& model, const std::string& text) {
  EXPECT_THAT(reasons_of(model), ElementsAre(HasSubstr(text)));
}

/// A node over constants alone: a and b of integers, f and g of floating-point numbers, s of none.
OnnxModel of_constants(const std::string& type, const std::vector<std::string>& inputs, const Ints& a = {1},
                       const Ints& b = {2}) {
  OnnxModel model(14);
  model.input("x", {1}).integers("a", a).integers("b", b);
  model.weights("f", {1}).weights("g", {2}).scalar("s", 1);
  model.node(type, inputs, {"c"});
  model.node("Cast", {"c"}, {"d"}, {{"to", int64_t{floating}}});
  model.node("Add", {"x", "d"}, {"y"});
  model.output("y");
  return model;
}

/// Resize along the only dimension, to as many elements as `outputs` says, of a part of the input.
OnnxModel crop(int64_t inputs, int64_t outputs, const std::vector<float>& region) {
  OnnxModel model(13);
  model.input("x", {inputs}).weights("roi", {2}, region).integers("sizes", {outputs});
  model.node("Resize", {"x", "roi", "", "sizes"}, {"y"},
             {{"mode", "linear"}, {"coordinate_transformation_mode", "tf_crop_and_resize"}});
  model.output("y");
  return model;
}

TEST(OnnxHostile, TablesWhoseSizeWouldNotFit64BitsAreRefused) {
  const std::vector<float> region = {static_cast<float>((1 << 24) + 1000) / static_cast<float>(large), 1e9F};
  expect_error(crop(large + 1, 1 << 24, region), "input 'x': a tensor of 1099511627777 has more than 2^40 elements",
               ErrorCode::invalid_argument);
  expect_uncovered(crop(large, 1 << 24, region), "it makes 16777216 elements of 1099511627776, by a matrix");
  expect_uncovered(crop(1 << 20, int64_t{1} << 44, region), "");
}

TEST(OnnxHostile, ExtentsOfInputsAndConstantsAreLookedAt) {
  for (const int64_t extent : {large + 1, most}) {
    expect_error(one_node("Relu", {{extent}}), "input 'x0': a tensor of", ErrorCode::invalid_argument);
    expect_error(one_node("Relu", {{0, extent}}), "input 'x0': a tensor of", ErrorCode::invalid_argument);
  }
  OnnxModel model;
  model.input("x", {1}).weights("w", {1});
  model.graph().mutable_initializer(0)->set_dims(0, most);
  model.node("Add", {"x", "w"}, {"y"});
  expect_error(model, "nitializer 'w'");
}

TEST(OnnxHostile, IntegersThatOverflowAreNoResults) {
  const std::string beyond = "a result of its constants is beyond int64";
  for (const auto& [type, a, b] : std::vector<std::tuple<const char*, int64_t, int64_t>>{{"Div", least, -1},
                                                                                         {"Add", most, 1},
                                                                                         {"Sub", least, 1},
                                                                                         {"Mul", most, 2},
                                                                                         {"Mul", least, -1},
                                                                                         {"Pow", 2, 63}}) {
    EXPECT_THAT(reasons_of(of_constants(type, {"a", "b"}, {a}, {b})), testing::Contains(HasSubstr(beyond))) << type;
  }
  EXPECT_THAT(reasons_of(of_constants("Neg", {"a"}, {least})), testing::Contains(HasSubstr(beyond)));
  EXPECT_THAT(reasons_of(of_constants("Abs", {"a"}, {least})), testing::Contains(HasSubstr(beyond)));
  EXPECT_THAT(reasons_of(of_constants("Mod", {"a", "b"}, {least}, {-1})), testing::IsEmpty());
  EXPECT_THAT(reasons_of(of_constants("Pow", {"a", "b"}, {-1}, {most})), testing::IsEmpty());
  for (const char* type : {"Div", "Mod"}) expect_error(of_constants(type, {"a", "b"}, {1}, {0}), "divides by 0");
}

TEST(OnnxHostile, ConstantsOfOtherTypesThanTheOperationHasAreRefused) {
  expect_error(of_constants("Add", {"a", "f"}), "input 1 is of type float, expected int64 as input 0");
  expect_error(of_constants("Add", {"f", "a"}), "input 1 is of type int64, expected float as input 0");
  expect_error(of_constants("Gather", {"a", "f"}), "input 1 is of type float, expected int32 or int64");
  expect_error(of_constants("Where", {"f", "a", "b"}), "input 0 is of type float, expected bool");
  OnnxModel model = of_constants("Where", {"p", "b", "f"});
  model.graph().mutable_initializer()->Add()->CopyFrom(model.graph().initializer(0));
  onnx::TensorProto& chosen = *model.graph().mutable_initializer()->rbegin();
  chosen.set_name("p");
  chosen.set_data_type(onnx::TensorProto::BOOL);
  chosen.clear_int64_data();
  chosen.set_raw_data(std::string(1, '\1'));
  expect_error(model, "input 2 is of type float, expected int64 as input 1");
  expect_error(of_constants("Not", {"a"}), "input 0 is of type int64, expected bool");
  expect_error(of_constants("Floor", {"a"}), "input 0 is of type int64, expected a type of floating-point numbers");
}

TEST(OnnxHostile, ConstantsOfOtherRanksThanTheOperationHasAreRefused) {
  OnnxModel model = of_constants("Concat", {"f", "s"});
  model.graph().mutable_node(0)->add_attribute()->set_name("axis");
  model.graph().mutable_node(0)->mutable_attribute(0)->set_type(onnx::AttributeProto::INT);
  expect_error(model, "only extents along axis 0 may differ");
  OnnxModel scale(13);
  scale.input("x", {}, onnx::TensorProto::UINT8).weights("scale", {1});
  scale.node("DequantizeLinear", {"x", "scale"}, {"y"});
  scale.output("y");
  EXPECT_THAT(reasons_of(scale), testing::IsEmpty());
}

TEST(OnnxHostile, TablesAreCountedBeforeTheyAreMade) {
  const std::string refusal = "a table of";
  expect_uncovered(one_node("Trilu", {{200000, 200000}}), refusal);
  expect_uncovered(one_node("EyeLike", {{200000, 200000}}), refusal);
  expect_uncovered(one_node("ArgMax", {{int64_t{1} << 30}}, {{"axis", 0}, {"select_last_index", 1}}), refusal);
  expect_uncovered(one_node("Slice", {{large}}, {}, 14, floating, {{-1}, {least}, {0}, {-1}}), refusal);
  expect_uncovered(one_node("Hardmax", {{1, int64_t{1} << 30}}), refusal);
  OnnxModel resize(13);
  resize.input("x", {1, 1, 1, 1 << 10}).weights("scales", {4}, {1, 1, 1, 1 << 20});
  resize.node("Resize", {"x", "", "scales"}, {"y"}, {{"mode", "nearest"}});
  resize.output("y");
  expect_uncovered(resize, refusal);
  for (const int64_t depth : {int64_t{-5}, int64_t{0}, least}) {
    OnnxModel model(14);
    model.input("x", {2}).integers("depth", {depth}).weights("values", {2});
    model.node("OneHot", {"x", "depth", "values"}, {"y"});
    expect_error(model, "its depth is " + std::to_string(depth) + ", expected 1 or more");
  }
  OnnxModel deep(14);
  deep.input("x", {2}).integers("depth", {large}).weights("values", {2});
  deep.node("OneHot", {"x", "depth", "values"}, {"y"});
  deep.output("y");
  expect_uncovered(deep, refusal);
}

TEST(OnnxHostile, WhatIsComputedWhileReadingHasAnEnd) {
  // Each node doubles what the one before has.
  OnnxModel sum(14);
  sum.input("x", {1}).weights("w", {1 << 15});
  for (int i = 0; i < 3000; ++i) {
    sum.node("Add", {i == 0 ? "w" : "c" + std::to_string(i - 1), "w"}, {"c" + std::to_string(i)});
  }
  sum.node("Add", {"x", "c2999"}, {"y"});
  sum.output("y");
  expect_error(sum, "computing constants of the model takes more than", ErrorCode::unsupported);
}

// Few bytes of a file say how many elements a call has that runs when the model is loaded.
TEST(OnnxHostile, WhatIsComputedOfConstantsWhenTheModelIsLoadedIsCounted) {
  const auto sum_of = [](int64_t elements) {
    OnnxModel model(17);
    model.integers("s", {elements});
    model.node("ConstantOfShape", {"s"}, {"c"});
    model.node("Add", {"c", "c"}, {"d"}).set_name("add");
    model.node("Add", {"d", "d"}, {"y"}).set_name("again");
    model.output("y");
    return model;
  };
  expect_error(sum_of(int64_t{1} << 29),
               "values computed from constants for node 'add', and before it, take 2147483648", ErrorCode::unsupported);
  expect_error(sum_of(int64_t{1} << 39), "for node 'add'", ErrorCode::unsupported);
  EXPECT_EQ(lowered(sum_of(int64_t{1} << 24)).schedule.once.empty(), false);
}

TEST(OnnxHostile, NamesAreQuotedInOneLineAndCutShort) {
  OnnxModel model;
  model.input("x", {1});
  model.node("Re\nlu", {"x\nkiln: fake"}, {"y"}).set_name("a\nkiln: fake");
  model.output("y");
  expect_error(model, "node 'a\\nkiln: fake' (Re\\nlu) uses 'x\\nkiln: fake', which nothing defines");
  OnnxModel long_one;
  long_one.input("x", {1});
  long_one.node(std::string(1'000'000, 'R'), {"z"}, {"y"});
  long_one.output("y");
  expect_error(long_one, "(" + std::string(200, 'R') + "...) uses 'z'");
}

TEST(OnnxHostile, TwoInitializersOfOneNameAreRefused) {
  OnnxModel model;
  model.input("x", {1}).weights("w", {1}, {1}).weights("w", {1}, {2});
  model.node("Add", {"x", "w"}, {"y"});
  model.output("y");
  expect_error(model, "has two initializers 'w'");
}

TEST(OnnxHostile, NumbersThatNoRunTakesAreRefusedWithTheirNode) {
  constexpr float none = std::numeric_limits<float>::quiet_NaN();
  OnnxModel norm;
  norm.input("x", {1, 2, 3}).weights("w", {2}).weights("b", {2});
  norm.node("InstanceNormalization", {"x", "w", "b"}, {"y"}, {{"epsilon", none}});
  expect_error(norm, "node 'y' (InstanceNormalization): norm_forward: epsilon is nan", ErrorCode::invalid_argument);
  OnnxModel clip;
  clip.input("x", {4}).scalar("low", none);
  clip.node("Clip", {"x", "low"}, {"y"});
  expect_error(clip, "node 'y' (Clip): activation_forward: low is nan", ErrorCode::invalid_argument);
}

/// Expects that a file of these bytes is refused by that error.
void expect_unread(const std::string& bytes, ErrorCode code, const std::string& text) {
  const TemporaryFile file(bytes);
  try {
    (void)read_onnx(file.path());
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.message(), HasSubstr(text));
  }
}

// protobuf makes some 200 bytes of two.
TEST(OnnxHostile, MessagesAreCountedBeforeTheyAreMade) {
  constexpr size_t most_messages = size_t{1} << 22;
  const std::string node("\x0A\0", 2);
  std::string nodes;
  for (size_t i = 0; i < most_messages; ++i) nodes += node;
  std::string bytes = OnnxModel(14).bytes();
  onnx::ModelProto length;  // of the graph, as protobuf writes it
  length.set_producer_name(nodes);
  std::string graph = length.SerializeAsString();
  graph[0] = '\x3A';
  expect_unread(bytes + graph, ErrorCode::unsupported, "holds more than 4194304 nodes, attributes, names");
}

// Bytes behind a length of 4 GiB belong to no message.
TEST(OnnxHostile, MessagesBehindALengthThatNoFileHasAreNotCounted) {
  std::string bytes = OnnxModel(14).bytes() + "\x3A\xFF\xFF\xFF\xFF\x0F";
  for (size_t i = 0; i <= size_t{1} << 22; ++i) bytes.append("\x0A\0", 2);
  expect_unread(bytes, ErrorCode::parse_error, "is not an ONNX model, or is cut short");
}

TEST(OnnxHostile, LargeConstantsAreReadInParts) {
  constexpr int64_t count = (3 << 16) + 5;
  std::vector<float> elements(count);
  std::iota(elements.begin(), elements.end(), 0.0F);
  OnnxModel model(14);
  model.input("x", {count}).weights("fields", {count}, elements).weights("raw", {count}, elements);
  auto& raw = *model.graph().mutable_initializer(1);
  raw.clear_float_data();
  raw.set_raw_data(elements.data(), elements.size() * sizeof(float));
  model.node("Sum", {"x", "fields", "raw"}, {"y"});
  model.output("y");
  const TemporaryFile file(model.bytes());
  const graph::Graph graph = read_onnx(file.path()).graph;
  size_t found = 0;
  for (graph::ValueId id = 0; id < graph.count(); ++id) {
    if (graph.value(id).name != "fields" && graph.value(id).name != "raw") continue;
    ASSERT_EQ(graph.bytes(id)->size(), elements.size() * sizeof(float));
    EXPECT_EQ(std::memcmp(graph.bytes(id)->data(), elements.data(), graph.bytes(id)->size()), 0);
    ++found;
  }
  EXPECT_EQ(found, 2U);
}

TEST(OnnxHostile, ConstantsThatKilnDoesNotStoreAreNamed) {
  OnnxModel model(14);
  model.input("x", {1}).integers("far", {large});
  model.node("Relu", {"x"}, {"y"});
  model.output("y").output("far");
  expect_error(model, "constant 'far': the integer 1099511627776 does not fit 32 bits", ErrorCode::unsupported);
  OnnxModel repeated(14);
  repeated.input("x", {4}).integers("extents", {4});
  onnx::TensorProto& value = *repeated.node("ConstantOfShape", {"extents"}, {"c"}).add_attribute()->mutable_t();
  repeated.graph().mutable_node(0)->mutable_attribute(0)->set_name("value");
  value.set_data_type(floating);
  value.add_dims(most);
  repeated.node("Add", {"x", "c"}, {"y"});
  repeated.output("y");
  expect_error(repeated, "more than 2^40 elements", ErrorCode::invalid_argument);
  value.set_dims(0, 1 << 30);
  expect_error(repeated, "its value has 1073741824 elements, expected 1");
}

// ONNX's shape inference read behind its lists of strides and dilations.
TEST(OnnxHostile, OutputsOfFiltersOfOtherRanksAreNotInferred) {
  for (const char* type : {"Conv", "ConvTranspose", "ConvInteger"}) {
    OnnxModel model(18);
    model.input("x", {2, 3}, onnx::TensorProto::UINT8).input("w", {8, 4, 3, 3}, onnx::TensorProto::UINT8);
    model.node(type, {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
    model.node("Identity", {"c"}, {"y"});
    model.output("y");
    const TemporaryFile file(model.bytes());
    try {
      EXPECT_EQ(read_onnx(file.path()).uncovered.size(), 2U) << type;
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr(type)) << error.what();
    }
  }
}

// ONNX's shape inference made a dimension for each element of a vector that nobody knows: 5 GB for these, and all
// memory for 2^40.
TEST(OnnxHostile, OutputsOfAsManyDimensionsAsAVectorHasElementsAreNotInferred) {
  OnnxModel model(18);
  model.input("x", {1}).input("extents", {int64_t{1} << 24}, onnx::TensorProto::INT64);
  model.node("Expand", {"x", "extents"}, {"e"});
  model.node("Identity", {"e"}, {"y"});
  model.output("y");
  const TemporaryFile file(model.bytes());
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_EQ(read_onnx(file.path()).uncovered.size(), 2U);
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200'000) << "KiB";
}

// A list of repeated positions was cut into a run for each of them: 24 bytes each, and 1.6 GB for 2^26.
TEST(OnnxHostile, ElementsThatRepeatOftenAreNotKeptAsRuns) {
  OnnxModel model;
  model.input("x", {2}).integers("sizes", {1 << 24});
  model.node("Resize", {"x", "", "", "sizes"}, {"y"}, {{"mode", "nearest"}});
  model.output("y");
  const TemporaryFile file(model.bytes());
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  EXPECT_TRUE(read_onnx(file.path()).uncovered.empty());
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 600'000) << "KiB";
}

// The extents have a type that the operator does not take.
TEST(OnnxHostile, OutputsOfExtentsOfAnotherTypeAreNotInferred) {
  for (const char* type : {"ConstantOfShape", "Expand", "Reshape", "Tile"}) {
    OnnxModel model(18);
    model.input("x", {1}).input("extents", {int64_t{1} << 31}, onnx::TensorProto::UINT16);
    if (type == std::string("ConstantOfShape")) {
      model.node(type, {"extents"}, {"y"});
    } else {
      model.node(type, {"x", "extents"}, {"y"});
    }
    model.output("y");
    const TemporaryFile file(model.bytes());
    rusage before{}, after{};
    ::getrusage(RUSAGE_SELF, &before);
    try {
      EXPECT_EQ(read_onnx(file.path()).uncovered.size(), 1U) << type;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(type));
    }
    ::getrusage(RUSAGE_SELF, &after);
    EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 200'000) << type << ", KiB";
  }
}

TEST(OnnxHostile, OutputsOfTypesThatKilnDoesNotHaveAreErrors) {
  OnnxModel model(14);
  model.input("x", {1}).weights("words", {1});
  auto& words = *model.graph().mutable_initializer(0);
  words.clear_float_data();
  words.set_data_type(onnx::TensorProto::STRING);
  words.add_string_data("a");
  model.node("Relu", {"x"}, {"y"});
  model.output("y").output("words");
  expect_error(model, "output 'words' cannot be had: there is no dtype for elements of type string",
               ErrorCode::unsupported);
}

TEST(OnnxHostile, TranspositionsOfManyDimensionsAreNotCopiedForEver) {
  OnnxModel model(14);
  model.input("x", std::vector<Extent>(30, int64_t{2})).integers("flat", {-1});
  model.node("Transpose", {"x"}, {"t"});
  model.node("Reshape", {"t", "flat"}, {"y"});
  model.output("y");
  expect_error(model, "the model takes more than 16384 copies between layouts", ErrorCode::unsupported);
}

TEST(OnnxHostile, ManyUncoveredNodesAreReadInLinearTime) {
  OnnxModel model(14);
  model.input("x", {4});
  for (int i = 0; i < 4000; ++i) {
    const std::string n = std::to_string(i);
    model.node("Relu", {i == 0 ? "x" : "z" + std::to_string(i - 1)}, {"r" + n});
    model.node("Nobody", {"r" + n}, {"z" + n});
    auto& known = *model.graph().add_value_info();
    known.set_name("z" + n);
    known.mutable_type()->mutable_tensor_type()->set_elem_type(floating);
    known.mutable_type()->mutable_tensor_type()->mutable_shape()->add_dim()->set_dim_value(4);
  }
  model.output("z3999");
  const TemporaryFile file(model.bytes());
  (void)read_onnx(file.path());
}

/// A model whose weights are in the file `location` of a folder that is there for one test.
class ExternalWeights : public testing::Test {
 protected:
  ExternalWeights() { std::filesystem::create_directories(folder_); }
  ~ExternalWeights() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  void expect(const std::vector<std::pair<std::string, std::string>>& entries, ErrorCode code, const std::string& text,
              int64_t elements = 2) {
    OnnxModel model(13);
    model.input("x", {elements}).weights("w", {1});
    auto& tensor = *model.graph().mutable_initializer(0);
    tensor.set_dims(0, elements);
    tensor.clear_float_data();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] : entries) {
      auto& entry = *tensor.add_external_data();
      entry.set_key(key);
      entry.set_value(value);
    }
    model.node("Add", {"x", "w"}, {"y"});
    model.output("y");
    std::ofstream(stored_, std::ios::binary) << model.bytes();
    try {
      (void)read_onnx((folder_ / "model.onnx").string());
      FAIL() << "no error, expected: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.message(), HasSubstr(text));
    }
  }

  void write(const std::filesystem::path& path, size_t bytes) {
    std::ofstream(path, std::ios::binary) << std::string(bytes, '\0');
  }

  const std::filesystem::path root_ = std::filesystem::path(testing::TempDir()) /
                                      ("kiln_external_" + std::to_string(::getpid())),
                              folder_ = root_ / "model";
  std::filesystem::path stored_ = folder_ / "model.onnx";  ///< Where the model is written.
};

TEST_F(ExternalWeights, LinksOutOfTheFolderAreRefused) {
  write(root_ / "secret", 8);
  std::filesystem::create_symlink("../secret", folder_ / "w.bin");
  std::filesystem::create_directory_symlink("..", folder_ / "up");
  std::filesystem::create_symlink("/proc/self/exe", folder_ / "exe");
  for (const char* location : {"w.bin", "up/secret", "exe"}) {
    expect({{"location", location}}, ErrorCode::parse_error, "a symbolic link that leaves the model's folder");
  }
}

/// huggingface_hub keeps files in "blobs", and a folder of links to them for each revision.
TEST_F(ExternalWeights, LinksOfADownloadCacheAreFollowedToTheFolderThatTheModelItselfIsIn) {
  std::filesystem::create_directories(root_ / "blobs" / "below");
  stored_ = root_ / "blobs" / "5ae9";
  write(stored_, 1);
  write(root_ / "blobs" / "77f1", 4);  // of the 8 bytes that are asked for: to be seen in the error
  write(root_ / "blobs" / "below" / "w", 4);
  write(root_ / "secret", 4);
  std::filesystem::create_symlink("../blobs/5ae9", folder_ / "model.onnx");
  std::filesystem::create_symlink("../blobs/77f1", folder_ / "w.bin");
  std::filesystem::create_symlink("w.bin", folder_ / "again.bin");
  std::filesystem::create_symlink("../blobs/below/w", folder_ / "below.bin");
  std::filesystem::create_symlink("../secret", folder_ / "secret.bin");
  std::filesystem::create_symlink("../blobs", folder_ / "blobs");
  for (const char* location : {"w.bin", "again.bin", "blobs/77f1"}) {
    expect({{"location", location}}, ErrorCode::parse_error, "behind the end");
  }
  for (const char* location : {"below.bin", "secret.bin", "blobs/below/w"}) {
    expect({{"location", location}}, ErrorCode::parse_error, "a symbolic link that leaves the model's folder");
  }
  expect({{"location", "77f1"}}, ErrorCode::io_error, "No such file");  // not beside the link
  // A model that is no link itself vouches for nothing.
  std::filesystem::remove(folder_ / "model.onnx");
  stored_ = folder_ / "model.onnx";
  expect({{"location", "w.bin"}}, ErrorCode::parse_error, "a symbolic link that leaves the model's folder");
}

TEST_F(ExternalWeights, OnlyRegularFilesAreRead) {
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::filesystem::create_directory(folder_ / "folder");
  for (const char* location : {"pipe", "folder"}) {
    expect({{"location", location}}, ErrorCode::parse_error, "which is no regular file");
  }
}

// As a system or a sandbox without openat2(): the call fails from here on in this process.
void forget_openat2() {
  const auto step = [](unsigned code, unsigned value) { return sock_filter{static_cast<uint16_t>(code), 0, 0, value}; };
  std::array<sock_filter, 4> filter = {
      step(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)), step(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2),
      step(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), step(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS)};
  filter[1].jt = 1;  // to the last
  const sock_fprog program{filter.size(), filter.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    ::_exit(77);
  }
}

TEST_F(ExternalWeights, PartsOfThePathAreOpenedOneByOneWhereTheSystemCannotHoldThemBelowTheFolder) {
  write(root_ / "secret", 8);
  std::filesystem::create_directory(folder_ / "data");
  write(folder_ / "data" / "w.bin", 4);
  std::filesystem::create_symlink("../secret", folder_ / "link.bin");
  std::filesystem::create_directory_symlink("..", folder_ / "up");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a pipe that is waited for ends the child
    forget_openat2();
    expect({{"location", "data/w.bin"}}, ErrorCode::parse_error, "behind the end");  // it was opened
    expect({{"location", "link.bin"}}, ErrorCode::parse_error, "a symbolic link that leaves the model's folder");
    expect({{"location", "up/secret"}}, ErrorCode::io_error, "Not a directory");
    expect({{"location", "pipe"}}, ErrorCode::parse_error, "which is no regular file");
    expect({{"location", "pipe/w.bin"}}, ErrorCode::io_error, "Not a directory");
    ::_exit(HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "this system has no filters of calls";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(ExternalWeights, OffsetsAndLengthsAreNumbersThatFit) {
  write(folder_ / "w.bin", 16);
  for (const char* text : {"-1", "4 ", "0x4", "", "99999999999999999999999"}) {
    for (const char* key : {"offset", "length"}) {
      expect({{"location", "w.bin"}, {key, text}}, ErrorCode::parse_error, "expected a number of bytes");
    }
  }
  expect({{"location", "w.bin"}, {"length", "12"}}, ErrorCode::parse_error,
         "has 12 bytes of external data, expected 8");
  for (const char* offset : {"9", "17", "18446744073709551615"}) {
    expect({{"location", "w.bin"}, {"offset", offset}}, ErrorCode::parse_error, "behind the end");
  }
}

TEST_F(ExternalWeights, HolesInFilesAreNotAllocated) {
  write(folder_ / "w.bin", 1);
  std::filesystem::resize_file(folder_ / "w.bin", size_t{1} << 40);
  expect({{"location", "w.bin"}}, ErrorCode::unsupported, "share parts or have holes", int64_t{1} << 37);
}

}  // namespace
}  // namespace kiln::test::onnx_hostile_test
