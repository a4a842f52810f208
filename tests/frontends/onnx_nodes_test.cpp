// Nodes that say what cannot be: each message names the node, what is wrong and what was expected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "listing.h"

namespace kiln::test::onnx_nodes_test {
namespace {

using testing::ElementsAre;

struct Wrong {
  OnnxModel model;
  std::string message;  ///< Behind "node 'y' (".
};

TEST(OnnxNodes, SayWhatIsWrong) {
  const auto moving = [](const std::string& type, const Ints& extents, const Attributes& attributes,
                         const std::vector<Ints>& integers = {}) {
    return one_node(type, {extents}, attributes, 13, floating, integers);
  };
  const std::vector<Wrong> cases = {
      {one_node("Relu", {{2, 3}, {2, 3}}), "Relu): has 2 inputs and 1 outputs, expected 1 to 1"},
      {one_node("Gelu", {{2, 3}}, {{"approximate", "erf"}}, 20), "Gelu): approximate is 'erf', expected none or tanh"},
      {one_node("Add", {{2, 3}, {2, 4}}), "Add): "},
      {one_node("MatMul", {{2, 5, 7}, {3, 7, 3}}), "MatMul): "},
      {one_node("ReduceMax", {{2, 3}}, {{"axes", Ints{2}}}, 11), "ReduceMax): axis is 2, expected -2 to 1"},
      {one_node("ReduceMax", {{2, 3}}, {{"axes", Ints{1, -1}}}, 11), "ReduceMax): axis 1 stands twice"},
      {one_node("Softmax", {{2, 3}}, {{"axis", 2}}), "Softmax): axis is 2, expected -2 to 1"},
      {one_node("Concat", {{2, 3}, {2, 3}}), "Concat): "},
      {one_node("Concat", {{2, 3}, {3, 3}}, {{"axis", 1}}), "Concat): "},
      {moving("Transpose", {2, 3}, {{"perm", Ints{0}}}), "Transpose): perm has 1 values, expected 2"},
      {moving("Transpose", {2, 3}, {{"perm", Ints{1, 1}}}), "Transpose): axis 1 stands twice"},
      {moving("Slice", {9}, {}, {{1}, {5}, {0}, {0}}), "Slice): "},
      {moving("Slice", {9}, {}, {{1}, {5, 6}}), "Slice): "},
      {moving("Split", {7}, {}, {{3, 3}}), "Split): "},
      {moving("Pad", {2, 9}, {}, {{0, 1}}), "Pad): "},
      {moving("GatherND", {2, 3}, {}, {{0, 5}}), "GatherND): takes element 5 of 3"},
      {moving("GatherND", {2}, {}, {{0, 1}}),
       "GatherND): has indices of 2 for an input of 2 with 0 dimensions of batch"},
      {one_node("ScatterND", {{2, 3}, {2, 3}, {2}}), "ScatterND): has indices of 2x3 for an input of 2x3"},
      {one_node("ScatterND", {{2, 3}, {4, 1}, {4, 2}}), "ScatterND): has updates of 4x2, expected 4x3"},
      {one_node("ScatterElements", {{2, 3}, {2, 3}, {2, 2}}),
       "ScatterElements): has indices of 2x3 and updates of 2x2 for an input of 2x3"},
      {moving("LRN", {2, 6}, {}), "LRN): size is 0, expected at least 1"}};
  for (const Wrong& each : cases) expect_error(each.model, "node 'y' (" + each.message);
}

/// y = If(condition) of Relu(x), else of Tanh(x); each branch has `results` of them.
OnnxModel choice(int64_t condition, int results = 1) {
  OnnxModel model(13);
  model.input("x", {2, 3}).integers("condition", {condition});
  onnx::NodeProto& choose = model.node("If", {"condition"}, {"y"});
  for (const bool holds : {true, false}) {
    onnx::GraphProto& branch = add_graph(choose, holds ? "then_branch" : "else_branch");
    onnx::NodeProto& inner = *branch.add_node();
    inner.set_op_type(holds ? "Relu" : "Tanh");
    inner.add_input("x");
    inner.add_output("inner");
    for (int i = 0; i < results; ++i) branch.add_output()->set_name("inner");
  }
  model.output("y");
  return model;
}

TEST(OnnxNodes, AnIfWhoseConditionIsKnownIsOneOfItsBranches) {
  EXPECT_THAT(steps_of(choice(2)), ElementsAre(testing::HasSubstr("mode=relu")));
  EXPECT_THAT(steps_of(choice(0)), ElementsAre(testing::HasSubstr("mode=tanh")));
  expect_error(choice(1, 2), "node 'y' (If): has no then_branch of 1 results");
  expect_error(choice(0, 0), "node 'y' (If): has no else_branch of 1 results");
}

// Types of ONNX 1.14.
TEST(OnnxNodes, MoveAndConvertFp8) {
  constexpr int64_t float8_e4m3fn = 17;
  constexpr int32_t float8_e5m2 = 19;
  EXPECT_THAT(steps_of(one_node("Cast", {{3, 4}}, {{"to", float8_e4m3fn}}, 13)),
              ElementsAre(line("tensor_transform x=f32:3x4 y=f8e4m3:3x4")));
  EXPECT_THAT(steps_of(one_node("Cast", {{3, 4}}, {{"to", floating}}, 13, float8_e5m2)),
              ElementsAre(line("tensor_transform x=f8e5m2:3x4 y=f32:3x4")));
  EXPECT_THAT(steps_of(one_node("Relu", {{3, 4}}), {.dtype = DType::f8e4m3}),
              ElementsAre(line("activation_forward x=f8e4m3:3x4 y=f8e4m3:3x4 mode=relu")));
}

}  // namespace
}  // namespace kiln::test::onnx_nodes_test
