// Normalisations of groups of channels: as exporters write them, in front of convolutions, and where they lie.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph_builder.h"
#include "kiln/generator/operations/norm.h"
#include "kiln/graph/layouts.h"
#include "kiln/graph/optimise.h"
#include "kiln/graph/schedule.h"

namespace kiln::graph::group_norms_test {
namespace {

using test::activation;
using test::calls_of;
using test::constant;
using test::conv;
using test::tensor_op;
using testing::ElementsAre;
using testing::HasSubstr;

double one_second(const Request& /*request*/) {
  return 1;
}

// The calls of an operation, in order.
std::vector<const Call*> all_calls(const Graph& graph, const std::string& operation) {
  std::vector<const Call*> found;
  for (const Node& node : graph.nodes()) {
    const Call* call = std::get_if<Call>(&node);
    if (call != nullptr && call->request.operation == operation) found.push_back(call);
  }
  return found;
}

ValueId operand_of(const Call& call, const std::string& name) {
  for (const Operand& input : call.inputs) {
    if (input.name == name) return input.value;
  }
  throw std::out_of_range(name);
}

// norm_forward of x along axes, with w and b.
ValueId norm(Graph& graph, ValueId x, std::vector<int64_t> axes, ValueId w, ValueId b) {
  NormForward forward;
  forward.x = forward.y = test::spec_of(graph, x);
  forward.w = test::spec_of(graph, w);
  forward.b = test::spec_of(graph, b);
  forward.axes = std::move(axes);
  return graph.call(forward.request(), {{"x", x}, {"w", w}, {"b", b}}, {{"epsilon", 0.25F}}).front().value;
}

// As torch.onnx.export writes nn.GroupNorm: `of_groups` are the factor and summand of each group, all 1 and 0.
ValueId written_out(Graph& graph, ValueId x, int64_t groups, ValueId factor, ValueId summand, float w = 1,
                    float b = 0) {
  const Extents extents = graph.value(x).extents;
  const ValueId rows = graph.reshape(x, {extents[0], groups, count_elements(extents) / extents[0] / groups});
  const auto count = static_cast<size_t>(groups);
  const ValueId y = norm(graph, rows, {2}, constant(graph, {1, groups, 1}, std::vector<float>(count, w)),
                         constant(graph, {1, groups, 1}, std::vector<float>(count, b)));
  return tensor_op(graph, "add", tensor_op(graph, "mul", graph.reshape(y, extents), factor), summand);
}

// As read of GroupNormalization: N, G, C/G and all spatial dimensions.
ValueId group_norm(Graph& graph, ValueId x, int64_t groups) {
  const Extents extents = graph.value(x).extents;
  const int64_t each = extents[1] / groups;
  const ValueId image = graph.reshape(x, {extents[0], groups, each, count_elements(extents) / extents[0] / extents[1]});
  const ValueId w = graph.input("factor", DType::f32, {1, groups, each, 1}),
                b = graph.input("summand", DType::f32, {1, groups, each, 1});
  return graph.reshape(norm(graph, image, {2, 3}, w, b), extents);
}

TEST(RecogniseGroupNorms, FactorsAndSummandsOfChannelsAreThoseOfTheNorm) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 6, 3, 5});
  const ValueId factor = graph.input("factor", DType::f32, {1, 6, 1, 1}), summand = constant(graph, {1, 6, 1, 1});
  graph.output("y", written_out(graph, x, 3, factor, summand));
  recognise_normalisations(graph);
  remove_dead(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("norm_forward standard"));
  const Call& call = *all_calls(graph, "norm_forward").front();
  EXPECT_EQ(graph.value(operand_of(call, "x")).extents, (Extents{2, 3, 2, 15}));
  EXPECT_EQ(graph.value(operand_of(call, "w")).extents, (Extents{1, 3, 2, 1}));
  EXPECT_EQ(graph.value(operand_of(call, "b")).extents, (Extents{1, 3, 2, 1}));
  EXPECT_THAT(call.numbers, ElementsAre(testing::Pair("epsilon", 0.25F)));
  const Schedule planned = schedule(graph);
  ASSERT_EQ(planned.steps.size(), 1U);
  EXPECT_EQ(planned.steps[0].request.ints("axes"), (std::vector<int64_t>{2, 3}));
}

TEST(RecogniseGroupNorms, ThoseOfGroupsStay) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 6, 4});
  graph.output("y", written_out(graph, x, 2, constant(graph, {1, 6, 1}), constant(graph, {1, 6, 1}), 3, 0));
  recognise_normalisations(graph);
  remove_dead(graph);
  ASSERT_THAT(calls_of(graph), ElementsAre("norm_forward standard", "tensor_op mul", "tensor_op add"));
  const Call& call = *all_calls(graph, "norm_forward").front();
  EXPECT_EQ(graph.value(operand_of(call, "w")).extents, (Extents{1, 2, 1, 1}));
  EXPECT_EQ(call.inputs.size(), 2U);  // a summand of 0 is none
}

TEST(RecogniseGroupNorms, OtherModesAreLeftAlone) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f32, {2, 6, 3, 5});
  NormForward forward;
  const ValueId rows = graph.reshape(x, {2, 3, 30});
  forward.x = forward.y = test::spec_of(graph, rows);
  forward.axes = {2};
  forward.mode = NormMode::rms;
  graph.output("y", graph.reshape(graph.call(forward.request(), {{"x", rows}}).front().value, {2, 6, 3, 5}));
  recognise_normalisations(graph);
  EXPECT_THAT(calls_of(graph), ElementsAre("norm_forward rms"));
}

TEST(RecogniseGroupNorms, OthersAreLeftAlone) {
  const auto calls = [](const Extents& extents, int64_t groups, const Extents& behind) {
    Graph graph;
    const ValueId x = graph.input("x", DType::f32, extents);
    const ValueId rows = graph.reshape(x, {extents[0], groups, count_elements(extents) / extents[0] / groups});
    const ValueId y = norm(graph, rows, {2}, constant(graph, {1, groups, 1}), constant(graph, {1, groups, 1}));
    graph.output("y", graph.reshape(y, behind));
    recognise_normalisations(graph);
    return graph.value(operand_of(*all_calls(graph, "norm_forward").front(), "x")).extents.size();
  };
  EXPECT_EQ(calls({2, 6, 3, 5}, 3, {2, 6, 3, 5}), 4U);
  EXPECT_EQ(calls({2, 6, 3, 5}, 3, {2, 6, 15}), 3U) << "the result has other extents";
  EXPECT_EQ(calls({2, 6, 3, 5}, 5, {2, 6, 3, 5}), 3U) << "a group is no number of channels";
  EXPECT_EQ(calls({2, 12}, 3, {2, 12}), 3U) << "nothing is spatial";
}

// x scale + shift is part of the convolution's loads, and so is what follows it.
TEST(FusePrologues, AGroupNormIsAScaleAndAShiftOfEachImageAndChannel) {
  for (const DType dtype : {DType::f16, DType::f32}) {
    Graph graph;
    const ValueId x = graph.input("x", dtype, {2, 6, 3, 5});
    const ValueId y = activation(graph, "swish", group_norm(graph, x, 3));
    const int64_t window = dtype == DType::f16 ? 3 : 1;  // f32 is loaded anew under each tap
    graph.output("y", conv(graph, y, graph.input("w", dtype, {4, 6, window, window})));
    fuse_elements(graph);
    ASSERT_THAT(calls_of(graph), ElementsAre("norm_forward standard user", "conv_forward"));
    fuse_prologues(graph, [](const Request& request) { return request.operation == "norm_affine" ? 0.5 : 1; });
    ASSERT_THAT(calls_of(graph), ElementsAre("norm_affine standard", "conv_forward user"));
    const Call &affine = *all_calls(graph, "norm_affine").front(), &fused = *all_calls(graph, "conv_forward").front();
    EXPECT_THAT(affine.numbers, ElementsAre(testing::Pair("epsilon", 0.25F)));
    EXPECT_EQ(affine.inputs.size(), 3U);
    EXPECT_EQ(graph.value(affine.outputs.front().value).extents, (Extents{2, 3, 2, 1}));
    EXPECT_EQ(operand_of(fused, "x"), x);
    for (const char* name : {"prologue.p0", "prologue.p1"}) {
      EXPECT_EQ(graph.value(operand_of(fused, name)).extents, (Extents{2, 6}));
      EXPECT_EQ(graph.value(operand_of(fused, name)).dtype, DType::f32);
    }
    const std::string code = fused.request.user_code.expression()->text();
    EXPECT_THAT(code, HasSubstr(dtype == DType::f16 ? "--- rounded prologue\n" : "--- prologue\n"));
    EXPECT_THAT(code, HasSubstr("norm_step0(v, s0)"));
    EXPECT_THAT(code, HasSubstr("(x * p0 + p1, q0)"));
    EXPECT_EQ(schedule(graph).steps.size(), 2U);
  }
}

// In the form of several images: all batches have one order of sums.
TEST(FusePrologues, AGroupNormOfOneImageIsOfImagesToo) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f16, {1, 6, 3, 5});
  const ValueId y = activation(graph, "relu", group_norm(graph, x, 1));
  graph.output("y", conv(graph, y, graph.input("w", DType::f16, {4, 6, 3, 3})));
  fuse_stages(graph);
  fuse_prologues(graph, [](const Request& request) { return request.operation == "norm_affine" ? 0.5 : 1; });
  ASSERT_THAT(calls_of(graph), ElementsAre("norm_affine standard", "conv_forward user"));
  const Call& fused = *all_calls(graph, "conv_forward").front();
  EXPECT_EQ(graph.value(operand_of(fused, "prologue.p1")).extents, (Extents{1, 6}));
  EXPECT_THAT(fused.request.user_code.expression()->text(), HasSubstr("x1 = relu(x * p0 + p1);"));
}

// Functions of the host's own code have the same names.
TEST(FusePrologues, AGroupNormsCodeStandsBesideTheHosts) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f16, {2, 6, 3, 5});
  const ValueId y = activation(graph, "mish", group_norm(graph, x, 3));
  const ValueId z = conv(graph, y, graph.input("w", DType::f16, {4, 6, 3, 3}));
  graph.output("y", activation(graph, "tanh", z));
  fuse_elements(graph);
  fuse_prologues(graph, [](const Request& request) { return request.operation == "norm_affine" ? 0.5 : 1; });
  ASSERT_THAT(calls_of(graph), ElementsAre("norm_affine standard", "conv_forward user"));
  const std::string code = all_calls(graph, "conv_forward").front()->request.user_code.expression()->text();
  EXPECT_THAT(code, HasSubstr("float norm_step0("));
  EXPECT_THAT(code, HasSubstr("float step0("));
  EXPECT_THAT(code, HasSubstr("step0(v)"));
}

TEST(FusePrologues, GroupNormsThatOthersReadOrThatCostMoreAreLeftAlone) {
  const auto fused = [](bool is_read, bool of_another_row, const Cost& cost) {
    Graph graph;
    const ValueId x = graph.input("x", DType::f16, {2, 6, 3, 5});
    ValueId y = group_norm(graph, x, 3);
    if (of_another_row) {
      const ValueId w = graph.input("w2", DType::f32, {1, 1, 1, 5});
      y = norm(graph, x, {3}, w, w);
    }
    if (is_read) graph.output("between", y);
    graph.output("y", conv(graph, y, graph.input("w", DType::f16, {4, 6, 3, 3})));
    fuse_prologues(graph, cost);
    return !all_calls(graph, "norm_affine").empty();
  };
  const auto half = [](const Request& request) { return request.operation == "norm_affine" ? 0.5 : 1; };
  EXPECT_TRUE(fused(false, false, half));
  EXPECT_FALSE(fused(true, false, half));
  EXPECT_FALSE(fused(false, true, half)) << "a row is no channel";
  EXPECT_FALSE(fused(false, false, one_second)) << "scale and shift cost as much as the normalisation";
}

// The normalisation writes its result as the convolution wants to read it.
TEST(GroupNorms, LieWithTheirChannelsInnermostWhereTheReaderDoes) {
  Graph graph;
  const ValueId x = graph.input("x", DType::f16, {2, 8, 3, 5});
  const ValueId first = conv(graph, x, graph.input("v", DType::f16, {8, 8, 1, 1}));
  graph.output("y", conv(graph, group_norm(graph, first, 2), graph.input("w", DType::f16, {8, 8, 3, 3})));
  ScheduleOptions options;
  options.channels_last = all_channels_last(graph);
  for (const Step& step : schedule(graph, options).steps) {
    if (step.request.operation == "tensor_transform") continue;  // of what is given and asked for
    const TensorSpec &in = step.request.at("x"), &out = step.request.at("y");
    if (step.request.operation == "norm_forward") {
      EXPECT_EQ(in.strides, (std::vector<int64_t>{120, 4, 1, 8}));
      EXPECT_EQ(out.strides, (std::vector<int64_t>{120, 4, 1, 8}));
    } else if (step.request.at("w").extents[2] == 3) {
      EXPECT_EQ(in.strides, (std::vector<int64_t>{120, 1, 40, 8}));
    }
  }
}

}  // namespace
}  // namespace kiln::graph::group_norms_test
