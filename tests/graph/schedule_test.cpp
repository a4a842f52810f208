#include "kiln/graph/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "graph_builder.h"
#include "kiln/base/error.h"
#include "kiln/generator/operations/conv_forward.h"
#include "kiln/generator/operations/gemm.h"

namespace kiln::graph::schedule_test {
namespace {

using test::constant;
using test::spec_of;

ValueId relu(Graph& graph, ValueId x) {
  return test::activation(graph, "relu", x);
}

std::vector<std::string> lines_of(const std::vector<Step>& steps) {
  std::vector<std::string> lines;
  for (const Step& step : steps) lines.push_back(step.request.key());
  return lines;
}

size_t copies_in(const Schedule& schedule) {
  size_t copies = 0;
  for (const Step& step : schedule.steps) copies += step.request.operation == "tensor_transform" ? 1 : 0;
  return copies;
}

TEST(Schedule, WritesIntoTheCallersMemory) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 3});
  graph.output("y", relu(graph, relu(graph, x)));
  const Schedule made = schedule(graph);
  ASSERT_EQ(made.steps.size(), 2U);
  EXPECT_EQ(made.buffers[made.steps[0].arguments[0].buffer].home, Buffer::Home::input);
  EXPECT_EQ(made.buffers[made.steps[0].arguments[1].buffer].home, Buffer::Home::arena);
  EXPECT_EQ(made.buffers[made.steps[1].arguments[1].buffer].home, Buffer::Home::output);
}

TEST(Schedule, DropsWhatNothingNeeds) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 3});
  (void)relu(graph, x);
  graph.output("y", relu(graph, x));
  EXPECT_EQ(schedule(graph).steps.size(), 1U);
}

TEST(Schedule, CopiesAnInputThatIsAnOutput) {
  Graph graph;
  graph.output("y", graph.input("x", DType::f32, {2, 3}));
  const Schedule made = schedule(graph);
  EXPECT_EQ(lines_of(made.steps), std::vector<std::string>{"tensor_transform x=f32:6:n y=f32:6:n"});
}

TEST(Schedule, GivesOneValueTwice) {
  Graph graph;
  const ValueId y = relu(graph, graph.input("x", DType::f32, {4}));
  graph.output("a", y);
  graph.output("b", y);
  const Schedule made = schedule(graph);
  ASSERT_EQ(made.steps.size(), 2U);
  EXPECT_EQ(made.buffers[made.steps[1].arguments[0].buffer].home, Buffer::Home::output);
  EXPECT_EQ(made.buffers[made.steps[1].arguments[1].buffer].number, 1U);
}

TEST(Schedule, PartsThatLieSideBySideInAnotherOrderAreNoWhole) {
  const auto copies = [](bool transposed) {
    Graph graph;
    const ValueId x = graph.input("x", DType::f32, {1, 2, 2});
    const ValueId a = relu(graph, x), b = relu(graph, a);
    graph.output("y", relu(graph, graph.concat({a, b}, 0)));
    // Larger, so that the parts are written there.
    const ValueId second = transposed ? graph.permute(b, {0, 2, 1}) : b;
    graph.output("z", relu(graph, graph.concat({a, second, relu(graph, b)}, 0)));
    return copies_in(schedule(graph));
  };
  EXPECT_EQ(copies(false), 0U) << "the first two of three";
  EXPECT_GT(copies(true), 0U);
}

TEST(Schedule, WritesPartsOfAConcatInPlace) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 3, 4, 4});
  const ValueId a = relu(graph, x), b = relu(graph, a);
  graph.output("y", relu(graph, graph.concat({a, x, b}, 1)));
  const Schedule made = schedule(graph);
  // The input has to be copied, the others are written where they belong.
  ASSERT_EQ(made.steps.size(), 4U);
  EXPECT_EQ(copies_in(made), 1U);
  EXPECT_EQ(made.steps[0].request.at("y").print(), "f32:2x3x4x4:144,16,4,1");
  EXPECT_EQ(made.steps[1].request.at("x").print(), "f32:2x3x4x4:144,16,4,1");
  EXPECT_EQ(made.steps[1].arguments[1].offset, 6 * 16 * 4);
}

TEST(Schedule, ConcatsInsideConcatsShareOneBuffer) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 2, 3, 3});
  const ValueId a = relu(graph, x), b = relu(graph, x), c = relu(graph, x);
  graph.output("y", graph.concat({graph.concat({a, b}, 1), c}, 1));
  const Schedule made = schedule(graph);
  EXPECT_EQ(copies_in(made), 0U);
  for (const Step& step : made.steps) {
    EXPECT_EQ(made.buffers[step.arguments[1].buffer].home, Buffer::Home::output);
  }
}

// As DenseNet has them: each layer reads all results before it.
TEST(Schedule, ConcatsOfEqualBeginningsShareOneBuffer) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 2, 3, 3});
  std::vector<ValueId> parts{relu(graph, x)};
  for (int layer = 0; layer < 3; ++layer) parts.push_back(relu(graph, graph.concat(parts, 1)));
  graph.output("y", relu(graph, graph.concat(parts, 1)));
  const Schedule made = schedule(graph);
  EXPECT_EQ(copies_in(made), 0U);
  ASSERT_EQ(made.steps.size(), 5U);
  // 16 channels in all: each result lies behind what it was computed from.
  EXPECT_EQ(made.steps[2].request.at("x").print(), "f32:2x4x3x3:144,9,3,1");
  EXPECT_EQ(made.steps[2].arguments[0].buffer, made.steps[2].arguments[1].buffer);
  EXPECT_EQ(made.steps[2].arguments[1].offset, 4 * 9 * 4);
}

TEST(Schedule, ConcatsOfOtherOrdersDoNot) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 2, 3, 3});
  const ValueId a = relu(graph, x), b = relu(graph, a), c = relu(graph, b);
  graph.output("swapped", relu(graph, graph.concat({b, a}, 1)));
  graph.output("y", relu(graph, graph.concat({a, b, c}, 1)));
  EXPECT_EQ(copies_in(schedule(graph)), 2U);
}

TEST(Schedule, CopiesAPartThatStandsTwice) {
  Graph graph;
  const ValueId a = relu(graph, graph.input("x", DType::f32, {2, 2}));
  graph.output("y", graph.concat({a, a}, 0));
  EXPECT_EQ(copies_in(schedule(graph)), 1U);
}

TEST(Schedule, TransposedOperandIsAView) {
  Graph graph;
  const ValueId a = graph.input("a", DType::f32, {4, 6}), w = graph.input("w", DType::f32, {5, 6});
  Gemm gemm;
  gemm.a = spec_of(graph, a);
  const ValueId transposed = graph.permute(w, {1, 0});
  gemm.b = spec_of(graph, transposed);
  graph.output("y", graph.call(gemm.request(), {{"a", a}, {"b", transposed}}).front().value);
  const Schedule made = schedule(graph);
  ASSERT_EQ(made.steps.size(), 1U);
  EXPECT_EQ(made.steps[0].request.at("b").print(), "f32:6x5:cn");
}

TEST(Schedule, WritesInTheOrderThatAReshapeBehindAPermutationNeeds) {
  Graph graph;
  const ValueId y = relu(graph, graph.input("x", DType::f32, {2, 3, 4, 5}));
  const ValueId heads = graph.reshape(graph.permute(y, {0, 2, 1, 3}), {2, 4, 15});
  graph.output("y", relu(graph, heads));
  const Schedule made = schedule(graph);
  EXPECT_EQ(copies_in(made), 0U);
  EXPECT_EQ(made.steps[0].request.at("y").print(), "f32:2x3x4x5:nhcw");
}

TEST(Schedule, CopiesWhatStridesCannotSay) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {3, 4});
  graph.output("y", relu(graph, graph.reshape(graph.permute(x, {1, 0}), {12})));
  const Schedule made = schedule(graph);
  EXPECT_EQ(copies_in(made), 1U);
  ASSERT_EQ(made.steps.size(), 2U);
}

TEST(Schedule, CopiesSixDimensionsOneByOneWhereTheyDoNotMerge) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 3, 2, 3, 2, 3});
  graph.output("y", graph.permute(x, {5, 4, 3, 2, 1, 0}));
  const Schedule made = schedule(graph);
  EXPECT_EQ(copies_in(made), 2U);
}

TEST(Schedule, RunsWhatDependsOnConstantsOnce) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {1, 2, 5, 5}), w = relu(graph, constant(graph, {3, 2, 3, 3}));
  ConvForward conv;
  conv.x = spec_of(graph, x);
  conv.w = spec_of(graph, w);
  graph.output("y", graph.call(conv.request(), {{"x", x}, {"w", w}}).front().value);
  const Schedule made = schedule(graph);
  ASSERT_EQ(made.once.size(), 1U);
  ASSERT_EQ(made.steps.size(), 1U);
  EXPECT_TRUE(made.steps[0].request.constant_weights);
  EXPECT_EQ(made.buffers[made.steps[0].arguments[1].buffer].home, Buffer::Home::kept);
  EXPECT_FALSE(schedule(graph, {.constant_weights = false}).steps[0].request.constant_weights);
}

TEST(Schedule, OutputThatIsConstantIsCopiedEachRun) {
  Graph graph;
  graph.output("y", relu(graph, constant(graph, {7})));
  const Schedule made = schedule(graph);
  EXPECT_EQ(made.once.size(), 1U);
  EXPECT_EQ(made.steps.size(), 1U);
}

TEST(Schedule, EmptyTensorsNeedNoCalls) {
  Graph graph;
  graph.output("y", relu(graph, graph.input("x", DType::f32, {0, 3})));
  EXPECT_TRUE(schedule(graph).steps.empty());
}

TEST(Schedule, DynamicBatchIsOfTheBucket) {
  Graph graph;
  graph.output("y", relu(graph, graph.input("x", DType::f32, {5, 3})));
  const Schedule made = schedule(graph, {.dynamic_batch = true});
  EXPECT_EQ(made.steps[0].request.at("x").extents, (Extents{8, 3}));
  EXPECT_TRUE(made.steps[0].request.dynamic_batch);
  EXPECT_EQ(made.steps[0].batch, 5);
}

// A product of several matrices takes no dynamic batch: its request is complete as it is.
TEST(Schedule, CallsWithoutADynamicBatchAreOfTheirOwn) {
  Graph graph;
  Gemm gemm;
  const ValueId a = graph.input("a", DType::f32, {2, 3, 4}), b = graph.input("b", DType::f32, {2, 4, 5});
  const ValueId residual = graph.input("residual", DType::f32, {2, 3, 5});
  gemm.a = spec_of(graph, a);
  gemm.b = spec_of(graph, b);
  gemm.epilogue = {EpilogueStage::add};
  graph.output("c", graph.call(gemm.request(), {{"a", a}, {"b", b}, {"residual", residual}}).front().value);
  const Schedule fixed = schedule(graph), made = schedule(graph, {.dynamic_batch = true});
  ASSERT_EQ(made.steps.size(), 1U);
  EXPECT_FALSE(made.steps[0].request.dynamic_batch);
  EXPECT_EQ(made.steps[0].request, fixed.steps[0].request);
  EXPECT_EQ(made.steps[0].batch, -1);
}

TEST(Schedule, PartsThatAreNotAlignedSaySo) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {7});
  graph.output("y", relu(graph, graph.slice(x, {1}, {4}, {1})));
  const Schedule made = schedule(graph);
  EXPECT_EQ(made.steps[0].request.at("x").alignment, 4);
  EXPECT_EQ(made.steps[0].arguments[0].offset, 4);
}

/// `x` of `dimensions` dimensions of 2, or of the last one with `last` elements, in the other order and as one row.
ValueId reversed(Graph& graph, size_t dimensions, int64_t last = 2) {
  Extents extents(dimensions, 2);
  extents.back() = last;
  std::vector<size_t> order(dimensions);
  std::iota(order.rbegin(), order.rend(), size_t{0});
  const ValueId x = graph.permute(graph.input("x", DType::f32, extents), order);
  return graph.reshape(x, {count_elements(extents)});
}

TEST(Schedule, CopiesHaveAnEnd) {
  Graph few, many, none;
  few.output("y", reversed(few, 9));
  EXPECT_EQ(copies_in(schedule(few)), 16U + 1);  // and from there into the caller's memory
  many.output("y", reversed(many, 30));
  try {
    (void)schedule(many);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_THAT(error.message(), testing::HasSubstr("takes more than 16384 copies"));
  }
  none.output("y", reversed(none, 40, 0));
  EXPECT_EQ(copies_in(schedule(none)), 0U);
}

// They are gone through one by one, or by a function that calls itself.
TEST(Schedule, ViewsBehindOneAnotherHaveNoLimit) {
  constexpr int count = 60000;
  Graph permuted, reshaped, joined;
  ValueId x = permuted.input("x", DType::f32, {2, 3});
  for (int i = 0; i < count; ++i) x = permuted.permute(x, {1, 0});
  permuted.output("y", relu(permuted, x));
  permuted.output("z", x);
  EXPECT_EQ(copies_in(schedule(permuted)), 1U);
  x = reshaped.input("x", DType::f32, {2, 3});
  for (int i = 0; i < count / 4; ++i) x = reshaped.reshape(reshaped.permute(x, {1, 0}), {2, 3});
  reshaped.output("y", x);
  EXPECT_LE(copies_in(schedule(reshaped)), count / 4U + 1);
  x = joined.input("x", DType::f32, {1, 3});
  const ValueId row = relu(joined, x);
  for (int i = 0; i < count / 4; ++i) x = joined.concat({x, row}, 0);
  joined.output("y", x);
  EXPECT_LE(copies_in(schedule(joined)), most_copies);
}

}  // namespace
}  // namespace kiln::graph::schedule_test
