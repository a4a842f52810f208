// Activations, and arithmetic with NumPy's broadcasting.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

struct Activation {
  const char *type, *mode;
  Attributes attributes;
  int64_t opset = 14;
};

TEST(OnnxActivation, IsOneOfKilns) {
  for (const Activation& activation : std::vector<Activation>{{"Relu", "relu", {}},
                                                              {"LeakyRelu", "leaky_relu", {{"alpha", 0.2F}}},
                                                              {"Sigmoid", "sigmoid", {}},
                                                              {"Tanh", "tanh", {}},
                                                              {"Elu", "elu", {{"alpha", 0.5F}}},
                                                              {"Selu", "selu", {}},
                                                              {"Selu", "selu", {{"alpha", 1.6732F}}},
                                                              {"Softplus", "softplus", {}},
                                                              {"HardSwish", "hard_swish", {}},
                                                              {"HardSigmoid", "hard_sigmoid", {{"beta", 0.1F}}},
                                                              {"Gelu", "gelu", {}, 20},
                                                              {"Gelu", "gelu_tanh", {{"approximate", "tanh"}}, 20},
                                                              {"Mish", "mish", {}, 18}}) {
    OnnxModel model = one_node(activation.type, {{2, 3, 5}}, activation.attributes, activation.opset);
    model.node("Softmax", {"y"}, {"z"});  // which needs extents: of new activations too
    EXPECT_THAT(lines_of(model.read()),
                ElementsAre(line(std::string("activation_forward x=f32:2x3x5:ncw mode=") + activation.mode),
                            line("softmax_forward x=f32:2x3x5:ncw axis=2")))
        << activation.type;
  }
}

TEST(OnnxActivation, HasTheStorageOfTheOptionsAndADynamicBatch) {
  EXPECT_THAT(lines_of(one_node("Tanh", {{5, 3, 4, 7}})
                           .read({.dtype = DType::f16, .order = MemoryOrder::nhwc, .dynamic_batch = true})),
              ElementsAre(line("activation_forward x=f16:5x3x4x7:nhwc mode=tanh n=?")));
  EXPECT_THAT(lines_of(one_node("Tanh", {{}}).read()), ElementsAre(line("activation_forward x=f32:1:n mode=tanh")));
}

TEST(OnnxActivation, IsNotCoveredWithNumbersOfItsOwn) {
  EXPECT_THAT(uncovered_of(one_node("Selu", {{2, 3}}, {{"gamma", 1.0F}}).read()),
              ElementsAre("Selu *1: its alpha and gamma are not those of SELU"));
  expect_error(one_node("Gelu", {{2, 3}}, {{"approximate", "erf"}}, 20),
               "node 'y' (Gelu): approximate is 'erf', expected none or tanh");
}

TEST(OnnxActivation, MayBeSeveralRequests) {
  const std::string celu = line("activation_forward x=f32:2x3:nc mode=elu");
  EXPECT_THAT(lines_of(one_node("Celu", {{2, 3}}).read()), ElementsAre(celu));
  EXPECT_THAT(lines_of(one_node("Celu", {{2, 3}}, {{"alpha", 2.0F}}).read()),
              ElementsAre(line("activation_forward x=f32:2x3:nc mode=identity alpha=any"),
                          line("activation_forward x=f32:2x3:nc mode=elu alpha=any")));
  EXPECT_THAT(lines_of(one_node("ThresholdedRelu", {{2, 3}}, {{"alpha", 0.5F}}).read()),
              ElementsAre(line("tensor_op a=f32:2x3:nc b=f32:1x1:nc y=u8:2x3:nc mode=gt"),
                          line("tensor_op a=u8:2x3:nc b=f32:2x3:nc c=f32:1x1:nc y=f32:2x3:nc mode=select")));
  EXPECT_THAT(lines_of(one_node("Softsign", {{2, 3}}).read()),
              ElementsAre(line("tensor_op a=f32:2x3:nc mode=abs"), line("tensor_op a=f32:2x3:nc b=f32:1x1:nc mode=add"),
                          line("tensor_op a=f32:2x3:nc b=f32:2x3:nc mode=div")));
}

TEST(OnnxActivation, WithSlopesByTensorMultipliesByThem) {
  EXPECT_THAT(lines_of(one_node("PRelu", {{2, 3, 5, 7}, {3, 1, 1}}).read()),
              ElementsAre(line("tensor_op a=f32:2x3x5x7:nchw b=f32:1x1x1x1:nchw y=u8:2x3x5x7:nchw mode=lt"),
                          line("tensor_op a=f32:2x3x5x7:nchw b=f32:1x3x1x1:nchw mode=mul"),
                          line("tensor_op a=u8:2x3x5x7:nchw b=f32:2x3x5x7:nchw c=f32:2x3x5x7:nchw y=f32:2x3x5x7:nchw "
                               "mode=select")));
  OnnxModel constant;
  constant.input("x", {2, 3}).scalar("slope", 0.25F);
  constant.node("PRelu", {"x", "slope"}, {"y"});
  EXPECT_THAT(lines_of(constant.read()), ElementsAre(line("activation_forward x=f32:2x3:nc mode=leaky_relu")));
  expect_error(one_node("PRelu", {{3}, {2, 3}}), "node 'y' (PRelu): its slope has more dimensions than its input");
}

TEST(OnnxArithmetic, DividesASumByItsInputsAndOneByAnInput) {
  EXPECT_THAT(lines_of(one_node("Mean", {{2, 3}, {2, 3}, {3}}).read()),
              ElementsAre(line("tensor_op a=f32:2x3:nc b=f32:2x3:nc mode=add"),
                          line("tensor_op a=f32:2x3:nc b=f32:1x3:nc mode=add alpha=any")));
  EXPECT_THAT(one_node("Mean", {{2, 3}}).read().layers, IsEmpty());
  EXPECT_THAT(lines_of(one_node("Reciprocal", {{2, 3}}).read()),
              ElementsAre(line("tensor_op a=f32:1x1:nc b=f32:2x3:nc mode=div")));
}

TEST(OnnxActivation, ClipsBetweenConstants) {
  EXPECT_THAT(lines_of(one_node("Clip", {{2, 3}}, {{"min", 0.0F}, {"max", 6.0F}}, 10).read()),
              ElementsAre(line("activation_forward x=f32:2x3:nc mode=clip")));
  EXPECT_THAT(lines_of(one_node("Clip", {{2, 3}}, {{"min", 0.0F}}, 10).read()),
              ElementsAre(line("activation_forward x=f32:2x3:nc mode=relu")));
  OnnxModel constant(13);
  constant.input("x", {2, 3}).scalar("high", 6);
  constant.node("Clip", {"x", "", "high"}, {"y"});
  EXPECT_THAT(lines_of(constant.read()), ElementsAre(line("activation_forward x=f32:2x3:nc mode=clip")));
  EXPECT_THAT(uncovered_of(one_node("Clip", {{2, 3}, {}}).read()), ElementsAre("Clip *1: its bounds are computed"));
}

TEST(OnnxArithmetic, IsATensorOp) {
  const std::vector<std::pair<std::string, std::string>> two = {{"Add", "add"}, {"Sub", "sub"}, {"Mul", "mul"},
                                                                {"Div", "div"}, {"Pow", "pow"}, {"Min", "min"},
                                                                {"Max", "max"}, {"Sum", "add"}};
  for (const auto& [type, mode] : two) {
    EXPECT_THAT(lines_of(one_node(type, {{2, 3}, {2, 3}}).read()),
                ElementsAre(line("tensor_op a=f32:2x3:nc b=f32:2x3:nc mode=" + mode)))
        << type;
  }
  const std::vector<std::pair<std::string, std::string>> one = {
      {"Sqrt", "sqrt"}, {"Exp", "exp"}, {"Log", "log"}, {"Abs", "abs"}, {"Neg", "neg"}};
  for (const auto& [type, mode] : one) {
    EXPECT_THAT(lines_of(one_node(type, {{2, 3}}).read()), ElementsAre(line("tensor_op a=f32:2x3:nc mode=" + mode)))
        << type;
  }
}

TEST(OnnxArithmetic, GivesBooleansAsBytes) {
  const std::vector<std::pair<std::string, std::string>> comparisons = {
      {"Equal", "eq"}, {"Less", "lt"}, {"LessOrEqual", "le"}, {"Greater", "gt"}, {"GreaterOrEqual", "ge"}};
  for (const auto& [type, mode] : comparisons) {
    EXPECT_THAT(lines_of(one_node(type, {{2, 3}, {3}}).read()),
                ElementsAre(line("tensor_op a=f32:2x3:nc b=f32:1x3:nc y=u8:2x3:nc mode=" + mode)))
        << type;
  }
  for (const auto& [type, mode] :
       std::vector<std::pair<std::string, std::string>>{{"And", "min"}, {"Or", "max"}, {"Xor", "ne"}}) {
    EXPECT_THAT(lines_of(one_node(type, {{2, 3}, {2, 3}}, {}, 14, onnx::TensorProto::BOOL).read()),
                ElementsAre(line("tensor_op a=u8:2x3:nc b=u8:2x3:nc mode=" + mode)))
        << type;
  }
  EXPECT_THAT(lines_of(one_node("Not", {{7}}, {}, 14, onnx::TensorProto::BOOL).read()),
              ElementsAre(line("tensor_op a=u8:7:n mode=not")));
}

TEST(OnnxArithmetic, RepeatsDimensionsFromTheEnd) {
  EXPECT_THAT(lines_of(one_node("Mul", {{2, 3, 5, 7}, {3, 1, 1}}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("tensor_op a=f32:2x3x5x7:nhwc b=f32:1x3x1x1:nhwc mode=mul")));
  EXPECT_THAT(lines_of(one_node("Sub", {{4, 1}, {2, 1, 5}}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("tensor_op a=f32:1x4x1:nwc b=f32:2x1x5:nwc y=f32:2x4x5:nwc mode=sub")));
  EXPECT_THAT(lines_of(one_node("Add", {{2, 3}, {}}).read()),
              ElementsAre(line("tensor_op a=f32:2x3:nc b=f32:1x1:nc mode=add")));
  // A matrix is stored in logical order, whatever the order of images.
  EXPECT_THAT(lines_of(one_node("Add", {{2, 3, 5, 7}, {5, 7}}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("tensor_op a=f32:2x3x5x7:nhwc b=f32:1x1x5x7:nchw mode=add")));
}

TEST(OnnxArithmetic, TakesConstants) {
  OnnxModel model;
  model.input("x", {2, 3, 5, 7}).weights("scale", {1, 3, 1, 1});
  model.node("Mul", {"x", "scale"}, {"y"});
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line("tensor_op a=f32:2x3x5x7:nchw b=f32:1x3x1x1:nchw mode=mul")));
  // With n=? all operands have the batch: one for all of them is repeated by its stride.
  EXPECT_THAT(lines_of(model.read({.batch = 4, .dynamic_batch = true})),
              ElementsAre(line("tensor_op a=f32:4x3x5x7:nchw b=f32:4x3x1x1:0,1,1,1 mode=mul n=?")));
}

TEST(OnnxArithmetic, KeepsADynamicBatchInFront) {
  EXPECT_THAT(uncovered_of(one_node("Add", {{4, 3}, {4, 4, 3}}).read({.batch = 4, .dynamic_batch = true})),
              ElementsAre("Add *1: it puts dimensions before the batch, which is dynamic"));
  EXPECT_THAT(lines_of(one_node("Add", {{4, 3}, {}}).read({.batch = 4, .dynamic_batch = true})),
              ElementsAre(line("tensor_op a=f32:4x3:nc b=f32:4x1:0,1 mode=add n=?")));
}

TEST(OnnxArithmetic, TakesAnyNumberOfInputsOneByOne) {
  EXPECT_THAT(lines_of(one_node("Sum", {{3}, {2, 3}, {2, 1}}).read()),
              ElementsAre(line("tensor_op a=f32:1x3:nc b=f32:2x3:nc mode=add"),
                          line("tensor_op a=f32:2x3:nc b=f32:2x1:nc mode=add")));
  const ModelListing equal = one_node("Max", {{5}, {5}, {5}}).read();
  EXPECT_THAT(lines_of(equal), ElementsAre(line("tensor_op a=f32:5:n b=f32:5:n mode=max", 2)));
  EXPECT_THAT(equal.layers.front().nodes, ElementsAre("y"));
  const ModelListing alone = one_node("Min", {{5}}).read();
  EXPECT_THAT(alone.layers, IsEmpty());
  EXPECT_THAT(alone.uncovered, IsEmpty());
}

TEST(OnnxArithmetic, SelectsByBooleans) {
  OnnxModel model;
  model.input("which", {2, 1}, onnx::TensorProto::BOOL).input("x", {2, 3}).scalar("other", -1);
  model.node("Where", {"which", "x", "other"}, {"y"});
  EXPECT_THAT(lines_of(model.read({.dtype = DType::bf16})),
              ElementsAre(line("tensor_op a=u8:2x1:nc b=bf16:2x3:nc c=bf16:1x1:nc y=bf16:2x3:nc mode=select")));
}

TEST(OnnxArithmetic, IsNotCoveredForNumbersThatF32DoesNotHold) {
  const int32_t integer = onnx::TensorProto::INT64;
  EXPECT_THAT(uncovered_of(one_node("Add", {{2}, {2}}, {}, 14, integer).read()),
              ElementsAre("Add *1: its elements are not floating-point numbers"));
  EXPECT_THAT(uncovered_of(one_node("Equal", {{2}, {2}}, {}, 14, integer).read()),
              ElementsAre("Equal *1: its elements are neither floating-point numbers nor of 8 bits"));
  EXPECT_THAT(lines_of(one_node("Max", {{2}, {2}}, {}, 14, onnx::TensorProto::INT8).read()),
              ElementsAre(line("tensor_op a=i8:2:n b=i8:2:n mode=max")));
}

TEST(OnnxArithmetic, IsNotCoveredWhereExtentsAreOpenOrTooMany) {
  OnnxModel open;
  open.input("x", {1, "boxes"});
  open.node("Relu", {"x"}, {"y"});
  EXPECT_THAT(uncovered_of(open.read()), ElementsAre("Relu *1: its extents are not all known"));
  EXPECT_THAT(uncovered_of(one_node("Add", {{1, 1, 1, 1, 1, 2}, {2}}).read()),
              ElementsAre("Add *1: its input has 6 dimensions, and up to 5 are covered"));
  EXPECT_THAT(uncovered_of(one_node("Abs", {{2, 0}}).read()), ElementsAre("Abs *1: it has an input without elements"));
}

TEST(OnnxArithmetic, SaysWhatDoesNotFit) {
  expect_error(one_node("Add", {{2, 3}, {2, 4}}), "node 'y' (Add): an operand of 2x4 does not fit 2x3");
  expect_error(one_node("Sqrt", {{2, 3}, {2, 3}}), "node 'y' (Sqrt): has 2 inputs and 1 outputs, expected 1 to 1");
  expect_error(one_node("Relu", {{2, 3}, {2, 3}}), "node 'y' (Relu): has 2 inputs");
}

}  // namespace
}  // namespace kiln::test
