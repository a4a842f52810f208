// Nodes that are not covered: they are named with their reasons, and everything else is listed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "listing.h"

namespace kiln::test::onnx_uncovered_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const std::string relu = line("activation_forward x=f32:2x4 mode=relu");
const std::string nothing_serves = "no operation of Kiln serves it";

std::vector<std::string> keys_of(const models::Lowered& made) {
  std::vector<std::string> keys;
  for (const graph::Step& step : made.schedule.steps) keys.push_back(step.request.key());
  return keys;
}

/// Relu, then nodes that are not covered, then Relu again, as `y`.
OnnxModel between(const std::function<void(OnnxModel&)>& nodes) {
  OnnxModel model;
  model.input("x", {2, 4});
  model.node("Relu", {"x"}, {"r"});
  nodes(model);
  model.node("Relu", {"u"}, {"y"});
  model.output("y");
  return model;
}

void know_domain(OnnxModel& model) {
  onnx::OperatorSetIdProto& import = *model.proto().add_opset_import();
  import.set_domain("com.example");
  import.set_version(1);
}

void state(OnnxModel& model, const std::string& name, const std::vector<Extent>& extents) {
  OnnxModel other;
  other.input(name, extents);
  *model.graph().add_value_info() = other.graph().input(0);
}

TEST(OnnxUncovered, NodesBeforeAndBehindAreListedWhereOnnxInfersTheExtents) {
  const models::Lowered made = lowered(between([](OnnxModel& model) {
    model.integers("k", {4});
    model.node("TopK", {"r", "k"}, {"u", "indices"});
  }));
  EXPECT_THAT(keys_of(made), ElementsAre(relu, relu));
  ASSERT_EQ(made.model.uncovered.size(), 1U);
  EXPECT_EQ(made.model.uncovered[0].name, "u");
  EXPECT_EQ(made.model.uncovered[0].operation, "TopK");
  EXPECT_EQ(made.model.uncovered[0].reason, nothing_serves);
  const auto names = [](const std::vector<OnnxPort>& ports) {
    std::vector<std::string> all;
    for (const OnnxPort& port : ports) all.push_back(port.name);
    return all;
  };
  EXPECT_THAT(names(made.model.inputs), ElementsAre("x", "u"));
  EXPECT_THAT(names(made.model.outputs), ElementsAre("y", "r"));
}

/// The requests behind a node that is not covered: a Relu of its output `output`.
std::vector<std::string> behind(OnnxModel& model, const std::string& type, const std::vector<std::string>& inputs,
                                const Attributes& attributes, size_t output = 0) {
  std::vector<std::string> outputs(output + 1);
  outputs.back() = "u";
  model.node(type, inputs, outputs, attributes);
  model.node("Relu", {"u"}, {"y"});
  model.output("y");
  return keys_of(lowered(model));
}

std::vector<std::string> relu_of(const std::string& extents) {
  return {line("activation_forward x=f32:" + extents + " mode=relu")};
}

// LSTM, GRU and RNN that clip, which is not covered: ONNX's own inference is not asked about them.
TEST(OnnxUncovered, OutputsOfRecurrentLayersAreKnown) {
  const auto states = [](const std::string& type, const Attributes& attributes, size_t output, int64_t directions) {
    OnnxModel model;
    model.input("x", {5, 2, 3}).weights("w", {directions, 16, 3}).weights("r", {directions, 16, 4});
    Attributes clipped = attributes;
    clipped.emplace_back("clip", 1.0F);
    return behind(model, type, {"x", "w", "r"}, clipped, output);
  };
  const Attributes both{{"hidden_size", int64_t{4}}, {"direction", "bidirectional"}};
  for (const char* type : {"LSTM", "GRU", "RNN"}) {
    EXPECT_EQ(states(type, {}, 0, 1), relu_of("5x1x2x4")) << type << ": steps, directions, batch, hidden";
    EXPECT_EQ(states(type, both, 0, 2), relu_of("5x2x2x4")) << type;
    EXPECT_EQ(states(type, both, 1, 2), relu_of("2x2x4")) << type << ": the last state";
  }
  EXPECT_EQ(states("LSTM", {}, 2, 1), relu_of("1x2x4")) << "the last cell";
  OnnxModel batch_first(14);
  batch_first.input("x", {2, 5, 3}).weights("w", {1, 16, 3}).weights("r", {1, 16, 4});
  EXPECT_EQ(behind(batch_first, "LSTM", {"x", "w", "r"}, {{"layout", int64_t{1}}, {"clip", 1.0F}}), relu_of("2x5x1x4"));
}

TEST(OnnxUncovered, OutputsOfWindowsAreKnown) {
  OnnxModel pooled;
  pooled.input("x", {1, 2, 9, 7});
  EXPECT_EQ(behind(pooled, "LpPool", {"x"}, {{"kernel_shape", Ints{3, 3}}, {"strides", Ints{2, 1}}}),
            relu_of("1x2x4x5"));
  OnnxModel quantised(10);
  quantised.input("x", {1, 3, 9, 7}, onnx::TensorProto::INT16).input("w", {8, 3, 3, 3}, onnx::TensorProto::UINT8);
  quantised.node("ConvInteger", {"x", "w"}, {"sums"}, {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 2}}});
  quantised.node("Cast", {"sums"}, {"u"}, {{"to", int64_t{floating}}});
  quantised.node("Relu", {"u"}, {"y"});
  quantised.output("y");
  const auto inputs = lowered(quantised).model.uncovered;
  ASSERT_FALSE(inputs.empty());
  EXPECT_EQ(inputs[0].operation, "ConvInteger");
}

TEST(OnnxUncovered, ExtentsThatTheModelStatesCountForItsBatch) {
  const auto with = [](const std::vector<Extent>& stated) {
    return between([&](OnnxModel& model) {
      know_domain(model);
      model.node("Rank", {"r"}, {"u"}).set_domain("com.example");
      if (!stated.empty()) state(model, "u", stated);
    });
  };
  EXPECT_THAT(keys_of(lowered(with({2, 4}))), ElementsAre(relu, relu));
  EXPECT_THAT(reasons_of(with({2, 4})), ElementsAre("com.example.Rank u: " + nothing_serves));
  const std::string behind = "Relu y: it depends on 'u', which a node gives that is not covered";
  for (const std::vector<Extent>& unknown : {std::vector<Extent>{}, {2, "width"}, {2, ""}}) {
    EXPECT_THAT(keys_of(lowered(with(unknown))), ElementsAre(relu));
    EXPECT_THAT(reasons_of(with(unknown)), ElementsAre("com.example.Rank u: " + nothing_serves, behind));
  }
  EXPECT_THAT(reasons_of(with({2, 4}), {.batch = 3}), ElementsAre("com.example.Rank u: " + nothing_serves, behind));
}

TEST(OnnxUncovered, StatedExtentsMayHaveTheBatchByItsName) {
  OnnxModel model;
  know_domain(model);
  model.input("x", {"N", 4});
  model.node("Rank", {"x"}, {"u"}).set_domain("com.example");
  state(model, "u", {"N", 4});
  model.node("Relu", {"u"}, {"y"});
  model.output("y");
  EXPECT_THAT(keys_of(lowered(model, {.batch = 2})), ElementsAre(relu));
}

TEST(OnnxUncovered, StatedExtentsCountWhereTheBatchIsBelowZero) {
  const auto with = [](const std::vector<Extent>& stated) {
    OnnxModel model;
    know_domain(model);
    model.input("x", {-1, 4});
    model.node("Rank", {"x"}, {"u"}).set_domain("com.example");
    state(model, "u", stated);
    model.node("Relu", {"u"}, {"y"});
    model.output("y");
    return keys_of(lowered(model, {.batch = 2}));
  };
  EXPECT_THAT(with({2, 4}), ElementsAre(relu));
  EXPECT_THAT(with({-1, 4}), ElementsAre());  // not known to be the batch
}

TEST(OnnxUncovered, WhatRunsNothingIsNotListed) {
  // Inputs and constants that such nodes read, views of them, and what such nodes give to the caller.
  OnnxModel model;
  model.input("x", {2, 4}).weights("w", {2, 4}).integers("k", {2});
  model.node("Flatten", {"x"}, {"f"});
  model.node("TopK", {"f", "k"}, {"a", "i"});
  model.node("TopK", {"w", "k"}, {"b", "j"});
  model.node("Identity", {"a"}, {"y"});
  model.output("y").output("b");
  EXPECT_THAT(keys_of(lowered(model)), IsEmpty());
  EXPECT_THAT(reasons_of(model), ElementsAre("TopK a: " + nothing_serves, "TopK b: " + nothing_serves));
}

TEST(OnnxUncovered, AValueThatSeveralReadIsComputedOnce) {
  OnnxModel model;
  model.input("x", {2, 4}).integers("k", {2});
  model.node("Relu", {"x"}, {"r"});
  model.node("Flatten", {"r"}, {"f"}, {{"axis", 0}});
  model.node("TopK", {"r", "k"}, {"a", "i"});
  model.node("TopK", {"f", "k"}, {"b", "j"});
  model.output("r").output("a").output("b");
  EXPECT_THAT(keys_of(lowered(model)), ElementsAre(relu));
}

TEST(OnnxUncovered, BodiesReadValuesToo) {
  OnnxModel model;
  model.input("x", {2, 4}).input("choice", {}, onnx::TensorProto::BOOL);
  model.node("Relu", {"x"}, {"r"});
  onnx::NodeProto& choose = model.node("If", {"choice"}, {"y"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::GraphProto& branch = test::add_graph(choose, name);
    onnx::NodeProto& inner = *branch.add_node();
    inner.set_op_type("Tanh");
    inner.add_input("r");
    inner.add_output("inner");
    branch.add_output()->set_name("inner");
  }
  model.output("y");
  EXPECT_THAT(keys_of(lowered(model)), ElementsAre(relu));
  EXPECT_THAT(reasons_of(model), ElementsAre("If y: its condition is computed from the model's inputs, and has to be "
                                             "known before"));
}

// ONNX's inference dies of a MaxUnpool whose inputs have no types, and of one that it infers itself.
TEST(OnnxUncovered, MaxUnpoolHasTheExtentsOfItsWindowsOrItsInput) {
  OnnxModel model;
  model.input("x", {1, 2, 3, 3}).input("i", {1, 2, 3, 3}, onnx::TensorProto::INT64).integers("extents", {1, 2, 7, 8});
  const Attributes window{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  model.node("MaxUnpool", {"x", "i"}, {"a"}, window);
  model.node("MaxUnpool", {"x", "i", "extents"}, {"b"}, window);
  model.node("Det", {"never"}, {"c"}).set_input(0, "x");
  model.node("MaxUnpool", {"c", "i"}, {"d"}, window);
  model.node("Relu", {"a"}, {"ra"});
  model.node("Relu", {"b"}, {"rb"});
  model.output("ra").output("rb").output("d");
  EXPECT_THAT(keys_of(lowered(model)), ElementsAre(line("activation_forward x=f32:1x2x6x6 mode=relu"),
                                                   line("activation_forward x=f32:1x2x7x8 mode=relu")));
}

TEST(OnnxUncovered, NothingIsFusedAcrossSuchANode) {
  const models::Lowered made = lowered(between([](OnnxModel& model) {
    model.node("Sigmoid", {"r"}, {"s"});
    model.node("NonZero", {"s"}, {"n"});
    model.node("Tanh", {"s"}, {"u"});
  }));
  EXPECT_EQ(made.schedule.steps.size(), 2U);  // of s, which NonZero reads, and of what follows
}

TEST(OnnxUncovered, ReasonsAreTold) {
  struct Case {
    OnnxModel model;
    std::string reason;
  };
  OnnxModel computed;
  computed.input("x", {4}).input("starts", {1}, onnx::TensorProto::INT64).integers("ends", {3});
  computed.node("Slice", {"x", "starts", "ends"}, {"y"});
  OnnxModel training;
  training.input("x", {3, 4}).scalar("ratio", 0.5F).integers("trains", {1});
  training.node("Dropout", {"x", "ratio", "trains"}, {"y"});
  const std::vector<Case> cases = {
      {one_node("Conv", {{1, 2, 5, 5, 5, 5}, {2, 2, 3, 3, 3, 3}}), "it is 4-D, and 1-D to 3-D are covered"},
      {one_node("InstanceNormalization", {{2, 3}, {3}, {3}}), "its input has no spatial dimensions"},
      {one_node("LRN", {{6}}, {{"size", 3}}), "its input has no channels"},
      {one_node("ConvTranspose", {{1, 6, 4, 5}, {6, 4, 3, 2}}, {{"output_padding", Ints{1, 0}}}),
       "its output_padding is not below its stride"},
      {one_node("ConvTranspose", {{1, 6, 4, 5}, {6, 4, 3, 2}}, {{"output_shape", Ints{9, 6}}}),
       "its output is larger than its windows reach"},
      {one_node("MaxUnpool", {{1, 1, 2, 2}, {1, 1, 2, 2}}, {{"kernel_shape", Ints{2, 2}}}),
       "its indices count through all channels"},
      {computed, "its starts are computed from the model's inputs, and have to be known before"},
      {training, "it drops elements out, as in training"}};
  for (const Case& each : cases) EXPECT_THAT(reasons_of(each.model), ElementsAre(HasSubstr(each.reason)));
  expect_error(one_node("Hardmax", {{2, 3}}, {}, 14, onnx::TensorProto::STRING),
               "input 'x0' cannot be had: there is no dtype for elements of type string", ErrorCode::unsupported);
}

}  // namespace
}  // namespace kiln::test::onnx_uncovered_test
