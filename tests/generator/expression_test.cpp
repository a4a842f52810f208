#include "kiln/generator/expression.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/generator/no_code.h"
#include "kiln/generator/operation.h"
#include "kiln/generator/request.h"

namespace kiln::expression_test {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::HasSubstr;

std::string error_of(const std::string& text, std::vector<std::string> tensors = {},
                     std::vector<std::string> scalars = {}) {
  try {
    const Expression expression(text, std::move(tensors), std::move(scalars));
    return "accepted";
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(Expression, KeepsItsTextInOneForm) {
  const Expression expression("acc *  2  \r\n  + 1 // two\t\n\n");
  EXPECT_EQ(expression.text(), "acc *  2\n  + 1 // two");
  EXPECT_EQ(expression, Expression("acc *  2\n  + 1 // two"));
  EXPECT_NE(expression, Expression("acc * 2\n  + 1 // two"));
}

TEST(Expression, DigestCoversTextAndNames) {
  const Expression plain("acc * a + b", {"a", "b"});
  EXPECT_EQ(plain.digest().size(), 32);
  EXPECT_TRUE(is_expression_digest(plain.digest()));
  EXPECT_EQ(plain.digest(), Expression("acc * a + b", {"b", "a"}).digest());  // tensors have no order of their own
  EXPECT_NE(plain.digest(), Expression("acc * a + b", {"a"}, {"b"}).digest());
  EXPECT_NE(plain.digest(), Expression("acc * a + b", {}, {"a", "b"}).digest());
  EXPECT_NE(Expression("acc", {}, {"a", "b"}).digest(), Expression("acc", {}, {"b", "a"}).digest());
}

TEST(Expression, HasItsDigestInWords) {
  const Expression plain("acc * a + b", {"a", "b"});
  const auto [first, second] = plain.digest_words();
  EXPECT_EQ(fmt::format("{:016x}{:016x}", static_cast<uint64_t>(first), static_cast<uint64_t>(second)), plain.digest());
}

TEST(Expression, TellsExpressionsFromStatements) {
  EXPECT_TRUE(Expression("acc + 1 // not a statement;").epilogue().one_expression);
  EXPECT_TRUE(Expression("[&] { return acc; }()").epilogue().one_expression);
  EXPECT_FALSE(Expression("return acc; // a statement").epilogue().one_expression);
  EXPECT_FALSE(Expression("if (acc > 0) { return acc; } else { return 0; }").epilogue().one_expression);
}

TEST(Expression, SplitsFunctionsFromTheEpilogue) {
  const Expression expression("float f();\nfloat g();\n---\nf() + g()");
  EXPECT_EQ(expression.functions().text, "float f();\nfloat g();\n");
  EXPECT_EQ(expression.functions().line, 1);
  EXPECT_EQ(expression.epilogue().text, "f() + g()\n");
  EXPECT_EQ(expression.epilogue().line, 4);
  EXPECT_TRUE(expression.prologue().empty());
  EXPECT_EQ(Expression("acc").epilogue().line, 1);
}

TEST(Expression, MayHaveAPrologue) {
  const Expression both("float f();\n--- prologue\nf() + x\n---\nreturn acc;");
  EXPECT_EQ(both.prologue().text, "f() + x\n");
  EXPECT_EQ(both.prologue().line, 3);
  EXPECT_TRUE(both.prologue().one_expression);
  EXPECT_EQ(both.epilogue().line, 5);
  const Expression alone("--- prologue\nx * 2");
  EXPECT_TRUE(alone.functions().empty());
  EXPECT_TRUE(alone.epilogue().empty());
  EXPECT_EQ(alone.prologue().text, "x * 2\n");
}

TEST(Expression, MayRoundItsPrologue) {
  const Expression rounded("float f();\n--- rounded prologue\nf() + x\n---\nreturn acc;");
  EXPECT_TRUE(rounded.rounds_prologue());
  EXPECT_EQ(rounded.prologue().text, "f() + x\n");
  EXPECT_EQ(rounded.prologue().line, 3);
  const Expression plain("float f();\n--- prologue\nf() + x\n---\nreturn acc;");
  EXPECT_FALSE(plain.rounds_prologue());
  EXPECT_NE(rounded.digest(), plain.digest());
  EXPECT_FALSE(Expression("acc").rounds_prologue());
  EXPECT_THAT(error_of("acc\n---\nacc\n--- rounded prologue\nx"), HasSubstr("line 4, column 1: a prologue stands"));
}

// Estimates count them.
TEST(Expression, CallsThatTakeManyInstructionsAreCounted) {
  const Expression code(
      "float f(float v) {\n  return expf(v);\n}\n--- prologue\nif (x > 0.0f) return relu(silu(x));\n"
      "return f(x) + fmaxf(x, float(c));\n---\nacc");
  EXPECT_EQ(code.prologue().long_calls, 2U);
  EXPECT_EQ(code.epilogue().long_calls, 0U);
}

TEST(Expression, RefusesWhatCannotBePlacedInAFunction) {
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("// nothing"), HasSubstr("no expression"));
  EXPECT_THAT(error_of("f();\n---\n"), HasSubstr("no expression"));
  EXPECT_THAT(error_of("acc + (1"), HasSubstr("line 1, column 7: this '(' is never closed"));
  EXPECT_THAT(error_of("acc\n  }"), HasSubstr("line 2, column 3: this '}' closes nothing"));
  EXPECT_THAT(error_of("return acc; } int x() { return 1;"), HasSubstr("column 13: this '}' closes nothing"));
  EXPECT_THAT(error_of("(acc]"), HasSubstr("does not close the '('"));
  EXPECT_THAT(error_of("f {\n---\n} acc"), HasSubstr("this '{' is never closed"));
  EXPECT_THAT(error_of("acc;\n---\nacc }"), HasSubstr("line 3, column 5"));
  EXPECT_THAT(error_of("acc\n---\nacc\n--- prologue\nx"), HasSubstr("line 4, column 1: a prologue stands before"));
  EXPECT_THAT(error_of("acc\n---\nacc\n---\nacc"), HasSubstr("line 4, column 1: there are two epilogues"));
  EXPECT_THAT(error_of("#define A 1\nA"), HasSubstr("only #pragma"));
  EXPECT_THAT(error_of("acc /* 1"), HasSubstr("comment does not end"));
  EXPECT_THAT(error_of("\"acc"), HasSubstr("no other half"));
  EXPECT_THAT(error_of("acc \\\n + 1"), HasSubstr("backslash"));
  EXPECT_THAT(error_of(std::string("acc\0", 4)), HasSubstr("control character"));
  EXPECT_THAT(error_of("acc /*\n  end expression \n*/"), HasSubstr("line 2, column 1: this line would end"));
  EXPECT_THAT(error_of("acc \xff"), HasSubstr("not UTF-8"));
  EXPECT_THAT(error_of(std::string(70000, 'a')), HasSubstr("70000 bytes"));
  EXPECT_EQ(error_of("acc + 1 // (\n + 2 /* } */"), "accepted");
}

// The compiler must find comments, literals and brackets where the checks find them.
TEST(Expression, RefusesSpellingsThatHideBracketsAndDirectives) {
  const std::string planted = "); %> extern \"C\" __global__ void planted(float* p) <% return (acc";
  EXPECT_THAT(error_of("acc + (1 // \\\n(\n" + planted + " // \\\n)\n)"),
              HasSubstr("line 1, column 13: there is no place"));
  EXPECT_THAT(error_of("acc // \\  \n + 1"), HasSubstr("column 8: there is no place for a backslash at the end"));
  EXPECT_THAT(error_of("acc // \\"), HasSubstr("backslash at the end"));
  EXPECT_THAT(error_of("acc // \?\?/\n + 1"), HasSubstr("trigraph"));
  EXPECT_THAT(error_of("\?\?=include \"/etc/passwd\"\nacc"), HasSubstr("trigraph"));
  EXPECT_THAT(error_of("%:include \"/etc/passwd\"\nacc"), HasSubstr("'%:' is another spelling of '#'"));
  for (const char* digraph : {"<%", "%>", "<:", ":>"}) {
    EXPECT_THAT(error_of("acc " + std::string(digraph)), HasSubstr("another spelling")) << digraph;
  }
  for (const char* raw : {"R", "LR", "uR", "UR", "u8R", "L", "u8", "x1"}) {
    EXPECT_THAT(error_of("acc + f(" + std::string(raw) + "\"(\")\")"), HasSubstr("literal with a prefix")) << raw;
    EXPECT_THAT(error_of("acc + " + std::string(raw) + "'('"), HasSubstr("literal with a prefix")) << raw;
  }
  EXPECT_THAT(error_of("acc + 1'0 + f(\"'\") }"), HasSubstr("this '}' closes nothing"));
  EXPECT_THAT(error_of("acc + 1'0'("), HasSubstr("literal with a prefix"));
  EXPECT_THAT(error_of("acc + f(\"a\"R\"(\")\")"), HasSubstr("literal with a prefix"));
  for (const char* character : {"\f", "\v", "\r+", "\u0085", "\u2028", "\u202e", "\ufeff"}) {
    EXPECT_THAT(error_of("acc // " + std::string(character) + "\n+ 1"), HasSubstr("column 8: ")) << character;
  }
}

TEST(Expression, RefusesEveryDirectiveButUnroll) {
  for (const char* line :
       {"#include <x>", "# include \"x\"", "#define acc 1", "#embed \"x\"", "#line 7", "#pragma once",
        "#pragma push_macro(\"x\")", "#pragma unroll {", "#pragma unroll (", "#pragma unroll /*", "#",
        "#pragma unroll (4) {", "#pragma unroll_more", "/**/ #pragma unroll", "acc #pragma unroll"}) {
    EXPECT_THAT(error_of(std::string(line) + "\n}*/)\nacc"), HasSubstr("only #pragma unroll may stand")) << line;
  }
  for (const char* line : {"#pragma unroll", "  #pragma unroll 4", "#pragma unroll (COUNT)", "#pragma unroll(4)"}) {
    EXPECT_EQ(error_of(std::string(line) + "\nfor (int i = 0; i < 4; ++i) {}\nreturn acc;"), "accepted") << line;
  }
}

TEST(Expression, RefusesWhatLeavesFunctionsAndExpressions) {
  for (const char* code : {"asm(\"} .entry planted() {\")", "__asm__ volatile(\"\")", "__asm(\"\")",
                           "_Pragma(\"once\")", "extern \"C\" int f()", "extern __shared__ int s[]",
                           "__global__ void planted() {}", "__attribute__((alias(\"f\"))) int f()",
                           "__declspec(x) int f()", "__launch_bounds__(1) int f()", "__managed__ int x", "__FILE__"}) {
    EXPECT_THAT(error_of(std::string(code) + ";\n---\nacc"), HasSubstr("there is no place for '")) << code;
  }
  EXPECT_THAT(error_of("[[gnu::used]] int f();\n---\nacc"), HasSubstr("there is no place for attributes"));
  EXPECT_THAT(error_of("[ /**/ [gnu::used]] int f();\n---\nacc"), HasSubstr("there is no place for attributes"));
  for (const char* code : {"acc + \\u0041", "acc + $x", "acc @ 1", "acc + `", "acc + \u00e9"}) {
    EXPECT_THAT(error_of(code), HasSubstr("user code, line 1, column")) << code;
  }
}

TEST(Expression, TakesWhatOnlyLooksLikeThat) {
  EXPECT_EQ(error_of("acc + 1'000'000 + 0x1'0p+1"), "accepted");
  EXPECT_EQ(error_of(R"~(acc + ("<% %: asm __global__ \n [[" != nullptr ? 'a' : '\'') // # %: <% asm é)~"), "accepted");
  EXPECT_EQ(error_of("values[n[0]] > 0 ? acc % c : ::sqrt(acc)"), "accepted");
  EXPECT_EQ(error_of("__device__ __forceinline__ float f(float v) { return __expf(v); }\n---\nf(acc)"), "accepted");
}

TEST(Expression, PassesOverLiteralsAsAWhole) {
  EXPECT_EQ(error_of(R"~(acc + ('\'' == 'a' ? 1 : 0))~"), "accepted");
  EXPECT_EQ(error_of(R"~(acc + ("\")}\\" != nullptr ? 1 : 0))~"), "accepted");
  EXPECT_EQ(error_of(R"~(acc + (")" != nullptr ? 1 : 0))~"), "accepted");
  EXPECT_THAT(error_of(R"~(acc + "\")~"), HasSubstr("column 7: this quotation mark has no other half"));
  EXPECT_THAT(error_of(R"~(acc + "\\" + (1)~"), HasSubstr("column 14: this '(' is never closed"));
}

TEST(Expression, RefusesNamesThatAreNone) {
  EXPECT_THAT(error_of("acc", {"2x"}), HasSubstr("'2x' cannot be the name"));
  EXPECT_THAT(error_of("acc", {"a__b"}), HasSubstr("cannot be the name"));
  EXPECT_THAT(error_of("acc", {"acc"}), HasSubstr("'acc' is taken"));
  EXPECT_THAT(error_of("acc", {"a"}, {"a"}), HasSubstr("two values are called 'a'"));
  EXPECT_THAT(error_of("acc", {"a", "b", "d", "e", "f", "g", "h", "i", "j"}), HasSubstr("9 tensors"));
  EXPECT_EQ(error_of("acc", {"bias", "gate", "k1", "r", "s", "t", "u", "v"}, {"slope"}), "accepted");
  EXPECT_THAT(error_of("--- prologue\nx * a\n---\nacc * a", {"a"}), HasSubstr("a stands in the prologue and in the"));
}

TEST(Expression, SaysWhichPartReadsATensor) {
  const Expression expression("--- prologue\nx * z[c] + m // not b, nor \"b\"\n---\nacc + b * gate",
                              {"z", "b", "unread", "m"});
  EXPECT_THAT(expression.tensors(), ElementsAre("b", "unread", "m", "z"));
  EXPECT_EQ(expression.epilogue_tensors(), 2);
  EXPECT_EQ(user_operand_name(expression, 1), "epilogue.unread");
  EXPECT_EQ(user_operand_name(expression, 2), "prologue.m");
  EXPECT_EQ(Expression(expression.text(), {"m", "z", "unread", "b"}), expression);
}

// ---- in requests

const Expressions known = {{"swish", Expression("acc * sigmoid(acc * s) + gate + b[k]", {"gate", "b"}, {"s"})}};
constexpr const char* conv = "conv_forward x=f32:2x3x5x5:nhwc w=f32:4x3x3x3:nhwc";

std::string request_error(const std::string& epilogue) {
  try {
    return Request::parse(std::string(conv) + " " + epilogue, known).key();
  } catch (const Error& error) {
    return error.what();
  }
}

TEST(UserEpilogueInRequests, StandsInTheKeyByDigest) {
  const Request request =
      Request::parse(std::string(conv) + " epilogue.gate=f16:2x4x3x3:nhwc epilogue=user:swish epilogue.b=f32:4", known);
  EXPECT_THAT(request.key(), HasSubstr("epilogue=user:" + known.at("swish").digest() +
                                       " epilogue.b=f32:4:n epilogue.gate=f16:2x4x3x3:nhwc"));
  const Request again = Request::parse(request.key());
  EXPECT_EQ(again, request);
  EXPECT_EQ(again.key(), request.key());
  EXPECT_EQ(again.user_code.expression(), nullptr);
  EXPECT_NE(Request::parse(request.key(), known).user_code.expression(), nullptr);
  EXPECT_TRUE(is_per_channel(request, request.at("epilogue.b")));
  EXPECT_FALSE(is_per_channel(request, request.at("epilogue.gate")));
}

TEST(UserEpilogueInRequests, SayWhichTextIsMissing) {
  const Expression code("acc + 1");
  const Request request = Request::parse("softmax_forward x=f32:2x3 epilogue=user:e", {{"e", code}});
  EXPECT_FALSE(lacks_user_text(request));
  EXPECT_FALSE(lacks_user_text(Request::parse("softmax_forward x=f32:2x3")));
  const Request again = Request::parse(request.key());
  EXPECT_TRUE(lacks_user_text(again));
  const Error error = missing_user_text(again);
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("user:" + code.digest()));
  EXPECT_THAT(error.hint(), HasSubstr("--expression"));
}

TEST(UserEpilogueInRequests, FollowsTheBatch) {
  const Request request = Request::parse(
      std::string(conv) + " epilogue=user:swish epilogue.gate=f32:2x4x3x3:nhwc epilogue.b=f32:4 n=?", known);
  EXPECT_EQ(request.with_batch(1).at("epilogue.gate").extents.front(), 1);
  EXPECT_EQ(request.with_batch(1).at("epilogue.b").extents.front(), 4);
  EXPECT_EQ(without_user_code(request).find("epilogue.b"), nullptr);
}

TEST(UserEpilogueInRequests, RepeatsTensorsWhoseExtentsAreOne) {
  const Request request = Request::parse(
      std::string(conv) + " epilogue=user:swish epilogue.gate=f32:1x4x1x3 epilogue.b=u8:2x1x1x1 n=?", known);
  EXPECT_FALSE(is_batched(request, "epilogue.gate"));
  EXPECT_TRUE(is_batched(request, "epilogue.b"));
  const Request none = request.with_batch(0);
  EXPECT_EQ(none.at("epilogue.gate").extents, (std::vector<int64_t>{1, 4, 1, 3}));
  EXPECT_EQ(none.at("epilogue.b").extents, (std::vector<int64_t>{0, 1, 1, 1}));
  // Rounding 3 to 4 must not hide that batches differ.
  EXPECT_THAT(request_error("y=f32:2x4x3x3:nhwc epilogue=user:swish epilogue.b=f32:4 epilogue.gate=f32:3x4x3x3 n=?"),
              HasSubstr("epilogue.gate has batch 3, expected 2 as in x"));
}

TEST(UserEpilogueInRequests, MustFitItsTensors) {
  EXPECT_THAT(request_error("epilogue=user:none"), HasSubstr("there is no expression 'none'"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:4"), HasSubstr("no operand epilogue.gate"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:5 epilogue.gate=f32:2x4x3x3"),
              HasSubstr("epilogue.b has other extents than y"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:4 epilogue.gate=f32:2x4x3x2"),
              HasSubstr("epilogue.gate has other extents than y"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:4 epilogue.gate=f32:2x4x3"),
              HasSubstr("epilogue.gate has other extents than y"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:1 epilogue.gate=f32:2x4x3x3"),
              HasSubstr("or one dimension: the 4 channels"));
  EXPECT_THAT(request_error("epilogue=user:swish epilogue.b=f32:4 epilogue.gate=f32:2x4x3x3 epilogue.r=f32:4"),
              HasSubstr("does not read epilogue.r"));
  EXPECT_THAT(request_error("epilogue.b=f32:4"), HasSubstr("no user code"));
}

TEST(UserEpilogueInRequests, HasTensorsOfTheInputsChannels) {
  const Expressions expressions = {{"e", Expression("--- prologue\nx * m\n---\nacc + b", {"m", "b"})}};
  const auto key_of = [&](const std::string& line) -> std::string {
    try {
      return Request::parse(line + " epilogue=user:e", expressions).key();
    } catch (const Error& error) {
      return error.what();
    }
  };
  const std::string layer = "conv_forward x=f32:2x3x5x5 w=f32:4x3x3x3";
  EXPECT_THAT(key_of(layer + " prologue.m=f16:3:2 epilogue.b=f32:4"),
              HasSubstr(" epilogue.b=f32:4:n prologue.m=f16:3:2"));
  EXPECT_THAT(key_of("gemm a=f32:5x7 b=f32:7x4 prologue.m=f32:7 epilogue.b=f32:4 n=?"),
              HasSubstr(" prologue.m=f32:7:n"));
  EXPECT_THAT(key_of(layer + " epilogue.b=f32:4"), HasSubstr("reads m, but there is no operand prologue.m"));
  EXPECT_THAT(key_of(layer + " epilogue.m=f32:4 epilogue.b=f32:4"), HasSubstr("no operand prologue.m"));
  EXPECT_THAT(key_of(layer + " prologue.m=f32:3 prologue.r=f32:3 epilogue.b=f32:4"), HasSubstr("not read prologue.r"));
  for (const char* other : {"4", "1", "2x3x5x5"}) {
    EXPECT_THAT(key_of(layer + " prologue.m=f32:" + other + " epilogue.b=f32:4"),
                HasSubstr("prologue.m has other extents than the channels of x"));
  }
  EXPECT_THAT(key_of(layer + " prologue.m=i32:3 epilogue.b=f32:4"), HasSubstr(" prologue.m=i32:3:n"));
  EXPECT_THAT(key_of(layer + " prologue.m=f16:2x3 epilogue.b=f32:4"), HasSubstr(" prologue.m=f16:2x3:nc"));
  EXPECT_THAT(key_of(layer + " prologue.m=f16:1x3 epilogue.b=f32:4 n=?"), HasSubstr(" prologue.m=f16:1x3:nc"));
  EXPECT_THAT(key_of("conv_forward x=f32:5x3x5x5 w=f32:4x3x3x3 prologue.m=f16:5x3 epilogue.b=f32:4 n=?"),
              HasSubstr(" prologue.m=f16:8x3:nc"));
  EXPECT_THAT(key_of(layer + " prologue.m=f32:3x3 epilogue.b=f32:4"),
              HasSubstr("give it one: the 3 channels; or 2x3, for each image and channel"));
  EXPECT_THAT(key_of("gemm a=f32:5x7 b=f32:7x4 prologue.m=f32:5x7 epilogue.b=f32:4"),
              HasSubstr("give it one: the 7 channels"));
  EXPECT_THAT(key_of("softmax_forward x=f32:2x3 prologue.m=f32:3 epilogue.b=f32:2x3"),
              HasSubstr("there are no channels"));
  // A prologue may know channels where an epilogue knows none.
  EXPECT_THAT(key_of("conv_backward_filter x=f32:2x6x5x5 dy=f32:2x4x3x3 dw=f32:4x3x3x3 groups=2 prologue.m=f32:6 "
                     "epilogue.b=f32:4x1x1x1"),
              HasSubstr(" prologue.m=f32:6:n"));
  EXPECT_THAT(key_of("conv_backward_bias dy=f32:2x3x5 prologue.m=f32:5 epilogue.b=f32:3"),
              HasSubstr("prologue.m has other extents than the channels of dy"));
  // Mistakes in the operation's own operands come first: they may not even have a dimension of channels.
  EXPECT_THAT(key_of("gemm a=f32:7 b=f32:7x4 c=f32:5x4 prologue.m=f32:7 epilogue.b=f32:4"),
              HasSubstr("a has 1 and b 2 dimensions"));
  EXPECT_THAT(key_of(layer + " y=f32:4 prologue.m=f32:3 epilogue.b=f32:4"), HasSubstr("y has extents"));
  const Request plain =
      without_user_code(Request::parse(layer + " epilogue=user:e prologue.m=f32:3 epilogue.b=f32:4", expressions));
  EXPECT_EQ(plain.find("prologue.m"), nullptr);
  EXPECT_THROW(Request::parse(layer + " prologue.m=f32:3"), Error);  // no user code
}

constexpr const char* leaky_file =
    "# a network\n"
    "expression leaky(; slope)\n"
    "acc > 0.0f ? acc : slope * acc\n"
    "end expression\n"
    "softmax_forward x=f32:2x3 epilogue=user:leaky *2\n";

TEST(UserEpilogueInRequests, HasAPrologueOnAnInputOfEveryOperationThatTakesIt) {
  for (const Operation* operation : operations()) {
    if (operation->prologue_operand().empty()) continue;
    EXPECT_THAT(operation->operands(), Contains(AllOf(Field(&OperandDefinition::name, operation->prologue_operand()),
                                                      Field(&OperandDefinition::role, Role::input))))
        << operation->name();
  }
  const Expressions expressions = {{"e", Expression("--- prologue\nx * 2")}};
  EXPECT_NO_THROW(Request::parse("softmax_forward x=f32:2x2 epilogue=user:e", expressions));
}

TEST(UserEpilogueInRequests, HasNoPrologueWhereThereIsNone) {
  const Expressions expressions = {{"e", Expression("--- prologue\nx * 2")},
                                   {"read", Expression("--- prologue\nx * m", {"m"})}};
  for (const char* code : {"e", "read prologue.m=f32:3"}) {
    try {
      Request::parse(std::string("tensor_set y=f32:2x3 epilogue=user:") + code, expressions);
      ADD_FAILURE() << code << " is accepted";
    } catch (const Error& error) {
      EXPECT_THAT(error.message(), HasSubstr("tensor_set: it has no prologue"));
    }
  }
}

TEST(UserEpilogueInRequests, GoesWithIndicesOfExtremes) {
  const Expressions expressions = {{"e", Expression("acc + 1")}, {"p", Expression("--- prologue\nx * 2")}};
  const std::string pool = "pool_forward x=f32:1x2x4x4 indices=i32:1x2x2x2 window=2 stride=2 epilogue=user:";
  for (const std::string code : {"e", "p"}) {
    EXPECT_NO_THROW(Request::parse(pool + code, expressions));
    EXPECT_NO_THROW(
        Request::parse("reduce x=f32:2x3 indices=i32:2x1 mode=max axes=1 epilogue=user:" + code, expressions));
  }
  EXPECT_NO_THROW(Request::parse(pool + std::string(32, 'a')));  // an unknown text
}

TEST(UserEpilogueInRequests, OfASumOverTheBatchNeedsTheBatch) {
  const Expressions expressions = {{"e", Expression("acc + 1")}};
  const std::string loss = "cross_entropy_forward x=f32:4x3 epilogue=user:e n=? reduction=";
  EXPECT_NO_THROW(Request::parse(loss + "none", expressions));
  EXPECT_THROW(Request::parse(loss + "mean", expressions), Error);
}

TEST(RequestsFiles, DefineExpressions) {
  Expressions expressions;
  const std::vector<RequestLine> lines = parse_requests(leaky_file, expressions);
  ASSERT_EQ(lines.size(), 1);
  EXPECT_EQ(lines[0].count, 2);
  ASSERT_NE(lines[0].request.user_code.expression(), nullptr);
  EXPECT_THAT(lines[0].request.user_code.expression()->scalars(), ElementsAre("slope"));
  EXPECT_EQ(expressions.size(), 1);
}

TEST(RequestsFiles, SeparateTheWordOfADefinitionByAnyBlanks) {
  for (const char* heading : {"expression\tev(;)", "expression   ev(;)", "expression ev(;)\r", "expression \t ev"}) {
    Expressions expressions;
    EXPECT_TRUE(parse_requests(std::string(heading) + "\nacc * 2\nend expression\n", expressions).empty()) << heading;
    EXPECT_EQ(expressions.count("ev"), 1) << heading;
    EXPECT_THROW(require_no_code(std::string(heading) + "\nacc * 2\nend expression\n", ""), Error) << heading;
  }
}

TEST(RequestsFiles, TakeBackWhatWasPrinted) {
  const Expression& swish = known.at("swish");
  const std::string text = print_definition(swish.digest(), swish);
  Expressions expressions;
  EXPECT_TRUE(parse_requests(text + text, expressions).empty());
  EXPECT_EQ(expressions.at(swish.digest()), swish);
}

TEST(RequestsFiles, RefuseDefinitionsThatMakeNoSense) {
  const auto error_in = [](const std::string& text) -> std::string {
    try {
      parse_requests(text);
      return "accepted";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(error_in("\nexpression a\nacc\n"), HasSubstr("line 2: the definition of expression a does not end"));
  EXPECT_THAT(error_in("expression a b(\nacc\nend expression"), HasSubstr("does not begin a definition"));
  EXPECT_THAT(error_in("expression a\nacc + (\nend expression"), HasSubstr("line 1: user code, line 1, column 7"));
  EXPECT_THAT(error_in("expression a\nacc\nend expression\nexpression a\nacc+1\nend expression"),
              HasSubstr("line 4: expression a is defined twice"));
  EXPECT_THAT(error_in("expression " + std::string(32, '0') + "\nacc\nend expression"),
              HasSubstr("is not what its name says"));
}

TEST(RequestsWithoutCode, HoldNoDefinition) {
  const auto refusal_of = [](const std::string& text) -> std::string {
    try {
      require_no_code(text, "ask somebody");
      return "";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return error.what();
    }
  };
  EXPECT_EQ(refusal_of(leaky_file),
            "line 2: user code is refused here: the definition of expression leaky (ask somebody)");
  EXPECT_THAT(refusal_of("expression a(bias; s)"),
              HasSubstr("line 1: user code is refused here: the definition of expression a ("))
      << "one that would not parse, either";
  EXPECT_THAT(refusal_of("expression \nacc"), HasSubstr("line 1"));
  EXPECT_EQ(refusal_of(""), "");
  EXPECT_EQ(refusal_of("# expression a\n expression a\nsoftmax_forward x=f32:2x3 epilogue=user:a # expression a\n"),
            "");
}

// Whatever parse_requests() takes a definition from is refused, and nothing else.
TEST(RequestsWithoutCode, AreThoseThatDefineNothing) {
  const auto defines = [](const std::string& text) {
    Expressions expressions;
    try {
      parse_requests(text, expressions);
    } catch (const Error&) {  // a line after a definition, or one that only looks like one
    }
    return !expressions.empty();
  };
  const std::string definition = "expression a\nacc\nend expression";
  for (const std::string before :
       {"", "\n", "# x\n", "softmax_forward x=f32:2x3\n", "\r\n", " ", "\t", "\r", "\xef\xbb\xbf", "\f"}) {
    for (const std::string after : {"", "\n", "\r\n", "\n# x", "\nnonsense"}) {
      const std::string text = before + definition + after;
      bool refused = false;
      try {
        require_no_code(text);
      } catch (const Error&) {
        refused = true;
      }
      EXPECT_EQ(refused, defines(text)) << testing::PrintToString(text);
    }
  }
}

}  // namespace
}  // namespace kiln::expression_test
