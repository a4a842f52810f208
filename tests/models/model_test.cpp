// Whole models on the emulated device: what they compute, and what they refuse.
#include "kiln/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <span>

#include "kernel_folder.h"
#include "kiln/device/context.h"
#include "kiln/device/device.h"
#include "kiln/device/stream.h"
#include "kiln/memory.h"
#include "kiln/models/host_run.h"
#include "kiln/models/requests.h"
#include "onnx_model.h"

namespace kiln {
namespace {

using models::HostArray;
using test::OnnxModel;
using testing::HasSubstr;

template <class T>
HostArray array(const std::string& type, std::vector<int64_t> extents, const std::vector<T>& values) {
  HostArray result{type, std::move(extents), std::vector<std::byte>(values.size() * sizeof(T))};
  if (!values.empty()) std::memcpy(result.bytes.data(), values.data(), result.bytes.size());
  return result;
}

HostArray floats(std::vector<int64_t> extents, const std::vector<float>& values) {
  return array("float", std::move(extents), values);
}

template <class T = float>
std::vector<T> values_of(const HostArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  return values;
}

class ModelTest : public testing::Test {
 protected:
  ModelTest() : context_(options()) {}

  static ContextOptions options() {
    Environment environment = Environment::read();
    environment.cache = "off";
    environment.cache_home.clear();
    environment.pack_path.clear();
    environment.bundle_path.clear();
    environment.kernel_store = testing_support::kernel_folder();
    environment.record.reset();
    if (!environment.driver) environment.driver = "emulator";
    ContextOptions result;
    result.environment = environment;
    return result;
  }

  Model load(const OnnxModel& model, const ModelOptions& how = {}) {
    const test::TemporaryFile file(model.bytes());
    return {context_, file.path(), how};
  }

  std::vector<HostArray> run(const OnnxModel& model, const std::vector<HostArray>& inputs,
                             const ModelOptions& how = {}) {
    Model loaded = load(model, how);
    return models::run_on_host(context_, loaded, inputs);
  }

  void expect_refused(const OnnxModel& model, ErrorCode code, const std::string& text) {
    try {
      (void)load(model);
      ADD_FAILURE() << "loaded, expected: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code) << error.what();
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  Context context_;
};

/// conv 3x3 -> BatchNormalization -> Relu -> Concat with the input -> 1x1 conv -> HardSwish by hand -> mean -> Gemm.
OnnxModel small_network() {
  OnnxModel model(13);
  model.input("x", {"N", 3, 7, 5});
  model.weights("w1", {4, 3, 3, 3}, random_values(108, 1));
  model.weights("scale", {4}, random_values(4, 2));
  model.weights("shift", {4}, random_values(4, 3));
  model.weights("mean", {4}, random_values(4, 4));
  model.weights("variance", {4}, {0.5F, 1, 2, 0.25F});
  model.weights("w2", {6, 7, 1, 1}, random_values(42, 5));
  model.weights("b2", {6}, random_values(6, 6));
  model.weights("w3", {6, 2}, random_values(12, 7));
  model.weights("b3", {2}, random_values(2, 8));
  model.node("Conv", {"x", "w1"}, {"c1"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  model.node("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, {"n1"});
  model.node("Relu", {"n1"}, {"r1"});
  model.node("Concat", {"r1", "x"}, {"k"}, {{"axis", int64_t{1}}});
  model.node("Conv", {"k", "w2", "b2"}, {"c2"});
  model.node("HardSigmoid", {"c2"}, {"g"});
  model.node("Mul", {"c2", "g"}, {"h"});
  model.node("GlobalAveragePool", {"h"}, {"p"});
  model.node("Flatten", {"p"}, {"f"});
  model.node("Gemm", {"f", "w3", "b3"}, {"y"});
  model.output("y");
  return model;
}

/// The same by plain loops in double, for one image.
class SmallNetwork {
 public:
  std::array<double, 2> operator()(std::span<const float> x) const {
    std::array<double, 6> pooled{};
    for (int64_t h = 0; h < 7; ++h) {
      for (int64_t w = 0; w < 5; ++w) {
        const std::array<double, 7> channels = first_block(x, h, w);
        for (size_t k = 0; k < 6; ++k) {
          double sum = at(b2_, k);
          for (size_t c = 0; c < 7; ++c) sum += channels[c] * at(w2_, k * 7 + c);
          pooled[k] += sum * std::clamp(0.2 * sum + 0.5, 0.0, 1.0) / 35;
        }
      }
    }
    std::array<double, 2> y{at(b3_, 0), at(b3_, 1)};
    for (size_t k = 0; k < 6; ++k) {
      for (size_t j = 0; j < 2; ++j) y[j] += pooled[k] * at(w3_, k * 2 + j);
    }
    return y;
  }

 private:
  static double at(std::span<const float> values, size_t i) { return static_cast<double>(values[i]); }
  static double pixel(std::span<const float> x, int64_t c, int64_t h, int64_t w) {
    const bool inside = h >= 0 && h < 7 && w >= 0 && w < 5;
    return inside ? at(x, static_cast<size_t>((c * 7 + h) * 5 + w)) : 0;
  }

  double convolved(std::span<const float> x, int64_t k, int64_t h, int64_t w) const {
    double sum = 0;
    for (int64_t i = 0; i < 27; ++i) {
      const int64_t c = i / 9, r = i / 3 % 3, s = i % 3;
      sum += pixel(x, c, h + r - 1, w + s - 1) * at(w1_, static_cast<size_t>(k * 27 + i));
    }
    return sum;
  }

  /// Behind the Concat: four channels of the convolution, three of the input.
  std::array<double, 7> first_block(std::span<const float> x, int64_t h, int64_t w) const {
    constexpr std::array variance = {0.5, 1.0, 2.0, 0.25};
    std::array<double, 7> channels{};
    for (size_t k = 0; k < 4; ++k) {
      const double sum = convolved(x, static_cast<int64_t>(k), h, w);
      const double normalised = (sum - at(mean_, k)) / std::sqrt(variance[k] + 1e-5);
      channels[k] = std::max(0.0, normalised * at(scale_, k) + at(shift_, k));
    }
    for (size_t c = 0; c < 3; ++c) channels[4 + c] = pixel(x, static_cast<int64_t>(c), h, w);
    return channels;
  }

  const std::vector<float> w1_ = random_values(108, 1), scale_ = random_values(4, 2), shift_ = random_values(4, 3),
                           mean_ = random_values(4, 4), w2_ = random_values(42, 5), b2_ = random_values(6, 6),
                           w3_ = random_values(12, 7), b3_ = random_values(2, 8);
};

std::vector<double> small_network_of(std::span<const float> x, int64_t batch) {
  const SmallNetwork network;
  std::vector<double> result;
  for (size_t n = 0; n < static_cast<size_t>(batch); ++n) {
    const std::array<double, 2> y = network(x.subspan(n * 105, 105));
    result.insert(result.end(), y.begin(), y.end());
  }
  return result;
}

TEST_F(ModelTest, NetworkGivesWhatPlainLoopsGive) {
  for (const bool fuse : {true, false}) {
    for (const int64_t batch : {1, 3}) {
      const std::vector<float> x = random_values(static_cast<size_t>(batch) * 105, 11);
      const auto results = run(small_network(), {floats({batch, 3, 7, 5}, x)}, {.batch = batch, .fuse = fuse});
      ASSERT_EQ(results.size(), 1U);
      EXPECT_EQ(results[0].extents, (std::vector<int64_t>{batch, 2}));
      const std::vector<float> y = values_of(results[0]);
      const std::vector<double> expected = small_network_of(x, batch);
      for (size_t i = 0; i < y.size(); ++i)
        EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5) << fuse << ' ' << batch;
    }
  }
}

TEST_F(ModelTest, CallsAreFusedAndPartsOfAConcatWrittenInPlace) {
  const Model model = load(small_network());
  std::vector<std::string> operations;
  for (const ModelStep& step : model.steps()) operations.push_back(step.request.operation);
  EXPECT_THAT(operations,
              testing::ElementsAre("conv_forward", "tensor_transform", "conv_forward", "pool_forward", "gemm"));
  EXPECT_THAT(model.steps()[0].nodes, testing::ElementsAre("c1", "n1", "r1"));
  EXPECT_TRUE(model.steps()[2].request.user_code);
  EXPECT_GE(model.memory().arena, model.memory().least_arena);
  EXPECT_LE(model.memory().arena, model.memory().unshared);
}

/// As in DenseNet and EfficientNet: Concat -> BatchNormalization -> Relu -> 1x1 Conv -> Swish, times a gate for each
/// channel -> 1x1 Conv with bias and Relu6.
OnnxModel scaled_network() {
  OnnxModel model(13);
  model.input("x", {"N", 5, 6, 7});
  model.weights("scale", {10}, random_values(10, 1));
  model.weights("shift", {10}, random_values(10, 2));
  model.weights("mean", {10}, random_values(10, 3));
  model.weights("variance", {10}, {0.5F, 1, 2, 0.25F, 3, 1, 4, 0.125F, 1, 2});
  model.weights("w1", {8, 10, 1, 1}, random_values(80, 4));
  model.weights("w2", {3, 8, 1, 1}, random_values(24, 5));
  model.weights("b2", {3}, random_values(3, 6));
  model.weights("w3", {8, 8, 1, 1}, random_values(64, 7));
  model.weights("low", {}, {0});
  model.weights("high", {}, {6});
  model.node("Neg", {"x"}, {"minus"});
  model.node("Concat", {"x", "minus"}, {"k"}, {{"axis", int64_t{1}}});
  model.node("BatchNormalization", {"k", "scale", "shift", "mean", "variance"}, {"n"});
  model.node("Relu", {"n"}, {"r"});
  model.node("Conv", {"r", "w1"}, {"c1"});
  model.node("Sigmoid", {"c1"}, {"s"});
  model.node("Mul", {"c1", "s"}, {"swish"});
  model.node("GlobalAveragePool", {"swish"}, {"p"});
  model.node("Conv", {"p", "w3"}, {"c3"});
  model.node("Sigmoid", {"c3"}, {"gate"});
  model.node("Mul", {"swish", "gate"}, {"gated"});
  model.node("Conv", {"gated", "w2", "b2"}, {"c2"});
  model.node("Clip", {"c2", "low", "high"}, {"y"});
  model.output("y");
  return model;
}

TEST_F(ModelTest, WhatStandsBeforeACallIsFusedToo) {
  for (const int64_t batch : {1, 2}) {
    const std::vector<float> x = random_values(static_cast<size_t>(batch) * 210, 14);
    const auto fused = run(scaled_network(), {floats({batch, 5, 6, 7}, x)}, {.batch = batch});
    const auto plain = run(scaled_network(), {floats({batch, 5, 6, 7}, x)}, {.batch = batch, .fuse = false});
    const std::vector<float> y = values_of(fused[0]), expected = values_of(plain[0]);
    ASSERT_EQ(y.size(), expected.size());
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], expected[i], 1e-5) << i;
  }
  const Model model = load(scaled_network());
  const std::vector<ModelStep>& steps = model.steps();
  EXPECT_THAT(steps.back().nodes, testing::ElementsAre("c2", "y", "gated"));
  const auto normalised = std::find_if(steps.begin(), steps.end(), [](const ModelStep& step) {
    return std::find(step.nodes.begin(), step.nodes.end(), "n") != step.nodes.end();
  });
  EXPECT_EQ(normalised->request.operation, "conv_forward");
}

TEST_F(ModelTest, HalfPrecisionOnTheDeviceKeepsTheTypesOfTheModel) {
  const std::vector<float> x = random_values(105, 12);
  const auto results = run(small_network(), {floats({1, 3, 7, 5}, x)}, {.dtype = f16});
  EXPECT_EQ(results[0].type, "float");
  const std::vector<double> expected = small_network_of(x, 1);
  const std::vector<float> y = values_of(results[0]);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 0.01);
}

// Statistics are f32 whatever the rest is: known ones are constants of that type, not results of a conversion.
TEST_F(ModelTest, NormalisationsAreFoldedInHalfPrecisionToo) {
  const auto operations = [&](const OnnxModel& network, const ModelOptions& how) {
    const Model model = load(network, how);
    std::vector<std::string> names;
    for (const ModelStep& step : model.steps()) names.push_back(step.request.operation);
    return names;
  };
  for (const OnnxModel& network : {small_network(), scaled_network()}) {
    EXPECT_EQ(operations(network, {.dtype = f16}), operations(network, {}));
  }
}

TEST_F(ModelTest, DynamicBatchUsesOneKernelForABucket) {
  for (const int64_t batch : {3, 4}) {
    const std::vector<float> x = random_values(static_cast<size_t>(batch) * 105, 13);
    const ModelOptions how{.batch = batch, .dynamic_batch = true};
    const std::vector<float> y = values_of(run(small_network(), {floats({batch, 3, 7, 5}, x)}, how)[0]);
    const std::vector<double> expected = small_network_of(x, batch);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(static_cast<double>(y[i]), expected[i], 1e-5);
  }
  const Model three = load(small_network(), {.batch = 3, .dynamic_batch = true}),
              four = load(small_network(), {.batch = 4, .dynamic_batch = true});
  for (size_t s = 0; s < three.steps().size(); ++s) {
    EXPECT_TRUE(three.steps()[s].request.dynamic_batch);
    EXPECT_EQ(three.steps()[s].request.key(), four.steps()[s].request.key());
  }
}

TEST_F(ModelTest, ShapeArithmeticIsDoneWhileReading) {
  OnnxModel model(13);
  model.input("x", {"N", 6, 4});
  model.integers("one", {1}).integers("minus", {-1}).integers("zero", {0});
  model.node("Shape", {"x"}, {"shape"});
  model.node("Gather", {"shape", "zero"}, {"batch"}, {{"axis", int64_t{0}}});
  model.node("Mul", {"batch", "one"}, {"same"});
  model.node("Concat", {"same", "minus"}, {"target"}, {{"axis", int64_t{0}}});
  model.node("Reshape", {"x", "target"}, {"flat"});
  model.node("Relu", {"flat"}, {"y"});
  model.output("y");
  const auto results = run(model, {floats({2, 6, 4}, random_values(48, 3))}, {.batch = 2});
  EXPECT_EQ(results[0].extents, (std::vector<int64_t>{2, 24}));
}

TEST_F(ModelTest, IntegersAndBooleansKeepTheirTypes) {
  OnnxModel model(13);
  model.input("x", {4}, onnx::TensorProto::INT64);
  model.input("z", {4}, onnx::TensorProto::INT64);
  model.node("Div", {"x", "z"}, {"y"});
  model.node("Greater", {"x", "z"}, {"g"});
  model.output("y");
  model.output("g");
  const auto results =
      run(model, {array<int64_t>("int64", {4}, {7, -7, 6, 100}), array<int64_t>("int64", {4}, {2, 2, -4, 100})});
  EXPECT_EQ(results[0].type, "int64");
  EXPECT_EQ(values_of<int64_t>(results[0]), (std::vector<int64_t>{3, -3, -1, 1}));
  EXPECT_EQ(results[1].type, "bool");
  EXPECT_EQ(values_of<uint8_t>(results[1]), (std::vector<uint8_t>{1, 0, 1, 0}));
}

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

TEST_F(ModelTest, LayoutsHaveNames) {
  EXPECT_EQ(parse_model_layout("auto"), ModelLayout::automatic);
  EXPECT_EQ(parse_model_layout("nchw"), ModelLayout::channels_first);
  EXPECT_EQ(parse_model_layout("nhwc"), ModelLayout::channels_last);
  EXPECT_EQ(parse_model_layout("chwn"), std::nullopt);
}

TEST_F(ModelTest, OutputsMayBeInputsConstantsAndTheSameValue) {
  OnnxModel model(13);
  model.input("x", {2});
  model.weights("c", {2}, {5, 6});
  model.node("Relu", {"x"}, {"y"});
  model.node("Identity", {"y"}, {"z"});
  for (const char* name : {"x", "c", "y", "z"}) model.output(name);
  const auto results = run(model, {floats({2}, {-1, 2})});
  const std::vector<std::vector<float>> expected = {{-1, 2}, {5, 6}, {0, 2}, {0, 2}};
  ASSERT_EQ(results.size(), 4U);
  for (size_t j = 0; j < 4; ++j) EXPECT_EQ(values_of(results[j]), expected[j]);
}

TEST_F(ModelTest, ScalarsAndEmptyTensorsPassThrough) {
  OnnxModel model(13);
  model.input("x", {});
  model.input("e", {0, 3});
  model.node("Exp", {"x"}, {"y"});
  model.node("Relu", {"e"}, {"z"});
  model.output("y");
  model.output("z");
  const auto results = run(model, {floats({}, {0}), floats({0, 3}, {})});
  EXPECT_EQ(values_of(results[0]), std::vector<float>{1});
  EXPECT_TRUE(results[0].extents.empty());
  EXPECT_EQ(results[1].extents, (std::vector<int64_t>{0, 3}));
}

TEST_F(ModelTest, PixelShuffleOfSixDimensions) {
  OnnxModel model(13);
  model.input("x", {1, 8, 2, 3});
  model.node("DepthToSpace", {"x"}, {"y"}, {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}});
  model.output("y");
  std::vector<float> x(48);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<float> y = values_of(run(model, {floats({1, 8, 2, 3}, x)})[0]);
  for (size_t c = 0; c < 2; ++c) {
    for (size_t h = 0; h < 4; ++h) {
      for (size_t w = 0; w < 6; ++w) {
        const size_t channel = c * 4 + (h % 2) * 2 + w % 2;
        EXPECT_EQ(y[(c * 4 + h) * 6 + w], x[(channel * 2 + h / 2) * 3 + w / 2]);
      }
    }
  }
}

TEST_F(ModelTest, GathersAtIndicesThatARunBrings) {
  OnnxModel model(13);
  model.input("table", {5, 2});
  model.input("ids", {2, 2}, onnx::TensorProto::INT64);
  model.node("Gather", {"table", "ids"}, {"y"}, {{"axis", int64_t{0}}});
  model.output("y");
  const auto results = run(
      model, {floats({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41}), array<int64_t>("int64", {2, 2}, {4, 0, -1, 7})});
  EXPECT_EQ(results[0].extents, (std::vector<int64_t>{2, 2, 2}));
  EXPECT_EQ(values_of(results[0]), (std::vector<float>{40, 41, 0, 1, 40, 41, 0, 0}));
}

TEST_F(ModelTest, PadsByItsOwnBorder) {
  const auto padded = [&](const std::string& mode) {
    OnnxModel model(13);
    model.input("x", {4}).integers("pads", {2, 1});
    model.node("Pad", {"x", "pads"}, {"y"}, {{"mode", mode}});
    model.output("y");
    return values_of(run(model, {floats({4}, {1, 2, 3, 4})})[0]);
  };
  EXPECT_EQ(padded("reflect"), (std::vector<float>{3, 2, 1, 2, 3, 4, 3}));
  EXPECT_EQ(padded("edge"), (std::vector<float>{1, 1, 1, 2, 3, 4, 4}));
  EXPECT_EQ(padded("wrap"), (std::vector<float>{3, 4, 1, 2, 3, 4, 1}));
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
  model.run({{"x", x}}, {{"y", y}});
  const Model moved = std::move(model);
  expect_error({{"x", x}}, {{"y", y}}, "was moved from");  // NOLINT(bugprone-use-after-move): what it says then
}

TEST_F(ModelTest, WhatDependsOnConstantsRunsOnceAndItsMemoryGoes) {
  OnnxModel model(13);
  model.input("x", {1, 2});
  model.weights("large", {64, 64}, random_values(4096, 3));
  model.node("ReduceSum", {"large"}, {"sum"}, {{"keepdims", int64_t{0}}});
  model.node("Mul", {"x", "sum"}, {"y"});
  model.output("y");
  const Model loaded = load(model);
  EXPECT_EQ(loaded.steps().size(), 1U);
  EXPECT_LT(loaded.memory().weights, 4096);
  double sum = 0;
  for (const float value : random_values(4096, 3)) sum += static_cast<double>(value);
  const std::vector<float> y = values_of(run(model, {floats({1, 2}, {1, -2})})[0]);
  EXPECT_NEAR(static_cast<double>(y[0]), sum, 1e-3);
  EXPECT_NEAR(static_cast<double>(y[1]), -2 * sum, 2e-3);
}

// A replay computes with what is in the inputs' memory then.
TEST_F(ModelTest, RunsAreCapturedIntoAGraph) {
  Model model = load(small_network());
  const auto device =
      device::ContextHandle::acquire(device::Device(device::Driver::open({options().environment->driver}), 0));
  const device::Stream stream(device);
  DeviceMemory x(context_, 105 * sizeof(float)), y(context_, 2 * sizeof(float));
  const Tensor input(x.data(), f32, {1, 3, 7, 5}, contiguous), output(y.data(), f32, {1, 2}, contiguous);
  const std::vector<float> nothing(105), values = random_values(105, 14);
  x.upload(std::as_bytes(std::span(nothing)));
  const auto& driver = device->driver().calls();
  cuda_abi::CUgraph graph = nullptr;
  cuda_abi::CUgraphExec executable = nullptr;
  ASSERT_EQ(driver.cuStreamBeginCapture_v2(stream.raw(), cuda_abi::CU_STREAM_CAPTURE_MODE_GLOBAL),
            cuda_abi::CUDA_SUCCESS);
  model.run({{"x", input}}, {{"y", output}}, stream.raw());
  ASSERT_EQ(driver.cuStreamEndCapture(stream.raw(), &graph), cuda_abi::CUDA_SUCCESS);
  ASSERT_EQ(driver.cuGraphInstantiateWithFlags(&executable, graph, 0), cuda_abi::CUDA_SUCCESS);
  x.upload(std::as_bytes(std::span(values)));
  ASSERT_EQ(driver.cuGraphLaunch(executable, stream.raw()), cuda_abi::CUDA_SUCCESS);
  stream.synchronize();
  std::vector<float> result(2);
  y.download(std::as_writable_bytes(std::span(result)));
  const std::vector<double> expected = small_network_of(values, 1);
  for (size_t i = 0; i < 2; ++i) EXPECT_NEAR(static_cast<double>(result[i]), expected[i], 1e-5);
  (void)driver.cuGraphExecDestroy(executable);
  (void)driver.cuGraphDestroy(graph);
}

// What the arena holds is bounded by what is needed at one step.
TEST_F(ModelTest, ArenaIsCloseToTheLeast) {
  OnnxModel model(13);
  model.input("x", {1, 4, 16, 16});
  std::string value = "x";
  for (int i = 0; i < 12; ++i) {
    const std::string name = "v" + std::to_string(i);
    model.weights("w" + std::to_string(i), {4, 4, 3, 3}, random_values(144, static_cast<unsigned>(i)));
    model.node("Conv", {value, "w" + std::to_string(i)}, {name}, {{"pads", test::Ints{1, 1, 1, 1}}});
    value = name;
  }
  model.output(value);
  const ModelMemory use = load(model).memory();
  EXPECT_LE(use.arena, use.least_arena * 5 / 4);
  EXPECT_LT(use.arena * 3, use.unshared);
}

// What `kiln tune` lists.
TEST_F(ModelTest, LowersToTheRequestsThatRun) {
  const test::TemporaryFile file(small_network().bytes());
  for (const ModelOptions& options : {ModelOptions{}, ModelOptions{.dtype = DType::f16}, ModelOptions{.fuse = false},
                                      ModelOptions{.batch = 3, .dynamic_batch = true}}) {
    const models::Lowered lowered = models::lower(file.path(), options);
    const Model model(context_, file.path(), options);
    ASSERT_EQ(lowered.schedule.steps.size(), model.steps().size());
    for (size_t s = 0; s < model.steps().size(); ++s) {
      EXPECT_EQ(lowered.schedule.steps[s].request.key(), model.steps()[s].request.key());
    }
  }
}

}  // namespace
}  // namespace kiln
