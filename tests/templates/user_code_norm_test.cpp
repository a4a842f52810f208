// User epilogues in the kernels of normalisations and of their gradients, local ones too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "algorithm_cases.h"
#include "kiln/base/error.h"
#include "user_code_cases.h"
#include "variant_check.h"

namespace kiln::user_code_norm_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing_support::built_in_catalogue;
using testing_support::check_as;

const Expressions& expressions() {
  static const Expressions all = {
      {"silu", Expression("acc * sigmoid(acc)")},
      {"skipped", Expression("acc")},
      {"entered", Expression("--- prologue\nx * sigmoid(s * x)", {}, {"s"})},
      {"both", Expression("--- prologue\nx * sigmoid(s * x)\n---\n(acc + bias) * gate - slope * acc", {"bias", "gate"},
                          {"slope", "s"})},
      {"gated", Expression("(acc + bias) * gate - slope * acc", {"bias", "gate"}, {"slope"})}};
  return all;
}

void expect_served_right(const std::string& line, const std::vector<std::string>& served_by) {
  testing_support::expect_served_right(line, served_by, expressions());
}

void expect_right(const std::string& line, const Choice& choice) {
  SCOPED_TRACE(line);
  testing_support::VariantChecker checker(built_in_catalogue(), Request::parse(line, expressions()));
  EXPECT_TRUE(checker.matches_reference(choice));
}

const std::vector<std::string> forward = {"norm_forward_simple", "norm_forward_blocks"};
const std::vector<std::string> backward = {"norm_backward_simple", "norm_backward_blocks"};
const std::vector<std::string> inference = {"norm_inference_simple", "norm_inference_blocks"};

// The statistics are outputs as well: they are of what the prologue gives, and without the epilogue.
TEST(UserCodeOfNorms, ForwardAlongRows) {
  expect_served_right(
      "norm_forward x=f16:5x72 w=f16:1x72 b=f32:1x72 mean=f32:5x1 inv_deviation=f32:5x1 epilogue=user:both "
      "epilogue.bias=bf16:1x72 epilogue.gate=f16:5x72:1,6",
      forward);
}

TEST(UserCodeOfNorms, ForwardAcrossRowsAndBlends) {
  expect_served_right(
      "norm_forward x=f32:3x8x5x3:nhwc axes=0,2,3 running_mean=f32:1x8x1x1 running_variance=f32:1x8x1x1 alpha=any "
      "beta=any epilogue=user:both epilogue.bias=f32:3x8x5x3:nhwc epilogue.gate=f16:3x8x5x3:nchw",
      forward);
}

// A group normalisation of three spatial dimensions; y lies in a larger tensor.
TEST(UserCodeOfNorms, ForwardInSixDimensions) {
  expect_served_right(
      "norm_forward x=f32:2x3x2x2x3x5 y=f32:2x3x2x2x3x5:900,300,120,60,20,2 axes=2,3,4,5 mode=rms epilogue=user:both "
      "epilogue.bias=f32:1x3x2x1x1x1 epilogue.gate=u8:2x3x2x2x3x5:1,2,6,12,24,72",
      forward);
}

TEST(UserEpilogueOfNorms, InferenceOfDynamicBatches) {
  expect_served_right(
      "norm_inference x=f16:4x6x7 axes=0,2 w=f32:1x6x1 epilogue=user:gated epilogue.bias=f32:4x6x7:1,28,4 "
      "epilogue.gate=f16:1x6x1 n=?",
      inference);
}

TEST(UserPrologueOfNorms, Inference) {
  const Expressions known = {{"entered", Expression("--- prologue\nx * sigmoid(s * x)\n---\nacc + t", {"t"}, {"s"})}};
  testing_support::expect_served_right(
      "norm_inference x=f16:3x8x5:nwc w=f16:1x8x1 b=f32:1x8x1 axes=0,2 alpha=any beta=any epilogue=user:entered "
      "epilogue.t=f32:1x8x1",
      inference, known);
}

// dw and db go along other rows than dx, in kernels of their own.
TEST(UserCodeOfNorms, Backward) {
  expect_served_right(
      "norm_backward dy=f16:6x40 dx=f16:6x40:50,1 w=f16:1x40 dw=f32:1x40 db=f32:1x40 dresidual=f16:6x40 beta=any "
      "epilogue=user:both epilogue.bias=f16:6x40:50,1 epilogue.gate=i8:6x1",
      backward);
}

// Batch normalisation behind an activation, and any batch behind relu.
TEST(UserPrologueOfNorms, Backward) {
  expect_served_right(
      "norm_backward dy=f32:3x8x5x3:nhwc axes=0,2,3 w=f32:1x8x1x1 b=f32:1x8x1x1 dw=f32:1x8x1x1 db=f32:1x8x1x1 "
      "activation=tanh alpha=any parameter_alpha=any epilogue=user:entered",
      backward);
  expect_served_right(
      "norm_backward dy=bf16:4x40:41,1 y=bf16:4x40 mode=rms dresidual=f32:4x40 n=? epilogue=user:entered", backward);
}

TEST(UserCodeOfNorms, OfGroupsChannelsLast) {
  expect_served_right(
      "norm_forward x=f16:2x3x4x16x9:1728,4,1,108,12 y=f16:2x3x4x16x9:1728,4,1,108,12 w=f32:1x3x4x1x1 axes=2,3,4 "
      "epilogue=user:both epilogue.bias=f32:2x3x4x16x9 epilogue.gate=f32:2x3x4x16x9:1900,4,1,110,12",
      {"norm_forward_simple", "norm_forward_channels"});
}

// The epilogue is on scale alone.
TEST(UserCodeOfNorms, OfScaleAndShift) {
  const std::string code =
      " axes=2,3,4 epilogue=user:both epilogue.bias=f32:1x3x1x1x1 epilogue.gate=f16:2x3x4x1x1:1,2,6,24,24";
  expect_served_right("norm_affine x=f16:2x3x4x16x9 w=f16:1x3x4x1x1 b=f32:1x3x4x1x1" + code,
                      {"norm_affine_simple", "norm_affine_blocks"});
  expect_served_right(
      "norm_affine x=f32:2x3x4x16x9:1728,4,1,108,12 w=f32:1x3x4x1x1 scale=f32:2x3x4x1x1:40,11,2,1,1" + code,
      {"norm_affine_simple", "norm_affine_blocks", "norm_affine_channels"});
  expect_served_right("norm_affine x=bf16:4x40:41,1 mode=rms n=? epilogue=user:entered",
                      {"norm_affine_simple", "norm_affine_blocks"});
}

TEST(UserCodeOfNorms, OfSplitRows) {
  const Config split = Config::parse("ACROSS=0,KEEP=0,LANES=256,SPLITS=4,THREADS=256,VECTOR=1");
  expect_right("norm_forward x=f32:2x8200 epilogue=user:both epilogue.bias=f32:1x8200 epilogue.gate=f32:2x8200:1,2",
               {"norm_forward_blocks", split});
  expect_right("norm_backward dy=f32:2x8200 epilogue=user:both epilogue.bias=f32:1x8200 epilogue.gate=f32:2x8200",
               {"norm_backward_blocks", split});
}

// A thread takes two rows that lie side by side, the last of one line of y and the first of the next.
TEST(UserEpilogueOfNorms, OfRowsOnBothSidesOfALineEnd) {
  const Config across = Config::parse("ACROSS=1,KEEP=1,LANES=16,SPLITS=1,THREADS=128,VECTOR=2");
  const std::string code = " axes=0 epilogue=user:gated epilogue.bias=f32:16x2x1 epilogue.gate=f32:16x2x7:14,1,2";
  expect_right("norm_forward x=f32:16x2x7" + code, {"norm_forward_blocks", across});
  expect_right("norm_backward dy=f32:16x2x7" + code, {"norm_backward_blocks", across});
}

TEST(UserCodeOfLocalNorms, AlongTheInnermostDimension) {
  const std::string code =
      " beta=any epilogue=user:both epilogue.bias=bf16:2x16x3x5:nhwc epilogue.gate=f32:2x16x3x5:nchw";
  expect_served_right("local_norm_forward x=f16:2x16x3x5:nhwc" + code,
                      {"local_norm_forward_simple", "local_norm_forward_segments", "local_norm_forward_tile"});
  expect_served_right("local_norm_backward x=f16:2x16x3x5:nhwc dmeans=f32:2x16x3x5:nhwc" + code,
                      {"local_norm_backward_simple", "local_norm_backward_segments", "local_norm_backward_tile"});
}

TEST(UserCodeOfLocalNorms, AlongAnotherDimension) {
  const std::string code = " size=4 beta=any epilogue=user:both epilogue.bias=f32:1x6x1x1 epilogue.gate=f16:2x6x3x8";
  expect_served_right("local_norm_forward x=f32:2x6x3x8 means=f16:2x6x3x8 n=?" + code,
                      {"local_norm_forward_simple", "local_norm_forward_columns", "local_norm_forward_tile"});
  expect_served_right("local_norm_backward x=f32:2x6x3x8 dx=f16:2x6x3x8:200,30,9,1 dmeans=f32:2x6x3x8" + code,
                      {"local_norm_backward_simple", "local_norm_backward_columns", "local_norm_backward_tile"});
}

TEST(CheckOfUserEpilogues, FindsCodeThatNormalisationsSkip) {
  for (const std::string line : {"norm_forward x=f32:5x32", "local_norm_backward x=f32:2x8x5"}) {
    const auto with = [&](const char* code) { return Request::parse(line + " epilogue=user:" + code, expressions()); };
    const testing::AssertionResult check = check_as(with("silu"), with("skipped"));
    EXPECT_FALSE(check) << line;
    EXPECT_THAT(check.message(), Not(HasSubstr("trusted"))) << line;
  }
  const Expressions entered = {{"all", Expression("--- prologue\nrelu(x)")}, {"none", Expression("--- prologue\nx")}};
  const auto with = [&](const char* code) {
    return Request::parse("norm_inference x=f32:5x6x8 axes=0,2 epilogue=user:" + std::string(code), entered);
  };
  const testing::AssertionResult check = check_as(with("all"), with("none"));
  EXPECT_FALSE(check);
  EXPECT_THAT(check.message(), Not(HasSubstr("trusted")));
}

// The result shows nothing of it here: other outputs do.
TEST(CheckOfUserPrologues, FindsThatOtherOutputsSkipThem) {
  const Expressions codes = {{"all", Expression("--- prologue\nrelu(x)\n---\n1.0f")},
                             {"none", Expression("--- prologue\nx\n---\n1.0f")}};
  struct Shown {
    std::string line, where;
  };
  for (const Shown& shown : {Shown{"norm_forward x=f32:5x32 mean=f32:5x1", "mean is wrong"},
                             Shown{"norm_backward dy=f32:5x32 db=f32:1x32", "db is wrong"},
                             Shown{"local_norm_backward x=f32:2x8x5 dmeans=f32:2x8x5", "dmeans is wrong"}}) {
    const auto with = [&](const char* code) { return Request::parse(shown.line + " epilogue=user:" + code, codes); };
    const testing::AssertionResult check = check_as(with("all"), with("none"));
    EXPECT_FALSE(check) << shown.line;
    EXPECT_THAT(check.message(), AllOf(HasSubstr(shown.where), Not(HasSubstr("trusted")))) << shown.line;
  }
}

TEST(UserEpilogueOfNorms, StandsBehindNoActivation) {
  for (const std::string line : {"norm_forward x=f32:5x32", "norm_inference x=f32:5x6x8 axes=0,2"}) {
    try {
      Request::parse(line + " activation=swish epilogue=user:silu", expressions());
      ADD_FAILURE() << line << " is accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.hint(), "write the activation into the expression");
    }
  }
  // A gradient's activation is that of the forward.
  EXPECT_NO_THROW(Request::parse("norm_backward dy=f32:5x32 activation=swish epilogue=user:silu", expressions()));
}

}  // namespace
}  // namespace kiln::user_code_norm_test
