// Results of whole models on the emulated device.
#include "kiln/model.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "kiln/base/error.h"
#include "kiln/device/context.h"
#include "kiln/device/device.h"
#include "kiln/device/stream.h"
#include "kiln/memory.h"
#include "kiln/models/lower.h"
#include "model_fixture.h"

namespace kiln::model_test {
namespace {

using test::array;
using test::floats;
using test::ModelTest;
using test::OnnxModel;
using test::random_values;
using test::small_network;
using test::small_network_of;
using test::values_of;
using testing::FloatNear;
using testing::Pointwise;

TEST_F(ModelTest, GivesItsPermissionsToTheCallsThatHaveAChoice) {
  OnnxModel network(13);
  network.input("x", {1, 8, 9, 7}).weights("w", {8, 8, 3, 3}, random_values(576, 3));
  network.node("Conv", {"x", "w"}, {"c"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  network.node("MaxPool", {"c"}, {"y"}, {{"kernel_shape", test::Ints{2, 2}}});
  network.output("y");
  const ModelOptions how{.layout = ModelLayout::channels_first, .arithmetic = {.fast = true, .deterministic = true}};
  const Model model = load(network, how);
  ASSERT_EQ(model.steps().size(), 2U);
  EXPECT_EQ(model.steps()[0].request.arithmetic, how.arithmetic);
  EXPECT_EQ(model.steps()[1].request.arithmetic, Arithmetic{});
}

TEST_F(ModelTest, GivesBatchInvarianceToTheCallsThatCanHaveIt) {
  OnnxModel network(13);
  network.input("x", {2, 8, 9, 7}).weights("w", {8, 8, 3, 3}, random_values(576, 3));
  network.node("Conv", {"x", "w"}, {"c"});
  network.node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", test::Ints{2, 2}}});
  network.node("Tanh", {"p"}, {"t"});
  network.output("t");
  const Model model = load(network, {.fuse = false, .layout = ModelLayout::channels_first, .batch_invariant = true});
  ASSERT_EQ(model.steps().size(), 3U);
  EXPECT_TRUE(model.steps()[0].request.batch_invariant);
  EXPECT_TRUE(model.steps()[1].request.batch_invariant);
  EXPECT_FALSE(model.steps()[2].request.batch_invariant) << "it adds nothing";
}

TEST(HostArrays, KeepEveryNumberWhereTheTypeStays) {
  const std::vector<int64_t> values{(int64_t{1} << 53) + 1, std::numeric_limits<int64_t>::min() + 1};
  EXPECT_EQ(values_of<int64_t>(models::converted(array("int64", {2}, values), "int64")), values);
}

TEST(HostArrays, AreConvertedBetweenAllTypes) {
  struct Row {
    const char* type;
    size_t bytes;  // of an element
    std::vector<double> numbers;
    const char* first;  // the bytes of the first number, from the lowest on
  };
  const std::vector<Row> rows = {
      {"float", 4, {-2, 0.5, 1e9, 3, 7}, "000000c0"},
      {"double", 8, {-2, 0.1, 1e300, 3, 7}, "00000000000000c0"},
      {"float16", 2, {-2, 0.5, 1024, 3, 7}, "00c0"},
      {"bfloat16", 2, {-2, 0.5, 1024, 3, 7}, "00c0"},
      {"float8e4m3fn", 1, {-2, 0.5, 448, 3, 7}, "c0"},
      {"float8e5m2", 1, {-2, 0.5, 1024, 3, 7}, "c0"},
      {"bool", 1, {1, 0, 0, 1, 1}, "01"},
      {"uint8", 1, {255, 0, 1, 128, 7}, "ff"},
      {"int8", 1, {-2, 127, -128, 3, 7}, "fe"},
      {"int16", 2, {-2, 32767, -32768, 3, 7}, "feff"},
      {"uint16", 2, {65535, 256, 1, 3, 7}, "ffff"},
      {"int32", 4, {-2, 65536, 1, 3, 7}, "feffffff"},
      {"int64", 8, {-2, 4294967296, 1, 3, 7}, "feffffffffffffff"},
  };
  for (const Row& row : rows) {
    const models::HostArray there = models::converted(array("double", {5}, row.numbers), row.type);
    EXPECT_EQ(models::size_of_type(row.type), row.bytes) << row.type;
    EXPECT_EQ(there.type, row.type);
    EXPECT_EQ(there.extents, std::vector<int64_t>{5});
    ASSERT_EQ(there.bytes.size(), 5 * row.bytes) << row.type;
    std::string first;
    for (size_t i = 0; i < row.bytes; ++i) first += fmt::format("{:02x}", static_cast<unsigned>(there.bytes[i]));
    EXPECT_EQ(first, row.first) << row.type;
    EXPECT_EQ(values_of<double>(models::converted(there, "double")), row.numbers) << row.type;
  }
  EXPECT_EQ(models::size_of_type("complex64"), 0U);
  EXPECT_THROW((void)models::converted(floats({1}, {1}), "complex64"), Error);
  EXPECT_THROW((void)models::converted(array<float>("complex64", {1}, {1}), "float"), Error);
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

// Few rows are parts beside each other, many an index for each row.
TEST_F(ModelTest, PutsRowsInTheirPlaces) {
  for (const int64_t count : {0, 1, 5, 20}) {
    OnnxModel model(18);
    test::Ints rows;
    std::vector<float> x = random_values(120, 1), updates = random_values(static_cast<size_t>(count) * 3, 2),
                       expected = x;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = 39 - 2 * i;
      rows.push_back(i % 3 == 0 ? row - 40 : row);  // from the end
      for (int64_t c = 0; c < 3; ++c) {
        expected[static_cast<size_t>(row * 3 + c)] = updates[static_cast<size_t>(i * 3 + c)];
      }
    }
    model.input("x", {40, 3}).input("z", {count, 3}).integers("rows", rows).integers("extents", {count, 1});
    model.node("Reshape", {"rows", "extents"}, {"indices"});
    model.node("ScatterND", {"x", "indices", "z"}, {"y"});
    model.output("y");
    EXPECT_EQ(values_of(run(model, {floats({40, 3}, x), floats({count, 3}, updates)})[0]), expected) << count;
  }
}

TEST_F(ModelTest, TakesTheBranchOfAKnownCondition) {
  for (const bool holds : {true, false}) {
    OnnxModel model(13);
    model.input("x", {"N", 2}).integers("two", {2});
    model.node("Relu", {"x"}, {"r"});
    model.node("Shape", {"x"}, {"extents"});
    model.node("Size", {"extents"}, {"rank"});
    model.node(holds ? "Equal" : "Less", {"rank", "two"}, {"condition"});
    onnx::NodeProto& choose = model.node("If", {"condition"}, {"y"});
    for (const std::string name : {"then", "else"}) {
      onnx::GraphProto& branch = test::add_graph(choose, name + "_branch");
      onnx::NodeProto& inner = *branch.add_node();
      inner.set_op_type(name == "then" ? "Neg" : "Exp");
      inner.add_input("r");
      inner.add_output(name + "_inner");
      branch.add_output()->set_name(name + "_inner");
    }
    onnx::NodeProto again = choose;  // the same names in its branches
    again.set_output(0, "z");
    *model.graph().add_node() = again;
    model.output("y");
    model.output("z");
    const auto results = run(model, {floats({1, 2}, {-1, 2})});
    for (const models::HostArray& result : results) {
      const std::vector<float> y = values_of(result);
      EXPECT_FLOAT_EQ(y[0], holds ? 0.0F : 1.0F);
      EXPECT_FLOAT_EQ(y[1], holds ? -2.0F : std::exp(2.0F));
    }
  }
}

TEST_F(ModelTest, ABranchHasItsOwnConstantsAndSeveralResults) {
  OnnxModel model(13);
  model.input("x", {2}).integers("condition", {2});  // holds: it is not 0
  onnx::NodeProto& choose = model.node("If", {"condition"}, {"y", "z"});
  for (const char* name : {"then_branch", "else_branch"}) {
    OnnxModel body(13);
    body.weights("own", {2}, {5, 6});
    body.node("Add", {"x", "own"}, {"a"});
    body.node("Mul", {"x", "own"}, {"m"});
    body.output("m").output("a");
    test::add_graph(choose, name) = body.graph();
  }
  model.output("y").output("z");
  const auto results = run(model, {floats({2}, {2, 3})});
  EXPECT_EQ(values_of(results[0]), (std::vector<float>{10, 18}));
  EXPECT_EQ(values_of(results[1]), (std::vector<float>{7, 9}));
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

TEST_F(ModelTest, MirrorsWideBordersOfImages) {
  constexpr int64_t rows = 7, columns = 6, by = 5;
  OnnxModel model(13);
  model.input("x", {1, 2, rows, columns}).integers("pads", {0, 0, by, by, 0, 0, by - 2, by});
  model.node("Pad", {"x", "pads"}, {"y"}, {{"mode", std::string("reflect")}});
  model.output("y");
  const std::vector<float> x = random_values(2 * rows * columns, 4);
  const auto mirrored = [](int64_t at, int64_t extent) {
    return at < 0 ? -at : at < extent ? at : 2 * extent - 2 - at;
  };
  std::vector<float> expected;
  for (int64_t c = 0; c < 2; ++c) {
    for (int64_t i = -by; i < rows + by - 2; ++i) {
      for (int64_t j = -by; j < columns + by; ++j) {
        const int64_t from = (c * rows + mirrored(i, rows)) * columns + mirrored(j, columns);
        expected.push_back(x[static_cast<size_t>(from)]);
      }
    }
  }
  EXPECT_EQ(values_of(run(model, {floats({1, 2, rows, columns}, x)})[0]), expected);
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

// One call gives several constants of different sizes: each has memory of its own.
TEST_F(ModelTest, AllThatACallGivesOfConstantsIsKept) {
  OnnxModel model(17);
  model.input("x", {4});
  model.weights("c", {2, 4}, {1, 3, 5, 7, 2, 4, 4, 6}).weights("scale", {4}, {1, 1, 1, 1});
  model.node("LayerNormalization", {"c", "scale"}, {"n", "mean"}, {{"epsilon", 0.0F}});
  model.node("Add", {"x", "n"}, {"y"});
  model.node("Add", {"x", "mean"}, {"z"});
  model.output("y").output("z");
  EXPECT_EQ(load(model).steps().size(), 2U);
  const auto results = run(model, {floats({4}, {10, 20, 30, 40})});
  const float far = 3 / std::sqrt(5.0F), near = 1 / std::sqrt(5.0F), two = std::sqrt(2.0F);
  EXPECT_THAT(values_of(results[0]), Pointwise(FloatNear(1e-5F), {10 - far, 20 - near, 30 + near, 40 + far,  //
                                                                  10 - two, 20.0F, 30.0F, 40 + two}));
  EXPECT_THAT(values_of(results[1]), Pointwise(FloatNear(1e-5F), {14, 24, 34, 44, 14, 24, 34, 44}));
}

// Values that differ in one thing each: what they are computed of, how, from where, and with which number.
TEST_F(ModelTest, WhatIsComputedOfConstantsIsKnownByAllThatMakesIt) {
  OnnxModel model(13);
  model.input("x", {1}).integers("start", {0}).integers("middle", {1}).integers("end", {2});
  std::vector<float> c(128, 1), d(128, -8);  // rows of 256 bytes: both are as aligned
  std::fill(c.begin() + 64, c.end(), 2.0F);
  std::fill(d.begin() + 64, d.end(), -16.0F);
  model.weights("c", {2, 64}, c).weights("d", {2, 64}, d);
  model.node("Slice", {"c", "start", "middle"}, {"first"});
  model.node("Slice", {"c", "middle", "end"}, {"second"});
  model.node("LeakyRelu", {"d"}, {"half"}, {{"alpha", 0.5F}});
  model.node("LeakyRelu", {"d"}, {"quarter"}, {{"alpha", 0.25F}});
  const std::vector<std::string> summed = {"c", "d", "first", "second", "half", "quarter"};
  for (const std::string& name : summed) {
    model.node("ReduceSum", {name}, {name + "_sum"}, {{"keepdims", int64_t{0}}});
    model.node("Mul", {"x", name + "_sum"}, {name + "_y"});
    model.output(name + "_y");
  }
  model.node("ReduceMax", {"c"}, {"most"}, {{"keepdims", int64_t{0}}});
  model.node("Mul", {"x", "most"}, {"y"});
  model.output("y");
  const auto results = run(model, {floats({1}, {1})});
  const std::vector<float> expected = {192, -1536, 64, 128, -768, -384, 2};
  ASSERT_EQ(results.size(), expected.size());
  for (size_t j = 0; j < expected.size(); ++j) EXPECT_EQ(values_of(results[j]), std::vector<float>{expected[j]}) << j;
}

// The same bytes, which lie in one order for one of them and in another for the other.
TEST_F(ModelTest, FiltersOfEqualBytesAndOtherExtentsAreApart) {
  OnnxModel model(13);
  model.input("x", {1, 2, 5, 5});
  model.weights("v", {4, 2, 3, 3}, random_values(72, 1)).weights("w", {2, 4, 3, 3}, random_values(72, 1));
  model.node("Conv", {"x", "v"}, {"c"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  model.node("Conv", {"c", "w"}, {"y"}, {{"pads", test::Ints{1, 1, 1, 1}}});
  model.output("y");
  const auto y = [&](ModelLayout layout) {
    return values_of(run(model, {floats({1, 2, 5, 5}, random_values(50, 2))}, {.layout = layout})[0]);
  };
  EXPECT_THAT(y(ModelLayout::channels_last), Pointwise(FloatNear(1e-5F), y(ModelLayout::channels_first)));
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

TEST_F(ModelTest, TheArenaHoldsWhatIsComputedInBetweenAndNothingElse) {
  for (const int64_t calls : {1, 2, 3, 4}) {
    OnnxModel network(13);
    network.input("h0", {2, 3}).weights("w", {2, 3});
    for (int64_t i = 0; i < calls; ++i) {
      network.node("Add", {"h" + std::to_string(i), "w"}, {"h" + std::to_string(i + 1)});
    }
    network.output("h" + std::to_string(calls));
    const ModelMemory memory = load(network, {.fuse = false}).memory();
    constexpr int64_t each = 256;  // bytes, with what aligns them
    EXPECT_EQ(memory.arena, each * std::min<int64_t>(calls - 1, 2)) << calls;
    EXPECT_EQ(memory.least_arena, memory.arena) << calls;
    EXPECT_EQ(memory.unshared, each * (calls - 1)) << calls;
    EXPECT_EQ(memory.weights, each) << calls;
  }
}

// The arena's size is bounded by what is needed at one step.
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

// Requests that `kiln tune` lists.
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
}  // namespace kiln::model_test
