#include "kiln/graph/optimise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph_builder.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/activation.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/graph/schedule.h"

namespace kiln::graph::optimise_test {
namespace {

using test::activation;
using test::calls_of;
using test::constant;
using test::conv;
using test::norm;
using test::tensor_op;
using testing::ElementsAre;

std::vector<float> floats_of(const Graph& graph, ValueId id) {
  std::vector<float> elements(graph.bytes(id)->size() / sizeof(float));
  std::memcpy(elements.data(), graph.bytes(id)->data(), graph.bytes(id)->size());
  return elements;
}

const Call& call_at(const Graph& graph, size_t place) {
  return std::get<Call>(graph.nodes().at(place));
}

/// The user code of the only call that has some.
std::string code_of(const Graph& graph) {
  for (const Node& node : graph.nodes()) {
    const auto* call = std::get_if<Call>(&node);
    if (call != nullptr && call->request.user_code) return call->request.user_code.expression()->text();
  }
  return {};
}

TEST(FoldNormalisations, ScalesFiltersAndMakesTheShiftABias) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 1, 3, 3});
  const ValueId y = conv(graph, x, constant(graph, {2, 1, 1, 1}, {3, 5}));
  graph.output("y", norm(graph, y, {{2, 4}, {1, 7}, {0.5, -1}, {3, 8}}));
  fold_normalisations(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward bias"));
  const Call& call = call_at(graph, 0);
  const std::vector<float> w = floats_of(graph, call.inputs[1].value), bias = floats_of(graph, call.inputs[2].value);
  const double first = 2 / std::sqrt(3 + 1e-5), second = 4 / std::sqrt(8 + 1e-5);
  EXPECT_FLOAT_EQ(w[0], static_cast<float>(3 * first));
  EXPECT_FLOAT_EQ(w[1], static_cast<float>(5 * second));
  EXPECT_FLOAT_EQ(bias[0], static_cast<float>(1 - 0.5 * first));
  EXPECT_FLOAT_EQ(bias[1], static_cast<float>(7 + 1 * second));
  EXPECT_EQ(graph.outputs()[0].value, call.outputs[0].value);
}

TEST(FoldNormalisations, WithoutScaleAndShiftTheyAreOneAndZero) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 1, 3, 3}), constant(graph, {1, 1, 1, 1}, {6}));
  const ValueId normalised = norm(graph, y, {{1}, {0}, {2}, {4}});
  std::erase_if(std::get<Call>(graph.nodes()[1]).inputs,
                [](const Operand& o) { return o.name == "w" || o.name == "b"; });
  graph.output("y", normalised);
  fold_normalisations(graph);
  const Call& call = call_at(graph, 0);
  const double scale = 1 / std::sqrt(4 + 1e-5);
  EXPECT_FLOAT_EQ(floats_of(graph, call.inputs[1].value)[0], static_cast<float>(6 * scale));
  EXPECT_FLOAT_EQ(floats_of(graph, call.inputs[2].value)[0], static_cast<float>(-2 * scale));
}

TEST(FoldNormalisations, LeavesAResultThatOthersRead) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 1, 3, 3}), constant(graph, {1, 1, 1, 1}));
  graph.output("y", norm(graph, y, {{1}, {0}, {0}, {1}}));
  graph.output("raw", y);
  fold_normalisations(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "norm_inference"));
}

TEST(FoldNormalisations, LeavesFiltersThatRunsBring) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 1, 3, 3}), w = graph.input("w", DType::f32, {1, 1, 1, 1});
  graph.output("y", norm(graph, conv(graph, x, w), {{1}, {0}, {0}, {1}}));
  fold_normalisations(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "norm_inference"));
}

// Each convolution that takes a normalisation in gets a filter of its own.
TEST(FoldNormalisations, LeavesFiltersThatManyShare) {
  for (const size_t count : {16, 17}) {
    Graph graph;
    const ValueId x = graph.input("x", DType::f32, {1, 1, 3, 3}), w = constant(graph, {2, 1, 1, 1}, {3, 5});
    for (size_t i = 0; i < count; ++i) {
      graph.output("y" + std::to_string(i), norm(graph, conv(graph, x, w), {{2, 4}, {1, 7}, {0.5, -1}, {3, 8}}));
    }
    fold_normalisations(graph);
    EXPECT_EQ(calls_of(graph).size(), count == 16 ? 16U : 34U);
  }
}

TEST(FuseStages, TakesBiasResidualAndRelu) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 4, 5, 5}), w = constant(graph, {4, 4, 1, 1});
  const ValueId biased = tensor_op(graph, "add", conv(graph, x, w), constant(graph, {1, 4, 1, 1}));
  graph.output("y", activation(graph, "relu", tensor_op(graph, "add", x, biased)));
  fuse_stages(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward bias+add+relu"));
  EXPECT_TRUE(schedule(graph).steps.size() == 1U);
}

TEST(FuseStages, OnlySumsAreBiasesAndResiduals) {
  for (const char* mode : {"mul", "min", "max"}) {
    Graph graph;
    const ValueId x = graph.input("x", DType::f32, {2, 4, 5, 5}), w = constant(graph, {4, 4, 1, 1});
    graph.output("of_all", tensor_op(graph, mode, conv(graph, x, w), x));
    graph.output("of_channels", tensor_op(graph, mode, conv(graph, x, w), constant(graph, {1, 4, 1, 1})));
    fuse_stages(graph);
    const std::string operation = std::string("tensor_op ") + mode;
    EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", operation, "conv_forward", operation));
  }
}

TEST(FuseStages, SumsOfWhatSaturatesAreNone) {
  Graph graph;
  const ValueId x = graph.input("x", DType::i8, {2, 4, 5, 5}), w = graph.input("w", DType::i8, {4, 4, 1, 1});
  graph.output("y", tensor_op(graph, "add", conv(graph, x, w), x));
  fuse_stages(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "tensor_op add"));
}

TEST(FuseStages, LaterOfTwoTakesTheirSum) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 4, 5, 5}), w = constant(graph, {4, 4, 1, 1});
  const ValueId a = conv(graph, x, w), b = conv(graph, a, w);
  const ValueId c = conv(graph, b, w);
  graph.output("y", tensor_op(graph, "add", a, c));
  fuse_stages(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "conv_forward", "conv_forward add"));
  EXPECT_EQ(call_at(graph, 2).inputs.back().value, a);
}

TEST(FuseStages, ClipTakesItsBounds) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 1, 3, 3}), constant(graph, {1, 1, 1, 1}));
  graph.output("y", activation(graph, "clip", y, {{"low", 0.0F}, {"high", 6.0F}}));
  fuse_stages(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward clip"));
  EXPECT_THAT(call_at(graph, 0).numbers, ElementsAre(testing::Pair("clip_lo", 0.0F), testing::Pair("clip_hi", 6.0F)));
}

TEST(FuseStages, SeesThroughAReshape) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {2, 3, 4, 4}), constant(graph, {6, 3, 1, 1}));
  const ValueId flat = graph.reshape(y, {2, 6, 16});
  graph.output("y", tensor_op(graph, "add", flat, constant(graph, {1, 6, 1})));
  fuse_stages(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward bias"));
}

TEST(FuseStages, RepetitionAlongAnotherDimensionIsNoBias) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 1, 3, 3}), constant(graph, {3, 1, 1, 1}));
  graph.output("y", tensor_op(graph, "add", y, constant(graph, {1, 1, 1, 3})));
  fuse_stages(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "tensor_op add"));
}

TEST(FuseElements, ChainGoesIntoTheCallBeforeIt) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 2, 3, 3}), constant(graph, {2, 2, 1, 1}));
  const ValueId scaled = tensor_op(graph, "mul", y, constant(graph, {1, 1, 1, 1}, {0.25F}));
  graph.output("y", activation(graph, "sigmoid", scaled));
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_THAT(call_at(graph, 0).numbers, ElementsAre(testing::Pair("s0", 0.25F)));
  EXPECT_EQ(code_of(graph),
            "__device__ __forceinline__ float step0(float a, float b) {\n  return a * b;\n}\n"
            "__device__ __forceinline__ float step1(float a) {\n  return sigmoid(a);\n}\n"
            "---\n"
            "const float v = acc;\nconst float v1 = step0(v, s0);\nconst float v2 = step1(v1);\nreturn v2;");
}

TEST(FuseElements, DiamondOfOneValueIsOneCall) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 2, 3, 3}), constant(graph, {2, 2, 1, 1}));
  graph.output("y", tensor_op(graph, "mul", y, activation(graph, "hard_sigmoid", y)));
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
}

TEST(FuseElements, ValueThatOthersReadStays) {
  Graph graph;
  const ValueId y = conv(graph, graph.input("x", DType::f32, {1, 2, 3, 3}), constant(graph, {2, 2, 1, 1}));
  const ValueId gate = activation(graph, "sigmoid", y);
  graph.output("y", tensor_op(graph, "mul", y, gate));
  graph.output("gate", gate);
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward", "activation_forward sigmoid", "tensor_op mul"));
}

TEST(FuseElements, StagesBecomeCode) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 4, 5, 5}), w = constant(graph, {4, 4, 1, 1});
  const ValueId biased = tensor_op(graph, "add", conv(graph, x, w), constant(graph, {1, 4, 1, 1}));
  graph.output("y", activation(graph, "tanh", biased));
  fuse_stages(graph);
  fuse_elements(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_THAT(code_of(graph), testing::HasSubstr("const float v = (acc + t0);"));
  ASSERT_EQ(schedule(graph).steps.size(), 1U);
  EXPECT_EQ(schedule(graph).steps[0].request.at("epilogue.t0").extents, Extents{4});
}

TEST(FuseElements, NoMoreThanEightTensors) {
  Graph graph;
  ValueId y = activation(graph, "relu", graph.input("x", DType::f32, {4}));
  for (int i = 0; i < 10; ++i) y = tensor_op(graph, "add", y, graph.input("t" + std::to_string(i), DType::f32, {4}));
  graph.output("y", y);
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward relu user", "tensor_op add user"));
}

TEST(FuseElements, NoMoreThanEightNumbers) {
  Graph graph;
  ValueId y = activation(graph, "relu", graph.input("x", DType::f32, {4}));
  for (int i = 0; i < 10; ++i) y = tensor_op(graph, "add", y, constant(graph, {1}, {static_cast<float>(i)}));
  graph.output("y", y);
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward relu user", "tensor_op add user"));
  EXPECT_EQ(call_at(graph, 0).numbers.size(), 8U);
}

TEST(FuseElements, IntegersAreRoundedInBetween) {
  Graph graph;
  const ValueId x = graph.input("x", DType::i32, {4});
  graph.output("y", tensor_op(graph, "add", tensor_op(graph, "div", x, x), x));
  fuse_elements(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("tensor_op div user"));
  EXPECT_THAT(code_of(graph),
              testing::HasSubstr("return a == a ? clamp(rintf(a), -2147483648.0f, 2147483648.0f) : 0.0f;"));
}

/// (x - zero) * scale, as a DequantizeLinear is read.
ValueId dequantised(Graph& graph, ValueId x) {
  ActivationForward forward;
  forward.x = test::spec_of(graph, x);
  forward.y = forward.x;
  forward.y.dtype = DType::f32;
  forward.mode = ActivationMode::identity;
  const Expression code("(acc - zero) * scale", {}, {"zero", "scale"});
  const Request request = with_user_code(forward.request(), code, {});
  return graph.call(request, {{"x", x}}, {{"zero", 3.0f}, {"scale", 0.5f}}).front().value;
}

TEST(FuseElements, TakesInWhatWidensAnOperand) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 4, 5, 5}), residual = graph.input("r", DType::u8, {1, 4, 5, 5});
  const ValueId y = conv(graph, x, constant(graph, {4, 4, 1, 1}));
  graph.output("y", tensor_op(graph, "add", y, dequantised(graph, residual)));
  fuse_elements(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_EQ(schedule(graph).steps[0].request.at("epilogue.t0").dtype, DType::u8);
}

TEST(FuseElements, LeavesWhatWidensForSeveral) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 4, 5, 5}), residual = graph.input("r", DType::u8, {1, 4, 5, 5});
  const ValueId y = conv(graph, x, constant(graph, {4, 4, 1, 1})), wide = dequantised(graph, residual);
  graph.output("y", tensor_op(graph, "add", y, wide));
  graph.output("wide", wide);
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward identity user", "conv_forward user"));
}

// Comparisons give u8, of which a convolution has results, and a normalisation has none.
TEST(FuseElements, LeavesWhatTheOperationDoesNotTake) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 2, 3, 3});
  graph.output("y",
               test::compared(graph, conv(graph, x, constant(graph, {2, 2, 1, 1})), constant(graph, {1, 1, 1, 1})));
  graph.output("z",
               test::compared(graph, norm(graph, x, {{1, 1}, {0, 0}, {0, 0}, {1, 1}}), constant(graph, {1, 1, 1, 1})));
  fuse_elements(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward user", "norm_inference", "tensor_op gt"));
}

TEST(FuseElements, WhatRunsOnceStaysApart) {
  Graph graph;
  const ValueId fixed = activation(graph, "tanh", constant(graph, {4}));
  graph.output("y", tensor_op(graph, "add", graph.input("x", DType::f32, {4}), fixed));
  fuse_elements(graph);
  EXPECT_EQ(calls_of(graph).size(), 2U);
}

TEST(FuseElements, EqualChainsAreEqualCode) {
  Graph graph;
  ValueId y = graph.input("x", DType::f32, {2, 3, 4, 4});
  const ValueId w = constant(graph, {3, 3, 1, 1});
  for (int i = 0; i < 2; ++i) y = activation(graph, "tanh", tensor_op(graph, "add", conv(graph, y, w), y));
  graph.output("y", y);
  optimise(graph, [](const Request&) { return 1.0; });
  ASSERT_EQ(calls_of(graph).size(), 2U);
  const Schedule made = schedule(graph);
  EXPECT_EQ(made.steps[0].request.key(), made.steps[1].request.key());
}

/// A layer normalisation of x along its last dimension, as exporters write it.
ValueId normalisation(Graph& graph, ValueId x, bool centred) {
  const auto mean = [&](ValueId value) {
    Reduce reduce;
    reduce.x = test::spec_of(graph, value);
    reduce.axes = {-1};
    reduce.mode = ReduceMode::mean;
    return graph.call(reduce.request(), {{"x", value}}).front().value;
  };
  const ValueId difference = centred ? tensor_op(graph, "sub", x, mean(x)) : x;
  const ValueId square = tensor_op(graph, "pow", difference, constant(graph, {1, 1}, {2}));
  const ValueId sum = tensor_op(graph, "add", mean(square), constant(graph, {1, 1}, {0.01F}));
  const ValueId quotient = tensor_op(graph, "div", difference, test::root(graph, sum));
  const ValueId scaled = tensor_op(graph, "mul", quotient, constant(graph, {1, 4}));
  return tensor_op(graph, "add", scaled, constant(graph, {1, 4}));
}

// The cost of one change does not grow with the graph.
TEST(FuseStages, EveryCallOfALargeModelTakesItsStage) {
  constexpr size_t calls = 12'000;
  Graph graph;
  ValueId x = graph.input("x", DType::f32, {1, 1, 2, 2});
  const ValueId w = constant(graph, {1, 1, 1, 1});
  for (size_t i = 0; i < calls; ++i) x = activation(graph, "relu", conv(graph, x, w));
  graph.output("y", x);
  fuse_stages(graph);
  EXPECT_EQ(graph.nodes().size(), calls);
}

// Each change moves all calls between a host and what it takes in: so many that they have a limit.
TEST(FuseElements, ChangesThatMoveMuchHaveALimit) {
  constexpr size_t calls = 20'000;
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {4, 8});
  std::vector<ValueId> halves;
  for (size_t i = 0; i < calls; ++i) halves.push_back(activation(graph, "sigmoid", x));
  for (const ValueId half : halves) graph.output("y", activation(graph, "tanh", half));
  fuse_elements(graph);
  EXPECT_GT(graph.nodes().size(), calls) << "all were fused: is there no limit?";
  EXPECT_LT(graph.nodes().size(), 2 * calls - 100);
}

TEST(RecogniseNormalisations, ArithmeticBecomesOneCall) {
  for (const bool centred : {true, false}) {
    Graph graph;
    graph.output("y", normalisation(graph, graph.input("x", DType::f32, {3, 4}), centred));
    recognise_normalisations(graph);
    ASSERT_THAT(calls_of(graph), ElementsAre(centred ? "norm_forward standard" : "norm_forward rms"));
    const Call& call = call_at(graph, 0);
    EXPECT_THAT(call.numbers, ElementsAre(testing::Pair("epsilon", 0.01F)));
    EXPECT_EQ(call.inputs.size(), 3U);
    EXPECT_EQ(schedule(graph).steps[0].request.ints("axes"), std::vector<int64_t>{1});
  }
}

TEST(RecogniseNormalisations, OtherProductsAreNoSquares) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {3, 4}), z = graph.input("z", DType::f32, {3, 4});
  Reduce reduce;
  reduce.x = test::spec_of(graph, x);
  reduce.axes = {-1};
  reduce.mode = ReduceMode::mean;
  const ValueId mean = graph.call(reduce.request(), {{"x", tensor_op(graph, "mul", x, z)}}).front().value;
  const ValueId sum = tensor_op(graph, "add", mean, constant(graph, {1, 1}, {0.01F}));
  graph.output("y", tensor_op(graph, "div", x, test::root(graph, sum)));
  const size_t calls = calls_of(graph).size();
  recognise_normalisations(graph);
  EXPECT_EQ(calls_of(graph).size(), calls);
}

TEST(RecogniseNormalisations, WhatOthersReadStays) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {3, 4});
  graph.output("y", normalisation(graph, x, true));
  graph.output("centred", std::get<Call>(graph.nodes()[1]).outputs.front().value);
  const size_t calls = calls_of(graph).size();
  recognise_normalisations(graph);
  EXPECT_EQ(calls_of(graph).size(), calls);
}

TEST(RemoveDead, KeepsWhatOutputsNeed) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {4});
  (void)activation(graph, "tanh", activation(graph, "relu", x));
  graph.output("y", activation(graph, "sigmoid", x));
  remove_dead(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward sigmoid"));
}

}  // namespace
}  // namespace kiln::graph::optimise_test
