#include "kiln/generator/tensor_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::tensor_spec_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string parse_failure(const std::string& text) {
  try {
    TensorSpec::parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::parse_error);
    return error.what();
  }
  return "accepted";
}

TEST(TensorSpec, GivesNamedLayoutsTheirStrides) {
  EXPECT_THAT(TensorSpec::parse("f16:2x3x4x5:nchw").strides, ElementsAre(60, 20, 5, 1));
  EXPECT_THAT(TensorSpec::parse("f16:2x3x4x5:nhwc").strides, ElementsAre(60, 1, 15, 3));
  EXPECT_THAT(TensorSpec::parse("f32:2x3x4x5:chwn").strides, ElementsAre(1, 40, 10, 2));
  EXPECT_THAT(TensorSpec::parse("f32:2x3x4x5:whcn").strides, ElementsAre(1, 2, 6, 24));
  EXPECT_THAT(TensorSpec::parse("f32:7").strides, ElementsAre(1));
}

TEST(TensorSpec, PrintsTheNameOfAPackedLayoutWrittenAsStrides) {
  EXPECT_EQ(TensorSpec::parse("f32:2x3x4x5:60,1,15,3").print(), "f32:2x3x4x5:nhwc");
  EXPECT_EQ(TensorSpec::parse("f32:2x3x4x5:61,1,15,3").print(), "f32:2x3x4x5:61,1,15,3");
}

TEST(TensorSpec, IgnoresStridesOfExtentsOfOne) {
  EXPECT_EQ(TensorSpec::parse("f32:1x64x1x1:nhwc"), TensorSpec::parse("f32:1x64x1x1:nchw"));
  EXPECT_EQ(TensorSpec::parse("f32:1x4x3x3:99,9,3,1").print(), "f32:1x4x3x3:nchw");
  EXPECT_TRUE(TensorSpec::parse("f32:1x64x1x1:nchw").is_packed("nhwc"));
  EXPECT_FALSE(TensorSpec::parse("f32:1x64x2x1:nchw").is_packed("nhwc"));
}

TEST(TensorSpec, KeepsTheAlignmentInItsText) {
  EXPECT_EQ(TensorSpec::parse("f16:8x8:nc@2").alignment, 2);
  EXPECT_EQ(TensorSpec::parse("f16:8x8:nc@2").print(), "f16:8x8:nc@2");
  EXPECT_EQ(TensorSpec::parse("f16:8x8:nc@16").print(), "f16:8x8:nc");
}

TEST(TensorSpec, SpanIsTheLeastAllocation) {
  EXPECT_EQ(TensorSpec::parse("f32:2x3:nc").span(), 6);
  EXPECT_EQ(TensorSpec::parse("f32:2x3:10,2").span(), 15);
  EXPECT_EQ(TensorSpec::parse("f32:0x3:nc").span(), 0);
  EXPECT_EQ(TensorSpec::parse("f32:0x3:nc").elements(), 0);
}

TEST(TensorSpec, AcceptsMoreThanTwoToThe31Elements) {
  EXPECT_EQ(TensorSpec::parse("f16:65536x65536:nc").elements(), int64_t{1} << 32);
}

TEST(TensorSpec, NamesWhatIsWrong) {
  EXPECT_THAT(parse_failure("f31:1x2:nc"), HasSubstr("unknown dtype 'f31'"));
  EXPECT_THAT(parse_failure("f32"), HasSubstr("expected dtype:extents:layout"));
  EXPECT_THAT(parse_failure("f32:1xx2:nc"), HasSubstr("'' is not an extent"));
  EXPECT_THAT(parse_failure("f32:1x-2:nc"), HasSubstr("'-2' is negative"));
  EXPECT_THAT(parse_failure("f32:1x2:-2,1"),
              HasSubstr("'-2' is negative: a stride is a number of elements, 0 or more"));
  EXPECT_THAT(parse_failure("fp16:1x2:nc"), HasSubstr("unknown dtype 'fp16'; did you mean f16"));
  EXPECT_THAT(parse_failure("f32:1x2:nn"), HasSubstr("layout 'nn'"));
  EXPECT_THAT(parse_failure("f32:1x2:1"), HasSubstr("1 strides for 2 extents"));
  EXPECT_THAT(parse_failure("f32:1x2:nc@3"), HasSubstr("alignment '3'"));
  EXPECT_THAT(parse_failure("f32:1x2x3x4x5x6x7:nc"), HasSubstr("more than 6"));
  EXPECT_THAT(parse_failure("f32:99999999999999999999:n"), HasSubstr("is not an extent"));
}

TEST(TensorSpec, RefusesSizesThatOffsetsCannotHold) {
  EXPECT_THROW(TensorSpec::parse("f32:9999999999x9999999999:nc"), Error);
  EXPECT_THROW((void)TensorSpec::parse("f32:2x9999999999:9223372036854775807,1").span(), Error);
}

}  // namespace
}  // namespace kiln::tensor_spec_test
