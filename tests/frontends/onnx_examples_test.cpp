// The example models: their calls as torchvision's definitions of the networks give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "listing.h"

namespace kiln::test::onnx_examples_test {
namespace {

using testing::IsEmpty;

models::Lowered example(const std::string& name, ModelOptions options = {}) {
  options.layout = ModelLayout::channels_first;
  models::Lowered made = models::lower(std::string(KILN_EXAMPLE_MODELS) + "/" + name + ".onnx", options);
  EXPECT_THAT(made.model.uncovered, IsEmpty());
  return made;
}

template <typename Predicate>
int64_t count(const models::Lowered& made, Predicate matches) {
  const auto& steps = made.schedule.steps;
  return std::count_if(steps.begin(), steps.end(), [&](const graph::Step& step) { return matches(step.request); });
}

int64_t operations(const models::Lowered& made, const std::string& name) {
  return count(made, [&](const Request& request) { return request.operation == name; });
}

int64_t epilogues(const models::Lowered& made, const std::vector<EpilogueStage>& stages) {
  return count(
      made, [&](const Request& request) { return request.operation == "conv_forward" && request.epilogue == stages; });
}

using enum EpilogueStage;

TEST(OnnxExamples, Resnet18HasTwentyConvolutionsAndEightResidualAdds) {
  const models::Lowered made = example("resnet18");
  EXPECT_EQ(operations(made, "conv_forward"), 20);
  EXPECT_EQ(operations(made, "pool_forward"), 2);
  EXPECT_EQ(operations(made, "softmax_forward"), 1);
  EXPECT_EQ(operations(made, "gemm"), 1);
  EXPECT_EQ(made.schedule.steps.size(), 24U);
  EXPECT_EQ(epilogues(made, {bias, relu}), 9);       // conv1 and the first of each of 8 blocks
  EXPECT_EQ(epilogues(made, {bias, add, relu}), 8);  // the last of each block
  EXPECT_EQ(epilogues(made, {bias}), 3);             // the second of blocks with downsampling, which takes the add
  EXPECT_EQ(
      made.schedule.steps.front().request.key(),
      line("conv_forward x=f32:1x3x224x224 w=f32:64x3x7x7 stride=2,2 pad=3,3 epilogue=bias+relu constant_weights"));
}

TEST(OnnxExamples, Resnet18HasACallForEachNodeWhenNotFused) {
  const models::Lowered made = example("resnet18", {.fuse = false});
  EXPECT_EQ(operations(made, "conv_forward"), 20);
  EXPECT_EQ(operations(made, "norm_inference"), 20);
  EXPECT_EQ(operations(made, "activation_forward"), 17);
  EXPECT_EQ(operations(made, "tensor_op"), 8);
}

TEST(OnnxExamples, Squeezenet11WritesThePartsOfItsConcatsInPlace) {
  const models::Lowered made = example("squeezenet1_1");
  EXPECT_EQ(operations(made, "conv_forward"), 26);
  EXPECT_EQ(epilogues(made, {bias, relu}), 26);
  EXPECT_EQ(operations(made, "pool_forward"), 4);
  EXPECT_EQ(made.schedule.steps.size(), 31U);
  EXPECT_EQ(made.schedule.steps.back().request.key(), line("softmax_forward x=f32:1x1000 axis=1"));
}

TEST(OnnxExamples, MobilenetV2HasSeventeenDepthwiseConvolutionsAndTenResidualAdds) {
  const models::Lowered made = example("mobilenet_v2");
  EXPECT_EQ(operations(made, "conv_forward"), 52);
  EXPECT_EQ(count(made,
                  [](const Request& request) {
                    return request.operation == "conv_forward" && request.ints("groups").front() > 1;
                  }),
            17);
  EXPECT_EQ(epilogues(made, {bias, clip}), 35);
  EXPECT_EQ(epilogues(made, {bias, add}), 10);
  EXPECT_EQ(epilogues(made, {bias}), 7);
  EXPECT_EQ(operations(made, "gemm"), 1);
}

TEST(OnnxExamples, AllTakeAnyBatchAndType) {
  for (const char* name : {"squeezenet1_1", "resnet18", "mobilenet_v2"}) {
    for (const bool dynamic : {false, true}) {
      const models::Lowered made = example(name, {.batch = 5, .dtype = DType::f16, .dynamic_batch = dynamic});
      for (const graph::Step& step : made.schedule.steps) {
        EXPECT_EQ(step.request.dynamic_batch, dynamic) << step.request.key();
        EXPECT_EQ(step.request.batch(), dynamic ? 8 : 5) << step.request.key();
        EXPECT_EQ(step.request.operands.front().spec.dtype, DType::f16) << step.request.key();
      }
    }
  }
}

}  // namespace
}  // namespace kiln::test::onnx_examples_test
