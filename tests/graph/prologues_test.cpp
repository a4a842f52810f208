#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "graph_builder.h"
#include "kiln/generator/operations/gemm.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/generator/operations/reduce.h"
#include "kiln/graph/optimise.h"

namespace kiln::graph::prologues_test {
namespace {

using test::activation;
using test::calls_of;
using test::constant;
using test::conv;
using test::norm;
using test::tensor_op;
using testing::ElementsAre;
using testing::HasSubstr;

double one_second(const Request& /*request*/) {
  return 1;
}

const Call& last_call(const Graph& graph) {
  const auto found = std::find_if(graph.nodes().rbegin(), graph.nodes().rend(),
                                  [](const Node& node) { return std::holds_alternative<Call>(node); });
  return std::get<Call>(*found);
}

std::string code_of(const Call& call) {
  return call.request.user_code ? call.request.user_code.expression()->text() : "";
}

float number_of(const Call& call, const std::string& name) {
  for (const auto& [own, number] : call.numbers) {
    if (own == name) return number;
  }
  return NAN;
}

ValueId operand_of(const Call& call, const std::string& name) {
  for (const Operand& input : call.inputs) {
    if (input.name == name) return input.value;
  }
  throw std::out_of_range(name);
}

std::vector<float> floats_of(const Graph& graph, ValueId id) {
  std::vector<float> elements(graph.bytes(id)->size() / sizeof(float));
  std::memcpy(elements.data(), graph.bytes(id)->data(), graph.bytes(id)->size());
  return elements;
}

ValueId image(Graph& graph, int64_t channels = 2) {
  return graph.input("x", DType::f32, {2, channels, 3, 3});
}

TEST(FusePrologues, NormalisationAndReluBeforeAConvolutionOfOnePosition) {
  Graph graph;
  const ValueId x = image(graph);
  const ValueId normalised = norm(graph, x, {{2, 4}, {1, 7}, {0.5, -1}, {3, 8}});
  graph.output("y", conv(graph, activation(graph, "relu", normalised), constant(graph, {4, 2, 1, 1})));
  fuse_stages(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre(HasSubstr("norm_inference"), "conv_forward"));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  const Call& call = last_call(graph);
  EXPECT_EQ(code_of(call), "--- prologue\nconst float x1 = relu(x * p0 + p1);\nreturn x1;");
  EXPECT_EQ(operand_of(call, "x"), x);
  const std::vector<float> scale = floats_of(graph, operand_of(call, "prologue.p0")),
                           shift = floats_of(graph, operand_of(call, "prologue.p1"));
  EXPECT_FLOAT_EQ(scale[0], static_cast<float>(2 / std::sqrt(3 + 1e-5)));
  EXPECT_FLOAT_EQ(scale[1], static_cast<float>(4 / std::sqrt(8 + 1e-5)));
  EXPECT_FLOAT_EQ(shift[0], static_cast<float>(1 - 0.5 * 2 / std::sqrt(3 + 1e-5)));
  EXPECT_FLOAT_EQ(shift[1], static_cast<float>(7 + 4 / std::sqrt(8 + 1e-5)));
}

// Elements that were stored in 16 bits are still rounded to them, so that tensor cores may take the host.
TEST(FusePrologues, OfHalfPrecisionAreRounded) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f16, {2, 2, 3, 3});
  graph.output("y", conv(graph, activation(graph, "relu", x), graph.input("w", DType::f16, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_THAT(code_of(last_call(graph)), HasSubstr("--- rounded prologue\n"));
}

// Models that make numbers of 8 bits want their rounding, which f32 in between would not have.
TEST(FusePrologues, NumbersOfEightBitsAreStored) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f8e4m3, {2, 2, 3, 3});
  graph.output("y", conv(graph, activation(graph, "relu", x), graph.input("w", DType::f8e4m3, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre(HasSubstr("activation_forward"), "conv_forward"));
}

TEST(FusePrologues, StagesOfTheHostStayBehindIt) {
  Graph graph;
  const ValueId y = conv(graph, activation(graph, "sigmoid", image(graph)), constant(graph, {4, 2, 1, 1}));
  const ValueId biased = tensor_op(graph, "add", y, constant(graph, {1, 4, 1, 1}));
  graph.output("y", activation(graph, "clip", biased, {{"low", -1.0F}, {"high", 6.0F}}));
  fuse_stages(graph);
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  const Call& call = last_call(graph);
  EXPECT_THAT(code_of(call), HasSubstr("--- prologue\nconst float x1 = load0(x);\nreturn x1;\n---\n"
                                       "const float v = clamp((acc + t0), s0, s1);\nreturn v;"));
  EXPECT_EQ(number_of(call, "s0"), -1);
  EXPECT_EQ(number_of(call, "s1"), 6);
  EXPECT_EQ(graph.value(operand_of(call, "epilogue.t0")).extents, Extents{4});
}

TEST(FusePrologues, CodeOfTheHostStaysBehindIt) {
  Graph graph;
  const ValueId y = conv(graph, activation(graph, "tanh", image(graph)), constant(graph, {4, 2, 1, 1}));
  graph.output("y", activation(graph, "leaky_relu", y, {{"slope", 0.25F}}));
  fuse_elements(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("activation_forward tanh", "conv_forward user"));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_THAT(code_of(last_call(graph)), HasSubstr("load0(x)"));
  EXPECT_THAT(code_of(last_call(graph)), HasSubstr("step0(v, s0)"));
  EXPECT_EQ(number_of(last_call(graph), "s0"), 0.25F);
}

// Swish as its exporters write it: the value is read twice inside of the chain.
TEST(FusePrologues, AValueMayBeReadTwiceInside) {
  Graph graph;
  const ValueId x = image(graph), scaled = tensor_op(graph, "mul", x, constant(graph, {1, 1, 1, 1}, {3}));
  const ValueId swish = tensor_op(graph, "mul", scaled, activation(graph, "sigmoid", scaled));
  graph.output("y", conv(graph, swish, constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_EQ(operand_of(last_call(graph), "x"), x);
  EXPECT_EQ(number_of(last_call(graph), "q0"), 3);
}

// A gate for each channel, as of squeeze and excitation of one image.
TEST(FusePrologues, TensorsOfChannelsAreRead) {
  Graph graph;
  const ValueId gate = graph.input("gate", DType::f32, {1, 2, 1, 1});
  graph.output("y", conv(graph, tensor_op(graph, "mul", image(graph), gate), constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_EQ(graph.value(operand_of(last_call(graph), "prologue.p0")).extents, Extents{2});
}

// The same of several images.
TEST(FusePrologues, TensorsOfImagesAndChannelsAreRead) {
  Graph graph;
  const ValueId gate = graph.input("gate", DType::f32, {2, 2, 1, 1});
  graph.output("y", conv(graph, tensor_op(graph, "mul", image(graph), gate), constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_EQ(graph.value(operand_of(last_call(graph), "prologue.p0")).extents, (Extents{2, 2}));
}

TEST(FusePrologues, TensorsOfAnotherKindAreNot) {
  for (const Extents& extents : {Extents{1, 1, 3, 3}, Extents{1, 1, 1, 3}, Extents{2, 1, 1, 1}, Extents{2, 2, 3, 3}}) {
    Graph graph;
    const ValueId other = graph.input("other", DType::f32, extents);
    graph.output("y", conv(graph, tensor_op(graph, "mul", image(graph), other), constant(graph, {4, 2, 1, 1})));
    fuse_prologues(graph, one_second);
    EXPECT_EQ(calls_of(graph).size(), 2U);
  }
}

// The product has the host's extents, and what is read has not.
TEST(FusePrologues, AnInputThatRepeatsIsLeftAlone) {
  Graph graph;
  const ValueId plane = graph.input("plane", DType::f32, {1, 1, 3, 3}),
                gate = graph.input("gate", DType::f32, {1, 2, 1, 1});
  graph.output("y", conv(graph, tensor_op(graph, "mul", plane, gate), constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 2U);
}

TEST(FusePrologues, NormalisationsWithCodeOrComputedParametersAreLeftAlone) {
  Graph graph;
  const ValueId y = activation(graph, "tanh", norm(graph, image(graph), {{2, 4}, {1, 7}, {0, 0}, {1, 1}}));
  graph.output("y", conv(graph, y, constant(graph, {4, 2, 1, 1})));
  fuse_elements(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre(HasSubstr("user"), "conv_forward"));
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 2U);

  for (const char* computed : {"w", "b", "running_mean", "running_variance"}) {
    Graph other;
    const ValueId normalised = norm(other, image(other), {{2, 4}, {1, 7}, {0, 0}, {1, 1}});
    other.output("y", conv(other, normalised, constant(other, {4, 2, 1, 1})));
    const ValueId given = other.input("given", DType::f32, {1, 2, 1, 1});
    for (Operand& input : std::get<Call>(other.nodes().front()).inputs) {
      if (input.name == computed) input.value = given;
    }
    fuse_prologues(other, one_second);
    EXPECT_EQ(calls_of(other).size(), 2U) << computed;
  }
}

TEST(FusePrologues, ParametersBehindViewsAreConstants) {
  Graph graph;
  const ValueId normalised = norm(graph, image(graph), {{2, 4}, {1, 7}, {0, 0}, {1, 1}});
  const ValueId flat = constant(graph, {2}, {3, 5}), shaped = graph.reshape(flat, {1, 2, 1, 1});
  std::get<Call>(graph.nodes().front()).inputs[1].value = shaped;
  std::swap(graph.nodes()[0], graph.nodes()[1]);
  graph.output("y", conv(graph, normalised, constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  ASSERT_THAT(calls_of(graph), ElementsAre("conv_forward user"));
  EXPECT_FLOAT_EQ(floats_of(graph, operand_of(last_call(graph), "prologue.p0"))[1],
                  static_cast<float>(5 / std::sqrt(1 + 1e-5)));
}

/// Factors and shifts of channels become constants that no file holds: a model of a few bytes could ask for any number.
TEST(FusePrologues, ConstantsThatNormalisationsBecomeHaveALimit) {
  constexpr int64_t channels = int64_t{1} << 19;
  constexpr int64_t most = (int64_t{1} << 26) / (2 * channels);
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, channels, 1, 1}), w = constant(graph, {1, channels, 1, 1});
  const ValueId parameter = constant(graph, {1, channels, 1, 1});
  NormInference norm;
  norm.x = norm.y = test::spec_of(graph, x);
  norm.w = norm.b = norm.running_mean = norm.running_variance = test::spec_of(graph, parameter);
  for (int64_t i = 0; i <= most; ++i) {
    const ValueId normalised = graph
                                   .call(norm.request(), {{"x", x},
                                                          {"w", parameter},
                                                          {"b", parameter},
                                                          {"running_mean", parameter},
                                                          {"running_variance", parameter}})
                                   .front()
                                   .value;
    graph.output("y", conv(graph, normalised, w));
  }
  fuse_prologues(graph, one_second);
  const std::vector<std::string> calls = calls_of(graph);
  EXPECT_EQ(std::count(calls.begin(), calls.end(), "conv_forward user"), most);
  EXPECT_EQ(calls.size(), static_cast<size_t>(most + 2)) << "the last normalisation stays";
}

TEST(FusePrologues, OneBehindAnother) {
  Graph graph;
  ValueId y = image(graph);
  for (int i = 0; i < 3; ++i) y = conv(graph, activation(graph, "tanh", y), constant(graph, {2, 2, 1, 1}));
  graph.output("y", y);
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward user", "conv_forward user", "conv_forward user"));
}

TEST(FusePrologues, BehindTheHostMayStandWhatIsNone) {
  Graph graph;
  const ValueId y = conv(graph, activation(graph, "tanh", image(graph)), constant(graph, {2, 2, 1, 1}));
  graph.output("y", norm(graph, y, {{2, 4}, {1, 7}, {0, 0}, {1, 1}}));
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre("conv_forward user", HasSubstr("norm_inference")));
}

TEST(FusePrologues, ACallTakesOneOnly) {
  Graph graph;
  ValueId y = image(graph);
  for (int i = 0; i < 26; ++i) y = activation(graph, "tanh", y);
  graph.output("y", conv(graph, y, constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward tanh", "activation_forward tanh", "conv_forward user"));
}

TEST(FusePrologues, WhatLoadsMoreThanOnceIsLeftAlone) {
  Graph graph;
  graph.output("y", norm(graph, activation(graph, "tanh", image(graph)), {{2, 4}, {1, 7}, {0, 0}, {1, 1}}));
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 2U);
}

TEST(FusePrologues, FiltersOfMorePositionsAreLeftAlone) {
  Graph graph;
  graph.output("y", conv(graph, activation(graph, "tanh", image(graph)), constant(graph, {4, 2, 3, 3})));
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 2U);
}

TEST(FusePrologues, WhatOthersReadStays) {
  Graph graph;
  const ValueId inner = activation(graph, "tanh", image(graph)), outer = activation(graph, "sigmoid", inner);
  graph.output("y", conv(graph, outer, constant(graph, {4, 2, 1, 1})));
  graph.output("inner", inner);
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre("activation_forward tanh", "conv_forward user"));
  EXPECT_EQ(operand_of(last_call(graph), "x"), inner);
}

TEST(FusePrologues, OnlyWhatIsCheaperIsDone) {
  const auto fused_at = [](double cost_of_fused) {
    Graph graph;
    graph.output("y", conv(graph, activation(graph, "tanh", image(graph)), constant(graph, {4, 2, 1, 1})));
    fuse_prologues(graph, [&](const Request& request) { return request.user_code ? cost_of_fused : 1; });
    return calls_of(graph).size() == 1;
  };
  EXPECT_TRUE(fused_at(1.9));
  EXPECT_FALSE(fused_at(2));
}

TEST(FusePrologues, ProductsAndReductionsTakeThem) {
  Graph graph;
  const ValueId a = graph.input("a", DType::f32, {3, 5}), b = graph.input("b", DType::f32, {5, 2});
  const ValueId row = graph.input("row", DType::f32, {5});
  const ValueId scaled = tensor_op(graph, "mul", activation(graph, "tanh", a), graph.reshape(row, {1, 5}));
  Gemm gemm;
  gemm.a = test::spec_of(graph, scaled);
  gemm.b = test::spec_of(graph, b);
  graph.output("y", graph.call(gemm.request(), {{"a", scaled}, {"b", b}}).front().value);
  Reduce reduce;
  const ValueId large = activation(graph, "sigmoid", b);
  reduce.x = test::spec_of(graph, large);
  reduce.axes = {0};
  graph.output("sum", graph.call(reduce.request(), {{"x", large}}).front().value);
  fuse_prologues(graph, one_second);
  EXPECT_THAT(calls_of(graph), ElementsAre("gemm user", HasSubstr("reduce")));
  EXPECT_THAT(code_of(last_call(graph)), HasSubstr("load0(x)"));
}

TEST(FusePrologues, AFactorOfItselfIsLeftAlone) {
  Graph graph;
  const ValueId a = activation(graph, "tanh", graph.input("a", DType::f32, {4, 4}));
  Gemm gemm;
  gemm.a = gemm.b = test::spec_of(graph, a);
  graph.output("y", graph.call(gemm.request(), {{"a", a}, {"b", a}}).front().value);
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 2U);
}

TEST(FusePrologues, MoreThanCodeMayReadIsLeftAlone) {
  Graph graph;
  ValueId y = image(graph);
  for (int i = 0; i < 9; ++i) {
    y = tensor_op(graph, "mul", y, graph.input("gate" + std::to_string(i), DType::f32, {1, 2, 1, 1}));
  }
  graph.output("y", conv(graph, y, constant(graph, {4, 2, 1, 1})));
  fuse_prologues(graph, one_second);
  EXPECT_EQ(calls_of(graph).size(), 10U);
}

}  // namespace
}  // namespace kiln::graph::prologues_test
