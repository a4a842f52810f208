// --sweep: a grid of sizes of requests with open extents.
#include "sweep.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/base/error.h"
#include "numbers.h"

namespace kiln::cli::sweep_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> numbers(const std::string& text) {
  return numbers_of(text, [](const std::string& fault) { throw Error(ErrorCode::invalid_argument, fault); });
}

std::vector<std::string> swept(const std::string& text, const std::vector<std::string>& given) {
  Expressions expressions;
  std::vector<std::string> lines;
  for (const RequestLine& line : Sweep(given).requests_of(text, expressions)) {
    lines.push_back(line.request.operation + " " + line.request.operands[0].spec.print() +
                    (line.count == 1 ? "" : fmt::format(" *{}", line.count)));
  }
  return lines;
}

std::string refusal(const std::string& text, const std::vector<std::string>& given) {
  try {
    swept(text, given);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Numbers, AreOneOrARange) {
  EXPECT_THAT(numbers("7"), ElementsAre(7));
  EXPECT_THAT(numbers("0..2"), ElementsAre(0, 1, 2));
  EXPECT_THAT(numbers("14..56/14"), ElementsAre(14, 28, 42, 56));
  EXPECT_THAT(numbers("14..55/14"), ElementsAre(14, 28, 42));
  EXPECT_THAT(numbers("14..56*2"), ElementsAre(14, 28, 56));
  EXPECT_THAT(numbers("3..100*10"), ElementsAre(3, 30));
  EXPECT_THAT(numbers("9223372036854775800..9223372036854775807*2"), ElementsAre(9223372036854775800));
  EXPECT_THAT(numbers("9223372036854775806..9223372036854775807"),
              ElementsAre(9223372036854775806, 9223372036854775807));
  EXPECT_EQ(numbers("1..4096").size(), 4096U);
  for (const char* const bad : {"",       "x",      "-1",       "1.5",      "..",    "1..",     "..3",
                                "3..1",   "1/2",    "1*2",      "1..4/0",   "1..4/", "1..4*",   "1..4*1",
                                "0..4*2", "1..4/x", "1..4/2/2", "1..4*2*2", "1...4", "1..4..6", "99999999999999999999",
                                "1..4 ",  "1..5000"}) {
    EXPECT_THROW(numbers(bad), Error) << bad;
  }
}

TEST(Sweep, MakesARequestForEachCombination) {
  EXPECT_THAT(swept("softmax_forward x=f32:?nx?c", {"c=4..8*2", "n=1,3"}),
              ElementsAre("softmax_forward f32:1x4:nc", "softmax_forward f32:1x8:nc", "softmax_forward f32:3x4:nc",
                          "softmax_forward f32:3x8:nc"));
  EXPECT_THAT(swept("pool_forward x=f16:2x8x?hx?h:nhwc window=3", {"h=5,6"}),
              ElementsAre("pool_forward f16:2x8x5x5:nhwc", "pool_forward f16:2x8x6x6:nhwc"))
      << "extents of one name are equal";
}

TEST(Sweep, LeavesOtherLinesAsTheyAre) {
  EXPECT_THAT(swept("# x=f32:?q\n\nsoftmax_forward x=f32:2x3 *5\nsoftmax_forward x=f32:?nx4 *2  # ?n\n"
                    "softmax_forward n=? x=f32:6x9",
                    {"n=7,8"}),
              ElementsAre("softmax_forward f32:2x3:nc *5", "softmax_forward f32:7x4:nc *2",
                          "softmax_forward f32:8x4:nc *2", "softmax_forward f32:8x9:nc"))
      << "a batch that a call gives is none of these";
  EXPECT_THAT(swept("softmax_forward x=f32:2x3", {}), ElementsAre("softmax_forward f32:2x3:nc"));
  const std::string code = "expression odd(x) = x > 0 ? x : -x\n";
  EXPECT_EQ(refusal(code + "softmax_forward x=f32:?nx3", {"n=1"}), refusal(code + "softmax_forward x=f32:1x3", {}));
}

TEST(Sweep, SaysWhatIsWrong) {
  const std::string line = "softmax_forward x=f32:?nx3";
  EXPECT_THAT(refusal(line, {}), HasSubstr("nothing says what ?n is"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?x3", {}), HasSubstr("has no name"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?8x3", {"n=1"}), HasSubstr("has no name"));
  EXPECT_THAT(refusal(line, {"n=1", "m=2"}), HasSubstr("no request has an extent ?m"));
  EXPECT_THAT(refusal(line, {"n=1", "n=2"}), HasSubstr("given twice"));
  EXPECT_THAT(refusal(line, {"n"}), HasSubstr("names no extent"));
  EXPECT_THAT(refusal(line, {"=1"}), HasSubstr("names no extent"));
  EXPECT_THAT(refusal(line, {"n=2..1"}), HasSubstr("'2..1' is no extent"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?nx?m", {"n=1..100", "m=1..100"}), HasSubstr("more than 4096 sizes"));
  EXPECT_THAT(refusal("softmax_forward x=f32:2x3\npool_forward x=f32:1x1x?hx?h window=5", {"h=3,9"}),
              testing::AllOf(HasSubstr("with h=3: line 2: "), HasSubstr("window")));
  EXPECT_THAT(refusal("softmax_forward x=f32:?nx3\nsoftmax_forward y", {"n=1"}), HasSubstr("line 2: "));
}

}  // namespace
}  // namespace kiln::cli::sweep_test
