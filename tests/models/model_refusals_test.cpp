// Refusals of whole models, and of the files that they are read from.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <limits>

#include "kiln/base/error.h"
#include "kiln/memory.h"
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

TEST_F(ModelTest, NodesThatAreNotCoveredAreNamedBeforeAnythingIsCompiled) {
  OnnxModel model(13);
  model.input("x", {1, 4});
  model.node("Det", {"x"}, {"h"});
  model.node("Relu", {"h"}, {"y"});
  model.output("y");
  expect_refused(model, ErrorCode::unsupported, "node 'h' (Det): no operation of Kiln serves it");
  expect_refused(model, ErrorCode::unsupported, "node 'y' (Relu): it depends on 'h'");
}

TEST_F(ModelTest, OpenExtentsAreNamed) {
  OnnxModel model(13);
  model.input("x", {"N", "length"});
  model.node("Relu", {"x"}, {"y"});
  model.output("y");
  expect_refused(model, ErrorCode::invalid_argument, "extent 1 of input 'x' is open (length)");
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

}  // namespace
}  // namespace kiln::model_refusals_test
