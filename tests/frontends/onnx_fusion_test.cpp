// Nodes behind a convolution or a product become parts of its filter, stages of its epilogue, or calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "listing.h"

namespace kiln::test::onnx_fusion_test {
namespace {

using testing::ElementsAre;

const std::string conv = "conv_forward x=f32:1x4x5x5 w=f32:4x4x3x3 pad=1,1 constant_weights";

/// A model that starts with `c` = Conv(x), of the same extents as x. Values besides: `r` of those extents, `channel`
/// with a constant for each channel, and `p` for parameters of BatchNormalization.
class Chain : public OnnxModel {
 public:
  explicit Chain(int64_t opset = 13) : OnnxModel(opset) {
    input("x", {1, 4, 5, 5}).input("r", {1, 4, 5, 5}).weights("w", {4, 4, 3, 3}).weights("p", {4});
    weights("channel", {4, 1, 1}).scalar("zero", 0).scalar("six", 6).scalar("one", 1);
    node("Conv", {"x", "w"}, {"c"}, {{"pads", Ints{1, 1, 1, 1}}});
  }
  Chain& then(const std::string& type, const std::vector<std::string>& inputs, const Attributes& attributes = {}) {
    last_ = "v" + std::to_string(graph().node_size());
    node(type, inputs, {last_}, attributes);
    return *this;
  }
  const std::string& last() const { return last_; }
  std::vector<std::string> steps(const ModelOptions& options = {}) {
    output(last_);
    return steps_of(*this, options);
  }

 private:
  std::string last_ = "c";
};

TEST(OnnxFusion, BatchNormalizationGoesIntoTheFilter) {
  for (const int64_t opset : {7, 9, 13, 15}) {
    EXPECT_THAT(Chain(opset).then("BatchNormalization", {"c", "p", "p", "p", "p"}).steps(),
                ElementsAre(line(conv + " epilogue=bias")))
        << opset;
  }
}

TEST(OnnxFusion, WholeResidualBlockIsOneCall) {
  Chain chain;
  chain.then("BatchNormalization", {"c", "p", "p", "p", "p"});
  chain.then("Add", {chain.last(), "r"});
  chain.then("Relu", {chain.last()});
  EXPECT_THAT(chain.steps(), ElementsAre(line(conv + " epilogue=bias+add+relu")));
}

TEST(OnnxFusion, AddOfAConstantForEachChannelIsABias) {
  EXPECT_THAT(Chain().then("Add", {"c", "channel"}).steps(), ElementsAre(line(conv + " epilogue=bias")));
  EXPECT_THAT(Chain().then("Add", {"channel", "c"}).steps(), ElementsAre(line(conv + " epilogue=bias")));
  OnnxModel product;  // its channels are its columns
  product.input("x", {5, 7}).weights("w", {7, 3}).weights("row", {3});
  product.node("MatMul", {"x", "w"}, {"c"});
  product.node("Add", {"c", "row"}, {"y"});
  product.output("y");
  EXPECT_THAT(steps_of(product), ElementsAre(testing::HasSubstr("epilogue=bias")));
}

TEST(OnnxFusion, ClipIsAStageByAttributesAndByInputs) {
  const std::vector<std::pair<std::string, Chain>> cases = {
      {"clip", Chain(10).then("Clip", {"c"}, {{"min", 0.0F}, {"max", 6.0F}})},
      {"clip", Chain(11).then("Clip", {"c", "zero", "six"})},
      {"relu", Chain(10).then("Clip", {"c"}, {{"min", 0.0F}})},
      {"relu", Chain().then("Clip", {"c", "zero"})},
      {"relu", Chain().then("Clip", {"c", "zero", ""})},
      {"clip", Chain().then("Clip", {"c", "one"})}};
  for (const auto& [stage, chain] : cases) {
    Chain copy = chain;
    EXPECT_THAT(copy.steps(), ElementsAre(line(conv + " epilogue=" + stage)));
  }
}

TEST(OnnxFusion, NothingOfItWhenItIsOff) {
  Chain chain;
  chain.then("BatchNormalization", {"c", "p", "p", "p", "p"});
  chain.then("Add", {chain.last(), "r"});
  chain.then("Relu", {chain.last()});
  chain.then("Clip", {chain.last(), "zero", "six"});
  EXPECT_THAT(chain.steps({.fuse = false}),
              ElementsAre(line(conv), line("norm_inference x=f32:1x4x5x5 w=f32:1x4x1x1 b=f32:1x4x1x1 axes=0,2,3"),
                          line("tensor_op a=f32:1x4x5x5 b=f32:1x4x5x5 mode=add"),
                          line("activation_forward x=f32:1x4x5x5 mode=relu"),
                          line("activation_forward x=f32:1x4x5x5 mode=clip")));
}

TEST(OnnxFusion, ResultThatTheModelGivesStays) {
  Chain chain;
  chain.then("Relu", {"c"}).output("c");
  EXPECT_THAT(chain.steps(), ElementsAre(line(conv), line("activation_forward x=f32:1x4x5x5 mode=relu")));
}

}  // namespace
}  // namespace kiln::test::onnx_fusion_test
