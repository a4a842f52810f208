// User code of copies, values, element-wise arithmetic and dropout, in every kernel of theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/generator/request.h"
#include "user_code_cases.h"

namespace kiln::user_code_elementwise_test {
namespace {

using testing_support::check_as;

const Expressions& expressions() {
  static const Expressions all = {
      {"gated", Expression("acc * gate + slope * bias", {"gate", "bias"}, {"slope"})},
      {"entered", Expression("--- prologue\nx * 0.75f + s\n---\nsilu(acc) * gate", {"gate"}, {"s"})},
      {"shifted", Expression("--- prologue\nfabsf(x) + 1.5f")}};
  return all;
}

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, expressions());
}

TEST(UserCodeOfCopies, AppliesBetweenLayoutsAndDtypes) {
  expect_served_right(
      "tensor_transform x=f16:2x5x3x7:nchw y=f32:2x5x3x7:nhwc alpha=any beta=any epilogue=user:gated "
      "epilogue.gate=f16:2x5x3x7 epilogue.bias=i8:1x5x1x7",
      {"tensor_transform_simple", "tensor_transform_vector", "tensor_transform_transposed"});
  expect_served_right(
      "tensor_transform x=u8:2x5x3x7:nhwc y=i8:2x5x3x7:nchw epilogue=user:entered epilogue.gate=f32:2x1x3x7",
      {"tensor_transform_simple", "tensor_transform_vector", "tensor_transform_transposed"});
}

// A copy without scale moves bits as they are, but not where there is code; x repeats, and the batch is dynamic.
TEST(UserCodeOfCopies, AppliesWhereNothingElseIsToBeComputed) {
  for (const char* code : {"shifted", "gated epilogue.gate=f32:4x6 epilogue.bias=f32:1x6"}) {
    expect_served_right(std::string("tensor_transform x=f32:4x1 y=f32:4x6 n=? epilogue=user:") + code,
                        {"tensor_transform_simple", "tensor_transform_vector"});
  }
}

// The prologue leaves the padding as it is, along the innermost dimension and others; the epilogue does not.
TEST(UserCodeOfCopies, HasPaddingThatIsNoElement) {
  for (const char* line : {"tensor_transform x=bf16:3x5 pad=0,1,2,1", "tensor_transform x=i8:3x5 pad=1,0,1,0"}) {
    expect_served_right(std::string(line) + " epilogue=user:shifted",
                        {"tensor_transform_simple", "tensor_transform_vector"});
  }
  expect_served_right("tensor_transform x=i32:3x5 y=f32:5x7:9,1 pad=1 epilogue=user:entered epilogue.gate=f32:5x1",
                      {"tensor_transform_simple", "tensor_transform_vector"});
}

TEST(UserCodeOfValues, MakesTensorsOfOthers) {
  expect_served_right(
      "tensor_set y=f16:3x5x7:1,3,15 epilogue=user:gated epilogue.gate=f32:3x5x7 epilogue.bias=u8:1x5x1",
      {"tensor_set_simple", "tensor_set_vector"});
}

TEST(UserCodeOfArithmetic, IsRightInEveryKernel) {
  expect_served_right(
      "tensor_op a=f16:2x6x5:nwc b=f32:2x6x5 y=f16:2x6x5:80,13,2 mode=sub epilogue=user:gated "
      "epilogue.gate=f16:2x6x5:80,13,2 epilogue.bias=f32:1x6x1",
      {"tensor_op_simple", "tensor_op_vector"});
  expect_served_right(
      "tensor_op a=f32:4x7x9:63,1,7 b=f32:1x1x9 y=f32:4x7x9 mode=mul n=? epilogue=user:entered epilogue.gate=f32:4x7x9",
      {"tensor_op_simple", "tensor_op_vector", "tensor_op_transposed"});
}

// Functions that jump, turn or end where a prologue's roundings may lead.
TEST(UserCodeOfArithmetic, HasAPrologueWithEveryKindOfFunction) {
  for (const char* mode : {"pow", "ge"}) {
    expect_served_right(std::string("tensor_op a=f32:3x5 b=f32:3x5 epilogue=user:shifted mode=") + mode,
                        {"tensor_op_simple", "tensor_op_vector"});
  }
  for (const char* mode : {"log", "not"}) {
    expect_served_right(std::string("tensor_op a=f32:3x5 epilogue=user:shifted mode=") + mode,
                        {"tensor_op_simple", "tensor_op_vector"});
  }
  expect_served_right("tensor_op a=i32:3x1 b=f32:3x5 c=f32:1x5 mode=select epilogue=user:shifted",
                      {"tensor_op_simple", "tensor_op_vector"});
}

TEST(UserCodeOfDropout, IsRightInEveryKernel) {
  expect_served_right(
      "dropout x=f32:3x8 y=f16:3x8 beta=any epilogue=user:gated epilogue.gate=bf16:3x8:1,3 epilogue.bias=f32:3x1",
      {"dropout_simple", "dropout_vector"});
  expect_served_right("dropout x=f16:3x5x3:1,3,15 epilogue=user:entered epilogue.gate=f32:1x5x1",
                      {"dropout_simple", "dropout_vector"});
}

TEST(CheckOfElementwiseUserCode, FindsCodeThatWasLeftOut) {
  const std::string copy = "tensor_transform x=f32:3x5";
  const Request coded = Request::parse(copy + " epilogue=user:shifted", expressions());
  EXPECT_FALSE(check_as(coded, Request::parse(copy)));
}

}  // namespace
}  // namespace kiln::user_code_elementwise_test
