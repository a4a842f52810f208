// The example models: their layers as torchvision's definitions of the networks give them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "kiln/generator/operations/conv_forward.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::IsEmpty;

ModelListing example(const std::string& name, const OnnxOptions& options = {}) {
  return read_onnx(std::string(KILN_EXAMPLE_MODELS) + "/" + name + ".onnx", options);
}

/// Layers that satisfy `matches`, counted with repeats.
template <typename Predicate>
int64_t count(const ModelListing& listing, Predicate matches) {
  int64_t layers = 0;
  for (const ModelLayer& layer : listing.layers) {
    layers += matches(layer.request) ? layer.count : 0;
  }
  return layers;
}

int64_t operations(const ModelListing& listing, const std::string& name) {
  return count(listing, [&](const Request& request) { return request.operation == name; });
}

int64_t epilogues(const ModelListing& listing, const std::vector<EpilogueStage>& stages) {
  return count(listing, [&](const Request& request) {
    return request.operation == "conv_forward" && request.epilogue == stages;
  });
}

using enum EpilogueStage;

TEST(OnnxExamples, Resnet18HasTwentyConvolutionsAndEightResidualAdds) {
  const ModelListing listing = example("resnet18");
  EXPECT_EQ(operations(listing, "conv_forward"), 20);
  EXPECT_EQ(operations(listing, "pool_forward"), 2);
  EXPECT_EQ(operations(listing, "softmax_forward"), 1);
  EXPECT_EQ(epilogues(listing, {bias, relu}), 9);       // conv1 and the first of each of 8 blocks
  EXPECT_EQ(epilogues(listing, {bias, add, relu}), 8);  // the last of each block
  EXPECT_EQ(epilogues(listing, {bias}), 3);             // the second of blocks with downsampling, which takes the add
  EXPECT_EQ(operations(listing, "gemm"), 1);
  EXPECT_THAT(uncovered_of(listing), IsEmpty());
  EXPECT_EQ(lines_of(listing).front(),
            line("conv_forward x=f32:1x3x224x224:nchw w=f32:64x3x7x7:nchw stride=2,2 pad=3,3 epilogue=bias+relu"));
  EXPECT_THAT(lines_of(listing),
              testing::Contains(line("conv_forward x=f32:1x64x56x56:nchw w=f32:64x64x3x3:nchw pad=1,1 "
                                     "epilogue=bias+add+relu",
                                     2)));
}

TEST(OnnxExamples, Resnet18MergesLayersThatDifferInTheirEpilogueOnlyWhenNotFused) {
  const ModelListing listing = example("resnet18", {.fuse = false});
  EXPECT_EQ(operations(listing, "conv_forward"), 20);
  EXPECT_THAT(lines_of(listing),
              testing::Contains(line("conv_forward x=f32:1x64x56x56:nchw w=f32:64x64x3x3:nchw pad=1,1", 4)));
  EXPECT_THAT(uncovered_of(listing), IsEmpty());
  EXPECT_EQ(operations(listing, "norm_inference"), 20);
  EXPECT_EQ(operations(listing, "activation_forward"), 17);
  EXPECT_EQ(operations(listing, "tensor_op"), 8);
}

TEST(OnnxExamples, Squeezenet11HasTwentySixConvolutionsWithBiasAndRelu) {
  const ModelListing listing = example("squeezenet1_1");
  EXPECT_EQ(operations(listing, "conv_forward"), 26);
  EXPECT_EQ(epilogues(listing, {bias, relu}), 26);
  EXPECT_EQ(operations(listing, "pool_forward"), 4);
  EXPECT_EQ(operations(listing, "tensor_transform"), 16);  // two inputs for each of 8 Concat
  EXPECT_THAT(uncovered_of(listing), IsEmpty());
  EXPECT_EQ(lines_of(listing).back(), line("softmax_forward x=f32:1x1000:nc axis=1"));
}

TEST(OnnxExamples, MobilenetV2HasSeventeenDepthwiseConvolutionsAndTenResidualAdds) {
  const ModelListing listing = example("mobilenet_v2");
  EXPECT_EQ(operations(listing, "conv_forward"), 52);
  EXPECT_EQ(count(listing,
                  [](const Request& request) {
                    return request.operation == "conv_forward" && request.ints("groups").front() > 1;
                  }),
            17);
  EXPECT_EQ(epilogues(listing, {bias, clip}), 35);
  EXPECT_EQ(epilogues(listing, {bias, add}), 10);
  EXPECT_EQ(epilogues(listing, {bias}), 7);
  EXPECT_EQ(operations(listing, "gemm"), 1);
  EXPECT_THAT(uncovered_of(listing), IsEmpty());
}

TEST(OnnxExamples, AllTakeAnyBatchOrderAndType) {
  const OnnxOptions options{.dtype = DType::f16, .order = MemoryOrder::nhwc, .batch = 5};
  for (const char* name : {"squeezenet1_1", "resnet18", "mobilenet_v2"}) {
    for (const ModelLayer& layer : example(name, options).layers) {
      EXPECT_EQ(layer.request.batch(), 5) << layer.request.key();
      for (const Operand& operand : layer.request.operands) {
        EXPECT_EQ(operand.spec.dtype, DType::f16);
        const bool is_part = layer.request.operation == "tensor_transform";  // of what a Concat gives
        EXPECT_TRUE(operand.spec.rank() != 4 || is_part || operand.spec.is_packed("nhwc")) << layer.request.key();
      }
    }
    OnnxOptions dynamic = options;
    dynamic.dynamic_batch = true;
    for (const ModelLayer& layer : example(name, dynamic).layers) {
      EXPECT_TRUE(layer.request.dynamic_batch);
      EXPECT_EQ(layer.request.batch(), 8);
    }
  }
}

}  // namespace
}  // namespace kiln::test
