#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

const std::string conv = "conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x3x3:nchw pad=1,1";

/// A model that starts with `c` = Conv(x), of the same shape as x. Values besides: `r` of that shape, `ch` and `ch1`
/// with one number per channel, BatchNormalization's `s`.
class Chain : public OnnxModel {
 public:
  explicit Chain(int64_t opset = 13) : OnnxModel(opset) {
    input("x", {1, 4, 5, 5}).input("r", {1, 4, 5, 5}).weights("w", {4, 4, 3, 3}).weights("s", {4}).weights("b", {4});
    weights("ch", {4, 1, 1}).weights("ch1", {1, 4, 1, 1}).scalar("zero", 0).scalar("six", 6).scalar("one", 1);
    add_conv("x", "c");
  }
  void add_conv(const std::string& from, const std::string& to, bool bias = false) {
    node("Conv", bias ? std::vector<std::string>{from, "w", "b"} : std::vector<std::string>{from, "w"}, {to},
         {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
  }
  onnx::NodeProto& batch_norm(const std::string& from, const std::string& to) {
    return node("BatchNormalization", {from, "s", "s", "s", "s"}, {to});
  }
};

const std::string batch_norm = "x=f32:1x4x5x5:nchw w=f32:1x4x1x1:nchw b=f32:1x4x1x1:nchw axes=0,2,3";

/// An Add that is a layer of its own.
const std::string add = line("tensor_op a=f32:1x4x5x5:nchw b=f32:1x4x5x5:nchw mode=add");

/// The convolutions alone; what they did not take has lines of its own.
std::vector<std::string> convolutions_of(const ModelListing& listing) {
  std::vector<std::string> lines = lines_of(listing);
  std::erase_if(lines, [](const std::string& entry) { return !entry.starts_with("conv_forward"); });
  return lines;
}

TEST(OnnxFold, TurnsBatchNormalizationIntoABias) {
  for (const int64_t opset : {7, 9, 13, 15}) {
    Chain chain(opset);
    chain.batch_norm("c", "y");
    chain.output("y");
    EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=bias"))) << opset;
    EXPECT_THAT(chain.read().uncovered, IsEmpty());
  }
}

TEST(OnnxFold, MergesBatchNormalizationWithTheBiasThatIsThere) {
  Chain chain;
  chain.add_conv("c", "d", true);
  chain.batch_norm("d", "y");
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv), line(conv + " epilogue=bias")));
}

TEST(OnnxFold, LeavesBatchNormalizationThatTrainsOrIsNotConstant) {
  Chain training(14), computed;
  onnx::AttributeProto& mode = *training.batch_norm("c", "y").add_attribute();
  mode.set_name("training_mode");
  mode.set_type(onnx::AttributeProto::INT);
  mode.set_i(1);
  training.output("y");
  computed.input("v", {4});
  computed.node("BatchNormalization", {"c", "s", "s", "s", "v"}, {"y"});
  computed.output("y");
  EXPECT_THAT(lines_of(training.read()), ElementsAre(line(conv), line("norm_forward " + batch_norm)));
  EXPECT_THAT(lines_of(computed.read()), ElementsAre(line(conv), line("norm_inference " + batch_norm)));
}

TEST(OnnxFold, LeavesBatchNormalizationBehindAFilterThatIsNotConstant) {
  OnnxModel model;
  model.input("x", {1, 4, 5, 5}).input("filter", {4, 4, 3, 3}).weights("s", {4});
  model.node("Conv", {"x", "filter"}, {"c"});
  model.node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"y"});
  model.output("y");
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("conv_forward x=f32:1x4x5x5:nchw w=f32:4x4x3x3:nchw"),
                          line("norm_inference x=f32:1x4x3x3 w=f32:1x4x1x1 b=f32:1x4x1x1 axes=0,2,3")));
}

TEST(OnnxFold, LetsABatchNormalizationThatItLeavesTakeInWhatFollows) {
  Chain chain;
  chain.node("Sigmoid", {"c"}, {"other"});
  chain.batch_norm("c", "n");
  chain.node("Add", {"n", "r"}, {"a"});
  chain.node("Relu", {"a"}, {"y"});
  chain.output("y").output("other");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv), line("activation_forward x=f32:1x4x5x5 mode=sigmoid"),
                                                  line("norm_inference " + batch_norm + " epilogue=add+relu")));
}

TEST(OnnxFold, GivesAnAddToAConvolutionBeforeANormalisation) {
  Chain chain;
  chain.node("InstanceNormalization", {"r", "s", "b"}, {"n"});
  chain.node("Add", {"c", "n"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()),
              ElementsAre(line(conv + " epilogue=add"),
                          line("norm_forward x=f32:1x4x5x5 w=f32:1x4x1x1 b=f32:1x4x1x1 axes=2,3")));
}

TEST(OnnxFold, FoldsNothingIntoALayerThatIsNotCovered) {
  OnnxModel model(9);
  model.input("x", {2, 3, 5, 7}).weights("p", {3});
  model.node("BatchNormalization", {"x", "p", "p", "p", "p"}, {"n", "m", "v", "sm", "sv"});
  model.node("Relu", {"n"}, {"y"});
  model.output("y").output("sv");
  EXPECT_THAT(lines_of(model.read()), ElementsAre(line("activation_forward x=f32:2x3x5x7 mode=relu")));
  EXPECT_THAT(model.read().uncovered, testing::SizeIs(1));
}

TEST(OnnxFold, FoldsBehindConvolutionsOfAnyNumberOfDimensions) {
  OnnxModel model;
  model.input("x", {2, 4, 9}).input("r", {2, 6, 7}).weights("w", {6, 4, 3}).weights("c", {6, 1});
  model.node("Conv", {"x", "w"}, {"v"});
  model.node("Add", {"v", "c"}, {"a"});
  model.node("Add", {"a", "r"}, {"b"});
  model.node("Relu", {"b"}, {"y"});
  EXPECT_THAT(lines_of(model.read()),
              ElementsAre(line("conv_forward x=f32:2x4x9:ncw w=f32:6x4x3:ncw epilogue=bias+add+relu")));
}

TEST(OnnxFold, TurnsAConstantPerChannelIntoABias) {
  for (const auto& [constant, swapped] : {std::pair{"ch", false}, {"ch1", false}, {"ch", true}}) {
    Chain chain;
    const std::string name = constant;
    chain.node("Add", swapped ? std::vector<std::string>{name, "c"} : std::vector<std::string>{"c", name}, {"y"});
    chain.output("y");
    EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=bias")));
  }
}

TEST(OnnxFold, AddsATensorOfTheSameShape) {
  Chain chain;
  chain.node("Add", {"r", "c"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=add")));
}

TEST(OnnxFold, LeavesAnAddThatBroadcasts) {
  for (const std::vector<Extent>& extents : {std::vector<Extent>{1, 4, 1, 5}, {1}, {1, 1, 5, 5}, {2, 4, 5, 5}}) {
    Chain chain;
    chain.input("other", extents);
    chain.node("Add", {"c", "other"}, {"y"});
    chain.output("y");
    EXPECT_THAT(convolutions_of(chain.read()), ElementsAre(line(conv)));
    EXPECT_THAT(lines_of(chain.read()), Contains(StartsWith("tensor_op ")));
  }
}

TEST(OnnxFold, FoldsAWholeResidualBlock) {
  Chain chain;
  chain.batch_norm("c", "n");
  chain.node("Add", {"n", "r"}, {"a"});
  chain.node("Relu", {"a"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=bias+add+relu")));
  EXPECT_THAT(chain.read().uncovered, IsEmpty());
}

TEST(OnnxFold, GivesAnAddOfTwoConvolutionsToTheLaterOne) {
  Chain chain;
  chain.batch_norm("c", "left");
  chain.add_conv("r", "right");
  chain.node("Add", {"left", "right"}, {"a"});
  chain.node("Relu", {"a"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=bias"), line(conv + " epilogue=add+relu")));
}

TEST(OnnxFold, AddsBeforeTheActivationOnly) {
  Chain chain;
  chain.node("Relu", {"c"}, {"n"});
  chain.node("Add", {"n", "r"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=relu"), add));
}

TEST(OnnxFold, NormalisesBeforeAnythingElseOnly) {
  Chain chain;
  chain.node("Relu", {"c"}, {"n"});
  chain.batch_norm("n", "y");
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=relu"), line("norm_inference " + batch_norm)));
}

TEST(OnnxFold, FoldsNoSecondAddOrActivation) {
  Chain chain;
  chain.node("Add", {"c", "r"}, {"a"});
  chain.node("Add", {"a", "r"}, {"d"});
  chain.output("d");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv + " epilogue=add"), add));
}

TEST(OnnxFold, ClipsByAttributesBeforeOpset11AndByInputsSince) {
  Chain attributes(10);
  attributes.node("Clip", {"c"}, {"y"}, {{"min", 0.0F}, {"max", 6.0F}});
  attributes.output("y");
  EXPECT_THAT(lines_of(attributes.read()), ElementsAre(line(conv + " epilogue=clip")));
  Chain inputs(11);
  inputs.node("Clip", {"c", "zero", "six"}, {"y"});
  inputs.output("y");
  EXPECT_THAT(lines_of(inputs.read()), ElementsAre(line(conv + " epilogue=clip")));
}

TEST(OnnxFold, CallsAClipAtZeroFromBelowRelu) {
  Chain attributes(10), inputs, empty;
  attributes.node("Clip", {"c"}, {"y"}, {{"min", 0.0F}});
  inputs.node("Clip", {"c", "zero"}, {"y"});
  empty.node("Clip", {"c", "zero", ""}, {"y"});
  for (OnnxModel* model :
       {static_cast<OnnxModel*>(&attributes), static_cast<OnnxModel*>(&inputs), static_cast<OnnxModel*>(&empty)}) {
    model->output("y");
    EXPECT_THAT(lines_of(model->read()), ElementsAre(line(conv + " epilogue=relu")));
  }
  Chain at_one;
  at_one.node("Clip", {"c", "one"}, {"y"});
  at_one.output("y");
  EXPECT_THAT(lines_of(at_one.read()), ElementsAre(line(conv + " epilogue=clip")));
}

TEST(OnnxFold, LeavesAClipWithBoundsThatAreNotConstant) {
  Chain chain;
  chain.input("bound", {});
  chain.node("Clip", {"c", "zero", "bound"}, {"y"});
  chain.output("y");
  EXPECT_THAT(lines_of(chain.read()), ElementsAre(line(conv)));
}

TEST(OnnxFold, LeavesWhatFollowsAResultThatIsUsedTwice) {
  Chain twice, returned, squared, body;
  twice.node("Relu", {"c"}, {"y"});
  twice.node("Sigmoid", {"c"}, {"z"});
  twice.output("y").output("z");
  returned.node("Relu", {"c"}, {"y"});
  returned.output("y").output("c");
  squared.node("Add", {"c", "c"}, {"y"});
  squared.output("y");
  body.node("Relu", {"c"}, {"y"});
  body.input("choice", {}, onnx::TensorProto::BOOL);
  onnx::NodeProto& choose = body.node("If", {"choice"}, {"z"});
  for (const char* name : {"then_branch", "else_branch"}) {
    onnx::AttributeProto& branch = *choose.add_attribute();
    branch.set_name(name);
    branch.set_type(onnx::AttributeProto::GRAPH);
    onnx::NodeProto& inner = *branch.mutable_g()->add_node();
    inner.set_op_type("Relu");
    inner.add_input("c");
    inner.add_output("inner");
    branch.mutable_g()->add_output()->set_name("inner");
  }
  body.output("y");
  for (const OnnxModel* model : {&twice, &returned, &squared, &body}) {
    EXPECT_THAT(convolutions_of(model->read()), ElementsAre(line(conv)));
  }
}

// Each by itself: `Relu` is a stage, and nothing comes behind an activation.
TEST(OnnxFold, GivesNormalisationsAnyActivation) {
  const std::string norm = "norm_inference " + batch_norm;
  const auto with = [](const std::function<void(Chain&)>& nodes) {
    Chain chain;
    chain.node("Sigmoid", {"c"}, {"v"});  // between them, so that the convolution does not take it
    chain.batch_norm("v", "n");
    nodes(chain);
    chain.output("y");
    const std::vector<std::string> lines = lines_of(chain.read());
    return std::vector(lines.begin() + 2, lines.end());
  };
  const auto one = [](const char* type) { return [type](Chain& chain) { chain.node(type, {"n"}, {"y"}); }; };
  EXPECT_THAT(with(one("LeakyRelu")), ElementsAre(line(norm + " activation=leaky_relu")));
  EXPECT_THAT(with(one("HardSwish")), ElementsAre(line(norm + " activation=hard_swish")));
  EXPECT_THAT(with(one("Relu")), ElementsAre(line(norm + " epilogue=relu")));
  EXPECT_THAT(with([](Chain& chain) {
                chain.node("Clip", {"n", "zero", "six"}, {"y"});
              }),
              ElementsAre(line(norm + " activation=clip")));
  EXPECT_THAT(with([](Chain& chain) {
                chain.node("Add", {"n", "r"}, {"a"});
                chain.node("Elu", {"a"}, {"y"});
              }),
              ElementsAre(line(norm + " epilogue=add activation=elu")));
  EXPECT_THAT(with([](Chain& chain) {
                chain.node("Tanh", {"n"}, {"t"});
                chain.node("Relu", {"t"}, {"y"});
              }),
              ElementsAre(line(norm + " activation=tanh"), line("activation_forward x=f32:1x4x5x5:nchw mode=relu")));
  EXPECT_THAT(with([](Chain& chain) {
                chain.node("Relu", {"n"}, {"t"});
                chain.node("Tanh", {"t"}, {"y"});
              }),
              ElementsAre(line(norm + " epilogue=relu"), line("activation_forward x=f32:1x4x5x5:nchw mode=tanh")));
}

TEST(OnnxFold, FoldsNothingWhenItIsOff) {
  Chain chain;
  chain.add_conv("c", "d", true);
  chain.batch_norm("d", "n");
  chain.node("Add", {"n", "r"}, {"a"});
  chain.node("Relu", {"a"}, {"p"});
  chain.node("Clip", {"p", "zero", "six"}, {"y"});
  chain.output("y");
  const ModelListing listing = chain.read({.fuse = false});
  EXPECT_THAT(lines_of(listing),
              ElementsAre(line(conv), line(conv + " epilogue=bias"), line("norm_inference " + batch_norm), add,
                          line("activation_forward x=f32:1x4x5x5:nchw mode=relu"),
                          line("activation_forward x=f32:1x4x5x5:nchw mode=clip")));
  EXPECT_THAT(listing.uncovered, IsEmpty());
}

/// A model that starts with `c` = MatMul(x, w), 5 x 3. Values besides: `r` of that shape, `row` with a constant for
/// each column and `column` with one for each row, BatchNormalization's `s`.
class Product : public OnnxModel {
 public:
  Product() {
    input("x", {5, 7}).input("r", {5, 3}).weights("w", {7, 3}).weights("row", {3}).weights("row1", {1, 3});
    weights("column", {5, 1}).weights("s", {3}).scalar("zero", 0).scalar("six", 6);
    node("MatMul", {"x", "w"}, {"c"});
  }
};

const std::string gemm = "gemm a=f32:5x7 b=f32:7x3";

TEST(OnnxFoldIntoProducts, TakesInWhatAConvolutionDoes) {
  Product product;
  product.node("Add", {"row", "c"}, {"b"});
  product.node("Add", {"b", "r"}, {"a"});
  product.node("Relu", {"a"}, {"p"});
  product.node("Clip", {"p", "zero", "six"}, {"y"});
  product.output("y");
  EXPECT_THAT(lines_of(product.read()), ElementsAre(line(gemm + " epilogue=bias+add+relu+clip")));
  EXPECT_THAT(
      lines_of(product.read({.fuse = false})),
      ElementsAre(line(gemm), line("tensor_op a=f32:1x3 b=f32:5x3 y=f32:5x3 mode=add"),
                  line("tensor_op a=f32:5x3 b=f32:5x3 mode=add"), line("activation_forward x=f32:5x3 mode=relu"),
                  line("activation_forward x=f32:5x3 mode=clip")));
}

TEST(OnnxFoldIntoProducts, HasChannelsAlongItsRows) {
  Product row, column;
  row.node("Add", {"c", "row1"}, {"y"});
  EXPECT_THAT(lines_of(row.read()), ElementsAre(line(gemm + " epilogue=bias")));
  column.node("Add", {"c", "column"}, {"y"});
  EXPECT_THAT(lines_of(column.read()), ElementsAre(line(gemm), line("tensor_op a=f32:5x3 b=f32:5x1 mode=add")));
}

TEST(OnnxFoldIntoProducts, TurnsBatchNormalizationOfColumnsIntoABias) {
  Product product;
  product.node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"n"});
  product.node("Relu", {"n"}, {"y"});
  EXPECT_THAT(lines_of(product.read()), ElementsAre(line(gemm + " epilogue=bias+relu")));
  OnnxModel images;  // the channels of 2x3x5 are not its columns
  images.input("x", {2, 3, 7}).weights("w", {7, 5}).weights("s", {3});
  images.node("MatMul", {"x", "w"}, {"c"});
  images.node("BatchNormalization", {"c", "s", "s", "s", "s"}, {"y"});
  EXPECT_THAT(lines_of(images.read()),
              ElementsAre(line("gemm a=f32:6x7 b=f32:7x5"),
                          line("norm_inference x=f32:2x3x5 w=f32:1x3x1 b=f32:1x3x1 axes=0,2")));
}

TEST(OnnxFoldIntoProducts, AddsToTheThirdInputOfAGemm) {
  const auto with_third = [](const std::string& third) {
    Product product;
    product.input("input", {3});
    product.node("Gemm", {"x", "w", third}, {"g"});
    product.node("Add", {"g", "row"}, {"b"});
    product.node("Relu", {"b"}, {"y"});
    product.output("c").output("y");
    return lines_of(product.read());
  };
  EXPECT_THAT(with_third("s"), ElementsAre(line(gemm), line(gemm + " epilogue=bias+relu")));
  EXPECT_THAT(with_third("input"),
              ElementsAre(line(gemm), line(gemm + " epilogue=bias"), line("tensor_op a=f32:5x3 b=f32:1x3 mode=add"),
                          line("activation_forward x=f32:5x3 mode=relu")));
}

TEST(OnnxFoldIntoProducts, KeepsTheOrderOfAGemmsOwnStages) {
  Product product;
  product.node("Gemm", {"x", "w", "r"}, {"g"});
  product.node("Add", {"g", "row"}, {"b"});
  product.output("c").output("b");
  EXPECT_THAT(lines_of(product.read()),
              ElementsAre(line(gemm), line(gemm + " epilogue=add"), line("tensor_op a=f32:5x3 b=f32:1x3 mode=add")));
}

TEST(OnnxFoldIntoProducts, TakesBatchesOfMatricesAndVectors) {
  OnnxModel rows;
  rows.input("x", {2, 5, 7}).input("r", {2, 5, 3}).weights("w", {7, 3}).weights("row", {3});
  rows.node("MatMul", {"x", "w"}, {"c"});
  rows.node("Add", {"c", "row"}, {"b"});
  rows.node("Add", {"r", "b"}, {"y"});
  EXPECT_THAT(lines_of(rows.read()), ElementsAre(line("gemm a=f32:10x7 b=f32:7x3 epilogue=bias+add")));
  EXPECT_THAT(lines_of(rows.read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("gemm a=f32:2x5x7:nwc b=f32:1x7x3 c=f32:2x5x3:nwc epilogue=bias+add")));
  OnnxModel vector;  // its result has the rows of x, and a product with a vector has one column
  vector.input("x", {5, 7}).input("r", {5}).weights("w", {7}).weights("five", {5});
  vector.node("MatMul", {"x", "w"}, {"c"});
  vector.node("Add", {"c", "r"}, {"a"});
  vector.node("Add", {"a", "five"}, {"y"});
  EXPECT_THAT(lines_of(vector.read()),
              ElementsAre(line("gemm a=f32:5x7 b=f32:7x1 epilogue=add"), line("tensor_op a=f32:5 b=f32:5 mode=add")));
}

TEST(OnnxFoldIntoProducts, KeepsADynamicBatch) {
  Product product;
  product.node("Add", {"c", "row"}, {"b"});
  product.node("Relu", {"b"}, {"y"});
  EXPECT_THAT(lines_of(product.read({.batch = 4, .dynamic_batch = true})),
              ElementsAre(line("gemm a=f32:4x7 b=f32:7x3 epilogue=bias+relu n=?")));
}

TEST(OnnxFoldIntoProducts, IsTheLaterLayersWhoseResultsAreAdded) {
  Product product;
  product.node("Gemm", {"x", "w", "s"}, {"g"});
  product.node("Add", {"c", "g"}, {"y"});
  EXPECT_THAT(lines_of(product.read()), ElementsAre(line(gemm), line(gemm + " epilogue=bias+add")));
}

}  // namespace
}  // namespace kiln::test
