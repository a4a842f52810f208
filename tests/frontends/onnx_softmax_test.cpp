#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

OnnxModel one_softmax(int64_t opset, const std::vector<Extent>& extents, const Attributes& attributes = {},
                      const std::string& type = "Softmax") {
  OnnxModel model(opset);
  model.input("x", extents);
  model.node(type, {"x"}, {"y"}, attributes);
  model.output("y");
  return model;
}

TEST(OnnxSoftmax, NormalisesTheLastAxisSinceOpset13) {
  EXPECT_THAT(lines_of(one_softmax(13, {4, 10}).read()), ElementsAre(line("softmax_forward x=f32:4x10:nc axis=1")));
  EXPECT_THAT(lines_of(one_softmax(13, {2, 3, 4, 5}).read()),
              ElementsAre(line("softmax_forward x=f32:2x3x4x5:nchw axis=3")));
  EXPECT_THAT(lines_of(one_softmax(13, {2, 3, 4}, {{"axis", 1}}).read()),
              ElementsAre(line("softmax_forward x=f32:2x3x4:ncw axis=1")));
  EXPECT_THAT(lines_of(one_softmax(13, {2, 3, 4, 5}, {{"axis", -3}}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("softmax_forward x=f32:2x3x4x5:nhwc axis=1")));
}

TEST(OnnxSoftmax, NormalisesAMatrixBeforeOpset13) {
  EXPECT_THAT(lines_of(one_softmax(11, {2, 3, 4, 5}).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("softmax_forward x=f32:2x60:nc axis=1")));
  EXPECT_THAT(lines_of(one_softmax(11, {2, 3, 4, 5}, {{"axis", 2}}).read()),
              ElementsAre(line("softmax_forward x=f32:6x20:nc axis=1")));
  EXPECT_THAT(lines_of(one_softmax(11, {2, 3, 4, 5}, {{"axis", -1}}).read()),
              ElementsAre(line("softmax_forward x=f32:24x5:nc axis=1")));
  EXPECT_THAT(lines_of(one_softmax(9, {2, 3}, {{"axis", 0}}).read()),
              ElementsAre(line("softmax_forward x=f32:1x6:nc axis=1")));
  EXPECT_THAT(lines_of(one_softmax(9, {7}, {{"axis", 1}}).read()),
              ElementsAre(line("softmax_forward x=f32:7x1:nc axis=1")));
}

TEST(OnnxSoftmax, TakesLogarithmsWhereAsked) {
  EXPECT_THAT(lines_of(one_softmax(13, {4, 10}, {}, "LogSoftmax").read({.dtype = DType::bf16})),
              ElementsAre(line("softmax_forward x=bf16:4x10:nc axis=1 mode=log")));
}

TEST(OnnxSoftmax, KeepsADynamicBatchInItsOwnDimension) {
  const OnnxOptions dynamic{.batch = 4, .dynamic_batch = true};
  EXPECT_THAT(lines_of(one_softmax(11, {4, 3, 8, 5}, {{"axis", 2}}).read(dynamic)),
              ElementsAre(line("softmax_forward x=f32:4x3x40:ncw axis=2 n=?")));
  EXPECT_THAT(lines_of(one_softmax(11, {4, 3, 8, 5}).read(dynamic)),
              ElementsAre(line("softmax_forward x=f32:4x120:nc axis=1 n=?")));
  for (const int64_t opset : {11, 13}) {
    const ModelListing listing = one_softmax(opset, {4, 3}, {{"axis", 0}}).read(dynamic);
    EXPECT_THAT(listing.layers, IsEmpty());
    EXPECT_THAT(uncovered_of(listing), ElementsAre("Softmax *1: it normalises over the batch, which is dynamic"));
  }
}

TEST(OnnxSoftmax, IsNotCoveredBeyondFiveDimensions) {
  EXPECT_THAT(uncovered_of(one_softmax(13, {1, 2, 1, 2, 1, 2}).read()),
              ElementsAre("Softmax *1: its input has 6 dimensions, and 1 to 5 are covered"));
  EXPECT_THAT(lines_of(one_softmax(11, {1, 2, 1, 2, 1, 2}).read()),
              ElementsAre(line("softmax_forward x=f32:1x8:nc axis=1")));
}

TEST(OnnxSoftmax, RefusesAnAxisThatIsNotThere) {
  try {
    one_softmax(13, {2, 3}, {{"axis", 2}}).read();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error);
    EXPECT_THAT(error.message(), testing::HasSubstr("node 'y' (Softmax): axis is 2, expected -2 to 1"));
  }
}

}  // namespace
}  // namespace kiln::test
