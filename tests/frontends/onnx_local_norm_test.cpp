#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "onnx_model.h"

namespace kiln::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OnnxModel one_lrn(const std::vector<Extent>& extents, const Attributes& attributes) {
  OnnxModel model;
  model.input("x", extents);
  model.node("LRN", {"x"}, {"y"}, attributes);
  model.output("y");
  return model;
}

TEST(OnnxLrn, IsALocalNormalisationAcrossChannels) {
  const Attributes attributes{{"size", 5}, {"alpha", 0.001F}, {"beta", 0.5F}, {"bias", 2.0F}};
  EXPECT_THAT(lines_of(one_lrn({2, 96, 27, 27}, attributes).read({.order = MemoryOrder::nhwc})),
              ElementsAre(line("local_norm_forward x=f32:2x96x27x27:nhwc axes=1 size=5")));
  EXPECT_THAT(lines_of(one_lrn({4, 6}, {{"size", 4}}).read({.dtype = DType::f16, .batch = 4, .dynamic_batch = true})),
              ElementsAre(line("local_norm_forward x=f16:4x6 axes=1 size=4 n=?")));
}

TEST(OnnxLrn, NeedsChannelsAndASize) {
  EXPECT_THAT(uncovered_of(one_lrn({6}, {{"size", 3}}).read()), ElementsAre("LRN *1: its input has no channels"));
  EXPECT_THAT(uncovered_of(one_lrn({2, 6}, {{"size", 65536}}).read()),
              ElementsAre("LRN *1: its window has 65536 channels, and up to 65535 are covered"));
  try {
    (void)one_lrn({2, 6}, {}).read();
    FAIL() << "accepted without a size";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error);
    EXPECT_THAT(error.what(), HasSubstr("size is 0, expected at least 1"));
  }
}

}  // namespace
}  // namespace kiln::test
