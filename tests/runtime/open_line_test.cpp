// Lines with open extents: what they say, and the sizes that numbers make of them.
#include "kiln/runtime/open_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::open_line_test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const std::string& line) {
  std::vector<std::string> names;
  for (const OpenName& name : parse_open_line(line).names) {
    names.push_back(name.name + (name.is_named ? " named" : "") + " <= " + std::to_string(name.most));
  }
  return names;
}

std::string refusal(const std::string& line) {
  try {
    (void)parse_open_line(line);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument) << line;
    EXPECT_NE(error.hint(), "") << line;
    return error.message();
  }
  return "accepted";
}

TEST(OpenLine, ExtentsWithoutANameAreEqualAtTheSamePlace) {
  EXPECT_THAT(names_of("softmax_forward x=f32:?x? y=f32:?x?"), ElementsAre("place 0 <= 16384", "place 1 <= 16384"));
  EXPECT_EQ(parse_open_line("softmax_forward x=f32:?x? y=f32:?x?:nc").with({{"place 0", 2}, {"place 1", 31}}),
            "softmax_forward x=f32:2x31 y=f32:2x31:nc");
}

TEST(OpenLine, TheLeastLimitOfANumberHolds) {
  EXPECT_THAT(names_of("softmax_forward x=f32:?300x?1 y=f32:?40x?"), ElementsAre("place 0 <= 40", "place 1 <= 1"));
}

// Names are no limits: a number that somebody gives stays what it is.
TEST(OpenLine, NumbersForNamesAreTakenAsTheyAre) {
  const OpenLine line = parse_open_line("softmax_forward x=f32:?nx?c2@8 axis=1");
  EXPECT_THAT(names_of("softmax_forward x=f32:?nx?c2@8 axis=1"), ElementsAre("n named <= 16384", "c2 named <= 16384"));
  EXPECT_EQ(line.with({{"n", 20000}, {"c2", 7}}), "softmax_forward x=f32:20000x7@8 axis=1");
}

TEST(OpenLine, AnExtentMayFollowFromNames) {
  const std::string text = "pool_backward dy=f32:?nx3x?(h-1)/2+1x?ceil_div(w,2):nhwc x=f32:?nx3x?hx?w";
  const OpenLine line = parse_open_line(text);
  EXPECT_THAT(names_of(text), ElementsAre("n named <= 16384", "h named <= 16384", "w named <= 16384"));
  EXPECT_EQ(line.with({{"n", 1}, {"h", 8}, {"w", 9}}), "pool_backward dy=f32:1x3x4x5:nhwc x=f32:1x3x8x9");
  EXPECT_EQ(parse_open_line("gemm a=f16:?mx?4*c+b-1").with({{"m", 2}, {"c", 3}, {"b", 5}}), "gemm a=f16:2x16");
}

TEST(OpenLine, ANumberThatMakesNoExtentIsAnError) {
  const OpenLine line = parse_open_line("softmax_forward x=f32:?hx?(h-8)/2");
  EXPECT_EQ(line.with({{"h", 8}}), "softmax_forward x=f32:8x0") << "for Request::parse() to judge";
  try {
    (void)line.with({{"h", 7}});
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.message(), AllOf(HasSubstr("the extent has no value: '(h-8)/2'"), HasSubstr("-1 divided by 2")));
    EXPECT_THAT(error.hint(), HasSubstr("a number of 0 or more can be divided"));
  }
}

TEST(OpenLine, RefusesWhatIsNoOpenExtent) {
  EXPECT_THAT(refusal("softmax_forward x=f32:?0x3"), HasSubstr("?0"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?1234567890x3"), HasSubstr("too large"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?(h-1x3"), AllOf(HasSubstr("'?(h-1'"), HasSubstr("expected ')'")));
  EXPECT_THAT(refusal("softmax_forward x=f32:?h*"), HasSubstr("the expression ends where a value was expected"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?3+4x2"), HasSubstr("it names no other"));
  EXPECT_THAT(refusal("softmax_forward x=f32:?h=3"), HasSubstr("'=' has no meaning in it"));
  for (const char* const other : {"?h<5", "?h==3", "?h?3:4", "?!h", "?h&&3"}) {
    EXPECT_THAT(refusal(std::string("softmax_forward x=f32:3x") + other), HasSubstr("has no meaning in it")) << other;
  }
  EXPECT_THAT(refusal("softmax_forward x=f32:?2h"), HasSubstr("'h' was not expected here"));
  for (const char* const name : {"?max(h,3)", "?boxes", "?exp+1", "?axb"}) {
    EXPECT_THAT(refusal(std::string("softmax_forward x=f32:3x") + name), HasSubstr("x begins the next extent")) << name;
  }
  EXPECT_EQ(refusal("softmax_forward x=f32:?ab4x?\r"), "accepted");
}

}  // namespace
}  // namespace kiln::open_line_test
