// Refusals of whole models, and of the files that they are read from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/memory.h"
#include "kiln/models/lower.h"
#include "model_fixture.h"

namespace kiln::model_refusals_test {
namespace {

using models::HostArray;
using test::array;
using test::floats;
using test::ModelTest;
using test::OnnxModel;
using test::values_of;
using testing::HasSubstr;

TEST_F(ModelTest, NumbersThatTheDeviceDoesNotHoldAreRefused) {
  OnnxModel model(13);
  model.input("x", {1}, onnx::TensorProto::INT64);
  model.node("Identity", {"x"}, {"y"});
  model.output("y");
  Model loaded = load(model);
  constexpr int64_t least = std::numeric_limits<int32_t>::min(), largest = std::numeric_limits<int32_t>::max();
  for (const int64_t number : {int64_t{1} << 40, least - 1, largest + 1}) {
    const std::vector<HostArray> large = {array<int64_t>("int64", {1}, {number})};
    EXPECT_THROW((void)models::run_on_host(context_, loaded, large), Error) << number;
  }
  for (const int64_t number : {least, largest}) {
    const std::vector<HostArray> fits = {array<int64_t>("int64", {1}, {number})};
    EXPECT_EQ(values_of<int64_t>(models::run_on_host(context_, loaded, fits)[0])[0], number);
  }
}

/// An output `y` that is the input `x`, of two elements.
OnnxModel copied(int32_t type) {
  OnnxModel model(13);
  model.input("x", {2}, type);
  model.node("Identity", {"x"}, {"y"});
  model.output("y");
  return model;
}

TEST_F(ModelTest, ArraysThatTheModelDoesNotTakeAreRefusedWithTheReason) {
  constexpr auto infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  Model integers = load(copied(onnx::TensorProto::INT32)), bytes = load(copied(onnx::TensorProto::UINT8)),
        halves = load(copied(onnx::TensorProto::FLOAT16));
  const auto doubles = [](double number) { return array<double>("double", {2}, {1, number}); };
  struct Row {
    Model* model;
    std::vector<HostArray> inputs;
    const char* message;  // null where it is taken
  };
  const std::vector<Row> rows = {
      {&integers, {doubles(0.5)}, "element 1 of input 'x' is 0.5, which i32 does not hold"},
      {&integers, {doubles(nan)}, "element 1 of input 'x' is nan, which i32 does not hold"},
      {&integers, {doubles(infinity)}, "element 1 of input 'x' is inf, which i32 does not hold"},
      {&bytes, {doubles(-1)}, "element 1 of input 'x' is -1, which u8 does not hold"},
      {&bytes, {doubles(256)}, "element 1 of input 'x' is 256, which u8 does not hold"},
      {&bytes, {doubles(0)}, nullptr},
      {&bytes, {doubles(255)}, nullptr},
      {&halves, {doubles(65520)}, "element 1 of input 'x' is 65520, which f16 does not hold"},
      {&halves, {doubles(65519)}, nullptr},
      {&halves, {doubles(-infinity)}, nullptr},
      {&halves, {doubles(nan)}, nullptr},
      {&halves, {}, "0 inputs are given, expected 1"},
      {&halves, {doubles(1), doubles(1)}, "2 inputs are given, expected 1"},
      {&halves, {array<float>("complex64", {2}, {1, 2})}, "arrays of type complex64 are not known"},
      {&halves, {floats({2}, {1, 2, 3})}, "input 'x' has 12 bytes, expected 8"},
      {&halves, {floats({3}, {1, 2, 3})}, "input 'x' is 3, expected 2 (the model is loaded for one batch"},
      {&halves, {floats({}, {1})}, "input 'x' is one element without dimensions, expected 2"},
  };
  for (const Row& row : rows) {
    try {
      (void)models::run_on_host(context_, *row.model, row.inputs);
      EXPECT_EQ(row.message, nullptr);
    } catch (const Error& error) {
      ASSERT_NE(row.message, nullptr) << error.what();
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), testing::StartsWith(row.message));
    }
  }
}

// One value counts once, however many calls read it; weights of files count 16 times.
TEST_F(ModelTest, WhatIsComputedOfConstantsMayTakeUpToItsLimit) {
  const auto lowered = [](int64_t elements) {
    OnnxModel model(17);
    model.integers("s", {elements}).weights("w", {1}).input("x", {1});
    model.node("ConstantOfShape", {"s"}, {"c"});
    model.node("Add", {"c", "w"}, {"d"});
    model.node("Mul", {"d", "d"}, {"e"});
    model.node("Add", {"e", "x"}, {"y"});
    model.output("y");
    const test::TemporaryFile file(model.bytes());
    return models::lower(file.path(), {.fuse = false});
  };
  const int64_t most = ((int64_t{1} << 30) + int64_t{16} * 4) / 8;  // elements of d and of e
  EXPECT_EQ(lowered(most).schedule.once.size(), 2U);
  try {
    (void)lowered(most + 1);
    ADD_FAILURE() << "lowered";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("for node 'e', and before it, take 1073741896 bytes when the model is loaded, "
                                        "and up to 1073741888 are covered"));
  }
}

TEST_F(ModelTest, NodesThatAreNotCoveredAreNamedBeforeAnythingIsCompiled) {
  OnnxModel model(13);
  model.input("x", {1, 4});
  model.node("Det", {"x"}, {"h"});
  model.node("Relu", {"h"}, {"y"});
  model.output("y");
  expect_refused(model, ErrorCode::unsupported, "node 'h' (Det): no operation of Kiln serves it");
  expect_refused(model, ErrorCode::unsupported, "node 'y' (Relu): it depends on 'h'");
}

TEST_F(ModelTest, TensorsOfTooManyDimensionsAreRefusedWithTheFile) {
  OnnxModel model(13);
  model.input("x", {1, 1, 1, 1, 1, 1, 1, 1, 2});
  model.node("Identity", {"x"}, {"y"});
  model.output("y");
  const test::TemporaryFile file(model.bytes());
  try {
    const Model loaded(context_, file.path());
    ADD_FAILURE() << "loaded";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.what(), testing::StartsWith(file.path() + ": input 'x' has 9 dimensions"));
  }
}

TEST_F(ModelTest, DataOutsideOfTheModelsFolderIsRefused) {
  for (const char* location : {"../secret", "/etc/hostname", "a/../../b", ""}) {
    OnnxModel model(13);
    model.input("x", {2}).weights("w", {2});
    auto& tensor = *model.graph().mutable_initializer()->rbegin();
    tensor.set_data_location(onnx::TensorProto::EXTERNAL);
    auto& entry = *tensor.add_external_data();
    entry.set_key("location");
    entry.set_value(location);
    model.node("Add", {"x", "w"}, {"y"});
    model.output("y");
    expect_refused(model, ErrorCode::parse_error, "expected a path inside the model's folder");
  }
}

TEST_F(ModelTest, ReadsDataBesideTheModel) {
  OnnxModel model(13);
  model.input("x", {2}).weights("w", {2});
  auto& tensor = *model.graph().mutable_initializer()->rbegin();
  tensor.set_data_location(onnx::TensorProto::EXTERNAL);
  const auto say = [&](const char* key, const std::string& value) {
    auto& entry = *tensor.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  };
  const std::filesystem::path data = std::filesystem::path(testing::TempDir()) / "kiln_models_test.bin";
  const float elements[] = {0, 10, 20};
  std::ofstream(data, std::ios::binary).write(reinterpret_cast<const char*>(elements), sizeof elements);
  say("location", data.filename().string());
  say("offset", "4");
  say("length", "8");
  model.node("Add", {"x", "w"}, {"y"});
  model.output("y");
  EXPECT_EQ(values_of(run(model, {floats({2}, {1, 2})})[0]), (std::vector<float>{11, 22}));
  std::filesystem::resize_file(data, 8);
  expect_refused(model, ErrorCode::parse_error, "behind the end");
  std::filesystem::remove(data);
  expect_refused(model, ErrorCode::io_error, "cannot be read");
}

TEST_F(ModelTest, RunsRefuseTensorsThatDoNotFit) {
  OnnxModel network(13);
  network.input("x", {2, 3});
  network.node("Relu", {"x"}, {"y"});
  network.output("y");
  Model model = load(network);
  DeviceMemory memory(context_, 256);
  const DeviceMemory other(context_, 256);
  memory.upload(std::vector<std::byte>(256));
  const Tensor x(memory.data(), f32, {2, 3}, contiguous), y(other.data(), f32, {2, 3}, contiguous);
  const auto expect_error = [&](std::initializer_list<NamedTensor> inputs, std::initializer_list<NamedTensor> outputs,
                                const std::string& text) {
    try {
      model.run(inputs, outputs);
      ADD_FAILURE() << "ran, expected: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  };
  expect_error({}, {{"y", y}}, "input 'x' is not given");
  expect_error({{"x", x}, {"x", x}}, {{"y", y}}, "input 'x' is given twice");
  expect_error({{"z", x}}, {{"y", y}}, "the model has no input 'z'");
  expect_error({{"x", Tensor(memory.data(), f16, {2, 3}, contiguous)}}, {{"y", y}},
               "is f16 2x3, expected f32 2x3 (convert it)");
  expect_error({{"x", Tensor(memory.data(), f32, {3, 2}, contiguous)}}, {{"y", y}}, "is f32 3x2, expected f32 2x3");
  expect_error({{"x", x}}, {{"y", Tensor(other.data(), f32, {2, 3}, {1, 2})}},
               "output 'y' has the strides 1x2, expected logical order");
  auto* const odd = static_cast<std::byte*>(memory.data()) + 4;
  expect_error({{"x", Tensor(odd, f32, {2, 3}, contiguous)}}, {{"y", y}}, "input 'x' is not 16-byte aligned");
  expect_error({{"x", x}}, {{"y", Tensor(nullptr, f32, {2, 3}, contiguous)}}, "output 'y' is null");
  expect_error({{"x", x}}, {{"y", x}}, "output 'y' shares memory with input 'x'");
  alignas(16) std::array<float, 6> host{};
  expect_error({{"x", Tensor(host.data(), f32, {2, 3}, contiguous)}}, {{"y", y}}, "input 'x' is at 0x");
  auto* const last = static_cast<std::byte*>(memory.data()) + 240;
  expect_error({{"x", x}}, {{"y", Tensor(last, f32, {2, 3}, contiguous)}}, "output 'y' takes 24 bytes, from 0x");
  model.run({{"x", x}}, {{"y", y}});
  const Model moved = std::move(model);
  expect_error({{"x", x}}, {{"y", y}}, "was moved from");  // NOLINT(bugprone-use-after-move): what it says then
}

TEST_F(ModelTest, StridesOfOneElementAndTheAddressOfNoneMayBeAnything) {
  DeviceMemory x(context_, 256);
  const DeviceMemory y(context_, 256);
  x.upload(std::vector<std::byte>(256));
  for (const int64_t rows : {1, 0}) {
    OnnxModel network(13);
    network.input("x", {rows, 3});
    network.node("Relu", {"x"}, {"y"});
    network.output("y");
    const std::vector<int64_t> extents = {rows, 3}, strides = {17, 1};
    const auto seen = [&](const DeviceMemory& memory) {
      return Tensor(rows == 0 ? nullptr : memory.data(), f32, extents, strides);
    };
    load(network).run({{"x", seen(x)}}, {{"y", seen(y)}});
  }
}

TEST_F(ModelTest, OnlyAnotherBatchIsAnsweredWithSetBatch) {
  OnnxModel network(13);
  network.input("x", {2, 3});
  network.node("Relu", {"x"}, {"y"});
  network.output("y");
  Model model = load(network);
  const DeviceMemory memory(context_, 256), other(context_, 256);
  const Tensor y(other.data(), f32, {2, 3}, contiguous);
  const std::vector<std::pair<std::vector<int64_t>, bool>> rows = {
      {{5, 3}, true}, {{2, 4}, false}, {{5, 4}, false}, {{2, 3, 1}, false}, {{6}, false}};
  for (const auto& [extents, is_batch] : rows) {
    try {
      model.run({{"x", Tensor(memory.data(), f32, extents, contiguous)}}, {{"y", y}});
      ADD_FAILURE() << "ran";
    } catch (const Error& error) {
      EXPECT_EQ(error.hint().find("Model::set_batch()") != std::string::npos, is_batch) << error.what();
    }
  }
}

TEST_F(ModelTest, OutputsMayLieBesideOtherTensorsButNotOverThem) {
  OnnxModel network(13);
  network.input("x", {2, 4});
  network.node("Relu", {"x"}, {"y"});
  network.node("Neg", {"x"}, {"z"});
  network.output("y");
  network.output("z");
  Model model = load(network);
  DeviceMemory memory(context_, 256);
  const auto at = [&](int64_t offset) {
    return Tensor(static_cast<std::byte*>(memory.data()) + offset, f32, {2, 4}, contiguous);
  };
  std::vector<float> values(8);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) - 3;
  struct Row {
    int64_t x, y, z;  // offsets of tensors of 32 bytes
    const char* message;
  };
  const std::vector<Row> rows = {
      {32, 0, 64, nullptr},
      {32, 64, 0, nullptr},
      {0, 64, 32, nullptr},
      {32, 16, 64, "output 'y' shares memory with input 'x'"},
      {32, 48, 96, "output 'y' shares memory with input 'x'"},
      {32, 96, 16, "output 'z' shares memory with input 'x'"},
      {32, 64, 80, "output 'z' shares memory with output 'y'"},
      {32, 80, 64, "output 'z' shares memory with output 'y'"},
  };
  for (const Row& row : rows) {
    std::vector<std::byte> bytes(256);
    std::memcpy(bytes.data() + row.x, values.data(), 32);
    memory.upload(bytes);
    try {
      model.run({{"x", at(row.x)}}, {{"y", at(row.y)}, {"z", at(row.z)}});
      EXPECT_EQ(row.message, nullptr);
      std::vector<std::byte> after(256);
      memory.download(after);
      for (size_t i = 0; i < values.size(); ++i) {
        std::array<float, 2> results{};
        std::memcpy(&results[0], after.data() + row.y + i * sizeof(float), sizeof(float));
        std::memcpy(&results[1], after.data() + row.z + i * sizeof(float), sizeof(float));
        EXPECT_EQ(results[0], std::max(values[i], 0.0F));
        EXPECT_EQ(results[1], -values[i]);
      }
    } catch (const Error& error) {
      ASSERT_NE(row.message, nullptr) << error.what();
      EXPECT_THAT(error.what(), testing::StartsWith(row.message));
    }
  }
}

}  // namespace
}  // namespace kiln::model_refusals_test
