// Descriptions for kernels of the tensors that user code reads.
#include "user_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::user_code_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string prelude_of(const Expression& expression, const std::string& line) {
  Prelude prelude;
  add_user_code(prelude, Request::parse(line + " epilogue=user:e", {{"e", expression}}));
  return prelude.text();
}

TEST(UserCode, ATensorOfOneImageServesAll) {
  const Expression scaled("--- prologue\nx * a + b * d", {"a", "b", "d"});
  const auto image_strides = [&](const std::string& batch, const std::string& tensors) {
    return prelude_of(scaled, "conv_forward x=f32:" + batch + "x4x5x5 w=f32:2x4x1x1 " + tensors);
  };
  EXPECT_THAT(image_strides("3", "prologue.a=f32:1x4:7,1 prologue.b=f32:3x4 prologue.d=f32:4"),
              HasSubstr("USER_PROLOGUE_IMAGE_STRIDES[] = {0, 4, 0};"));
  EXPECT_THAT(image_strides("1", "prologue.a=f32:1x4 prologue.b=f32:1x4 prologue.d=f32:4"),
              HasSubstr("USER_PROLOGUE_IMAGE_STRIDES[] = {0, 0, 0};"));
}

TEST(UserCode, ResultsAreAsLargeAsTheyAreAndAtLeastOneElement) {
  const Expression gated("acc * gate", {"gate"});
  EXPECT_THAT(prelude_of(gated, "softmax_forward x=f32:5x10 epilogue.gate=f32:5x10"),
              AllOf(HasSubstr("USER_RANK = 2;"), HasSubstr("USER_EXTENTS[] = {5, 10};")));
  EXPECT_THAT(prelude_of(gated, "softmax_forward x=f32:0x10 epilogue.gate=f32:0x10"),
              HasSubstr("USER_EXTENTS[] = {1, 10};"));
}

}  // namespace
}  // namespace kiln::user_code_test
