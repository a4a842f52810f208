#include "kiln/generator/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/operations/conv_forward.h"

namespace kiln::request_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string key(const std::string& line) {
  return Request::parse(line).key();
}

std::string failure(const std::string& line) {
  try {
    return "accepted as " + key(line);
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Request, PrintsTheLinesOfTheDesign) {
  const std::vector<std::string> lines = {
      "conv_forward x=f16:32x64x56x56:nhwc w=f16:64x64x3x3:nhwc y=f16:32x64x56x56:nhwc pad=1,1,1,1 stride=1,1 "
      "dilation=1,1 groups=1 acc=f32 epilogue=bias+relu",
      "pool_forward x=f32:1x64x112x112:nchw y=f32:1x64x56x56:nchw mode=max window=3,3 pad=1,1,1,1 stride=2,2",
      "softmax_forward x=f32:1x1000:nc y=f32:1x1000:nc axis=1 mode=accurate",
  };
  for (const std::string& line : lines) EXPECT_EQ(key(line), line);
}

TEST(Request, FillsInWhatHasAnObviousDefault) {
  EXPECT_EQ(key("conv_forward x=f32:1x3x224x224 w=f32:64x3x7x7 pad=3 stride=2"),
            "conv_forward x=f32:1x3x224x224:nchw w=f32:64x3x7x7:nchw y=f32:1x64x112x112:nchw pad=3,3,3,3 stride=2,2 "
            "dilation=1,1 groups=1 acc=f32");
  EXPECT_EQ(key("softmax_forward x=bf16:4x10"), "softmax_forward x=bf16:4x10:nc y=bf16:4x10:nc axis=1 mode=accurate");
  EXPECT_EQ(key("pool_forward x=f32:1x8x7x7:nhwc mode=avg window=global"),
            "pool_forward x=f32:1x8x7x7:nhwc y=f32:1x8x1x1:nchw mode=avg window=7,7 pad=0,0,0,0 stride=1,1");
}

TEST(Request, OrderOfTheTokensDoesNotMatter) {
  EXPECT_EQ(key("conv_forward stride=2 w=f32:4x3x3x3 x=f32:1x3x9x9 epilogue=relu pad=1,2"),
            key("conv_forward x=f32:1x3x9x9 w=f32:4x3x3x3 pad=1,2,1,2 stride=2,2 epilogue=relu acc=f32 groups=1"));
}

TEST(Request, ImpliesTheOperandsOfTheEpilogueAndPrintsOnlyUnusualOnes) {
  const std::string usual = "conv_forward x=f32:2x3x8x8 w=f32:4x3x3x3 epilogue=bias+add+clip";
  const Request request = Request::parse(usual);
  EXPECT_EQ(request.at("bias").print(), "f32:4:n");
  EXPECT_EQ(request.at("residual"), request.at("y"));
  EXPECT_THAT(request.key(), Not(HasSubstr("bias=")));
  const std::string unusual = key(usual + " bias=f32:4:2 residual=f32:2x4x6x6:nhwc");
  EXPECT_THAT(unusual, HasSubstr(" bias=f32:4:2 residual=f32:2x4x6x6:nhwc "));
  EXPECT_EQ(key(unusual), unusual);
}

TEST(Request, PrintsArithmeticBlendAndModeOnlyWhenTheyAreSet) {
  const std::string line =
      key("conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 deterministic tf32 alpha=any beta=1 mode=convolution");
  EXPECT_THAT(line, HasSubstr("groups=1 mode=convolution acc=f32 tf32 deterministic alpha=any beta=1"));
  EXPECT_EQ(key(line), line);
}

TEST(Request, SaysThatItsWeightsStayTheSame) {
  const std::string line = key("conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 constant_weights deterministic beta=any");
  EXPECT_THAT(line, HasSubstr("acc=f32 deterministic constant_weights beta=any"));
  EXPECT_EQ(key(line), line);
  EXPECT_TRUE(Request::parse(line).constant_weights);
  EXPECT_THAT(failure("softmax_forward x=f32:3x7 constant_weights"), HasSubstr("softmax_forward: it has no weights"));
}

TEST(Request, RoundsADynamicBatchToItsBucket) {
  const auto batch = [](const std::string& n) {
    return Request::parse("softmax_forward x=f32:" + n + "x10 n=?").batch();
  };
  EXPECT_EQ(batch("0"), 1);
  EXPECT_EQ(batch("1"), 1);
  EXPECT_EQ(batch("3"), 4);
  EXPECT_EQ(batch("4"), 4);
  EXPECT_EQ(batch("5"), 8);
  EXPECT_EQ(key("softmax_forward x=f32:3x10 n=?"), key("softmax_forward x=f32:4x10 y=f32:4x10 n=?"));
}

// The operand of the operation with the least room decides; the tensors of user code may share memory.
TEST(Request, HasABucketOfWhatTheStridesLeaveRoomFor) {
  const auto line = [](const std::string& x, const std::string& y) {
    return key("tensor_transform x=f32:" + x + " y=f32:" + y + " n=?");
  };
  EXPECT_THAT(line("3x10:cn", "3x10:cn"), HasSubstr("x=f32:3x10:cn y=f32:3x10:cn"));
  EXPECT_THAT(line("3x10:1,8", "3x10:1,9"), HasSubstr("x=f32:4x10:1,8 y=f32:4x10:1,9"));
  EXPECT_THAT(line("5x10:1,8", "5x10:1,6"), HasSubstr("x=f32:6x10:1,8 y=f32:6x10:cn"));
  EXPECT_THAT(line("5x10:2,20", "5x10"), HasSubstr("x=f32:8x10:2,20 y=f32:8x10:nc"));
  EXPECT_THAT(line("5x10:2,13", "5x10"), HasSubstr("x=f32:7x10:2,13"));
  EXPECT_THAT(line("5x4x6x3:24,3,120,1", "5x4x6x3"), HasSubstr("x=f32:5x4x6x3:"));  // rows outside of images
  EXPECT_THAT(line("5x4x6:6,1,35", "5x4x6"), HasSubstr("x=f32:6x4x6:6,1,35"));
  EXPECT_THAT(line("1x10:cn", "1x10:cn"), HasSubstr("x=f32:1x10:nc"));
  EXPECT_EQ(Request::parse("tensor_transform x=f32:0x10:1,8 y=f32:0x10:1,8 n=?").batch(), 1);
  // Elements of x share memory as it is: that sets no limit.
  EXPECT_THAT(line("5x10:1,2", "5x10"), HasSubstr("x=f32:8x10:1,2"));
  EXPECT_THAT(line("5x10:0,1", "5x10"), HasSubstr("x=f32:8x10:0,1"));
  EXPECT_THROW(line("5x10", "5x10:1,2"), Error);

  const Expressions known = {{"e", Expression("acc * gate", {"gate"})}};
  const Request parsed =
      Request::parse("softmax_forward x=f32:5x10:1,7 y=f32:5x10 epilogue=user:e epilogue.gate=f32:5x10:cn n=?", known);
  const Request plain = Request::parse("softmax_forward x=f32:5x10:1,7 y=f32:5x10 n=?");
  EXPECT_THAT(parsed.key(), HasSubstr("x=f32:7x10:cn"));
  EXPECT_EQ(with_user_code(plain, known.at("e"), {TensorSpec::parse("f32:5x10:cn")}).key(), parsed.key());
}

TEST(BatchBucket, IsThePowerOfTwoThatHoldsTheBatch) {
  constexpr int64_t most = int64_t{1} << 62;
  EXPECT_EQ(batch_bucket(0), 1);
  EXPECT_EQ(batch_bucket(1), 1);
  EXPECT_EQ(batch_bucket(2), 2);
  EXPECT_EQ(batch_bucket(3), 4);
  EXPECT_EQ(batch_bucket(most - 1), most);
  EXPECT_EQ(batch_bucket(most), most);
  EXPECT_THROW(batch_bucket(-1), Error);
  EXPECT_THROW(batch_bucket(most + 1), Error);
}

// One made by hand may hold nothing yet.
TEST(Request, HasABatchWhereAnOperandSaysIt) {
  Request request;
  request.operation = "softmax_forward";
  EXPECT_THROW((void)request.batch(), Error);
  request.operands = {{"x", {}}, {"y", {}}};
  EXPECT_THROW((void)request.batch(), Error);
  request.operands[1].spec.extents = {3, 4};
  EXPECT_EQ(request.batch(), 3);
  request.operands = {{"a stranger", {}}};
  EXPECT_THROW((void)request.batch(), Error);
  request.operands[0].spec.extents = {5, 4};
  EXPECT_EQ(request.batch(), 5);
}

TEST(Request, RefusesADynamicBatchThatIsNotTheSameEverywhere) {
  const auto refusal = [](const std::string& line) {
    try {
      return "accepted " + key(line);
    } catch (const Error& error) {
      return error.message();
    }
  };
  EXPECT_EQ(refusal("conv_forward x=f32:3x8x8x8 w=f32:8x8x3x3 y=f32:4x8x6x6 n=?"),
            "conv_forward: y has batch 4, expected 3 as in x");
  EXPECT_EQ(refusal("conv_forward x=f32:3x8x8x8 w=f32:8x8x3x3 y=f32:3x8x6x6 residual=f32:4x8x6x6 epilogue=add n=?"),
            "conv_forward: residual has batch 4, expected 3 as in x");
  EXPECT_EQ(refusal("pool_forward x=f32:0x8x8x8 y=f32:1x8x1x1 mode=max window=global n=?"),
            "pool_forward: y has batch 1, expected 0 as in x");
}

TEST(Request, FixesTheBatchOfADynamicRequest) {
  const Request dynamic = Request::parse("conv_forward x=f32:4x3x8x8 w=f32:4x3x3x3 epilogue=add n=?");
  const Request fixed = dynamic.with_batch(3);
  EXPECT_THAT(fixed.at("x").extents, ElementsAre(3, 3, 8, 8));
  EXPECT_THAT(fixed.at("w").extents, ElementsAre(4, 3, 3, 3));
  EXPECT_THAT(fixed.at("residual").extents, ElementsAre(3, 4, 6, 6));
  EXPECT_THROW(dynamic.with_batch(5), Error);
  EXPECT_THROW(fixed.with_batch(1), Error);
}

TEST(Request, FixesTheBatchBesideWhatRepeats) {
  const Request dynamic = Request::parse("tensor_op a=f32:1x3 b=f32:3x3 mode=add n=?");
  EXPECT_EQ(dynamic.batch(), 4);
  EXPECT_FALSE(is_batched(dynamic, "a"));
  for (const int64_t n : {0, 3}) {
    const Request fixed = dynamic.with_batch(n);
    EXPECT_THAT(fixed.at("a").extents, ElementsAre(1, 3));
    EXPECT_THAT(fixed.at("b").extents, ElementsAre(n, 3));
    EXPECT_THAT(fixed.at("y").extents, ElementsAre(n, 3));
  }
}

TEST(Request, NamesTheColumnOfWhatItCannotRead) {
  EXPECT_THAT(failure(""), HasSubstr("the request is empty"));
  EXPECT_THAT(failure("convolve x=f32:1x1"), HasSubstr("column 1: unknown operation 'convolve'"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 axes=1"), HasSubstr("column 27"));
  EXPECT_THAT(failure("softmax_forward x=f32:1xa"), HasSubstr("column 17"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 x=f32:1x2"), HasSubstr("x stands twice"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 quick"), HasSubstr("'quick' has no value"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2\nsoftmax_forward x=f32:1x3"),
              HasSubstr("column 27: a second request begins: 'softmax_forward' (give one request)"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 beta=2"), HasSubstr("beta=2 is not 0, 1 or any"));
  EXPECT_THAT(failure("conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 epilogue=gelu"), HasSubstr("unknown epilogue stage"));
  EXPECT_THAT(failure("conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 acc=f16"), HasSubstr("acc=f16 is unknown"));
  EXPECT_THAT(failure("conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 pad=1,b"), HasSubstr("'b' in pad=1,b"));
}

TEST(Request, ThatHoldsANumberOfTheCallIsToldHowToGiveIt) {
  const std::string attention = "attention_forward q=f32:1x2x4x8 k=f32:1x2x4x8 v=f32:1x2x4x8";
  EXPECT_THAT(failure(attention + " scale=0.1"),
              HasSubstr("column 61: the request holds the call's number scale (leave it out, and give scale at the "
                        "call: by name among its numbers in C++ and C, scale=... in Python; commands choose it)"));
  EXPECT_THAT(failure(attention + " seed=7"),
              HasSubstr("holds the call's integer seed (leave it out, and give seed at the call: by name among its "
                        "integers in C++ and C, seed=... in Python"));
  const std::string conv = "conv_forward x=f32:1x1x3x3 w=f32:1x1x3x3 epilogue=clip clip_lo=0";
  EXPECT_THAT(failure(conv), HasSubstr("holds the call's number clip_lo"));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 clip_lo=0"), HasSubstr("no operand or attribute 'clip_lo'"));
  EXPECT_THAT(failure("norm_forward x=f32:4x4 axes=1 epsilon=1e-3"), HasSubstr("holds the call's number epsilon"));
  const std::string give_dropout = " (write dropout=any, and give dropout at the call: by name among its numbers";
  EXPECT_THAT(failure(attention + " dropout=0.1"), HasSubstr("dropout=0.1 is unknown" + give_dropout));
  EXPECT_THAT(failure("softmax_forward x=f32:1x2 alpha=0.5"),
              HasSubstr("alpha=0.5 is not 0, 1 or any (write alpha=any, and give alpha at the call: "));
  EXPECT_THAT(failure("local_norm_backward x=f32:3x4 dmeans=f32:3x4 dmeans_beta=2"),
              HasSubstr("(write dmeans_beta=any, and give dmeans_beta at the call: "));
}

TEST(Request, OfACallHasThePartsThatItsTextSays) {
  const Request call = Request::parse_call("conv_forward pad=1,0 epilogue=bias+relu fast constant_weights n=?");
  EXPECT_EQ(call.operation, "conv_forward");
  ASSERT_EQ(call.attributes.size(), 1U);
  EXPECT_EQ(call.attributes[0].name, "pad");
  EXPECT_EQ(attribute_text(call.attributes[0].value), "1,0");
  EXPECT_THAT(call.epilogue, ElementsAre(EpilogueStage::bias, EpilogueStage::relu));
  EXPECT_TRUE(call.arithmetic.fast);
  EXPECT_TRUE(call.constant_weights);
  EXPECT_TRUE(call.dynamic_batch);
  EXPECT_TRUE(call.operands.empty());
}

TEST(Request, OfACallTakesByNameWhatItsTextMayNotSay) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {"x=f32:1x3x8x8", "conv_forward: the text of a call has operand x (give the tensor by name)"},
      {"pad=1 bias=f32:4", "conv_forward: the text of a call has operand bias (give the tensor by name)"},
      {"epilogue.t=f32:4", "the text of a call has user code (give it in the options, as their epilogue)"},
      {"epilogue=user:gelu", "the text of a call has user code"},
      {"alpha=any", "conv_forward: the text of a call has the class alpha (give the number by name)"},
      {"beta=1", "the text of a call has the class beta"},
  };
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      (void)Request::parse_call(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  for (const auto& [word, message] : rows) EXPECT_THAT(refusal("conv_forward " + word), HasSubstr(message));
  EXPECT_THAT(refusal("local_norm_backward dmeans_alpha=any"), HasSubstr("has the class dmeans_alpha"));
  EXPECT_THAT(refusal("local_norm_backward dmeans_beta=1"), HasSubstr("has the class dmeans_beta"));
}

TEST(Request, TakesLineEndsForBlanks) {
  const std::string line = "softmax_forward x=f32:1x2 axis=1";
  EXPECT_EQ(Request::parse("\r\n" + line + "\r\n"), Request::parse(line));
  EXPECT_EQ(Request::parse(" softmax_forward\n\tx=f32:1x2\n\taxis=1\n"), Request::parse(line));
  EXPECT_THAT(failure("\n\n"), HasSubstr("the request is empty"));
  EXPECT_THAT(failure("\nsoftmax_forward\nx=f32:1xa"), HasSubstr("column 18"));
  EXPECT_EQ(operation_named_in("\n softmax_forward\r\n"), "softmax_forward");
  EXPECT_EQ(operation_named_in(line), "softmax_forward");
  EXPECT_EQ(operation_named_in(" \n"), "");
}

TEST(Request, SaysWhatAMisspeltWordWasProbablyMeantFor) {
  EXPECT_THAT(failure("conv_foward x=f32:1x3x8x8"), HasSubstr("did you mean conv_forward?"));
  EXPECT_THAT(failure("pool x=f32:1x3x8x8"), HasSubstr("did you mean pool_forward or pool_backward?"));
  EXPECT_THAT(failure("transmogrify x=f32:1"), HasSubstr("known are conv_forward"));
  const std::string conv = "conv_forward x=f32:1x3x8x8 w=f32:4x3x3x3 ";
  EXPECT_THAT(failure(conv + "strides=2"), HasSubstr("did you mean stride?"));
  EXPECT_THAT(failure(conv + "epilog=relu"), HasSubstr("did you mean epilogue?"));
  EXPECT_THAT(failure(conv + "quux=1"), HasSubstr("it takes x, w, y"));
  EXPECT_THAT(failure(conv + "epilogue=reul"), HasSubstr("did you mean relu?"));
  EXPECT_THAT(failure(conv + "determinstic"), HasSubstr("did you mean deterministic?"));
  EXPECT_THAT(failure(conv + "fast=1"), HasSubstr("'fast' takes no value"));
  EXPECT_THAT(failure(conv + "n=4"), HasSubstr("n=4 is no dynamic batch"));
  EXPECT_THAT(failure("pool_forward x=f32:1x8x7x7 mode=maxx window=2"), HasSubstr("did you mean max?"));
  EXPECT_THAT(failure(conv + "stride=-2"), HasSubstr("is -2 (it must be 1 or more)"));
}

TEST(RequestsFile, ReadsCountsAndSkipsComments) {
  const auto lines =
      parse_requests("# a model\n\nsoftmax_forward x=f32:1x10 *3\r\nsoftmax_forward x=f32:2x10 # last\n");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].count, 3);
  EXPECT_EQ(lines[1].count, 1);
  EXPECT_THAT(lines[0].request.key(), Not(HasSubstr("*")));
}

TEST(RequestsFile, NamesLineAndColumn) {
  try {
    parse_requests("softmax_forward x=f32:1x10\nsoftmax_forward x=f32:1x10 *0\n");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("line 2: column 28: '*0' is not a count"));
  }
}

}  // namespace
}  // namespace kiln::request_test
