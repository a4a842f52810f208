#include "kiln/generator/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"

namespace kiln::space_test {
namespace {

using testing::HasSubstr;

const Target target{Arch::of(9, 0), 13, 0};
const Request request = Request::parse("softmax_forward x=f32:1x8");

Space tiling() {
  Space space;
  space.add(Parameter{"TILE", {16, 32, 64}});
  space.add(Parameter{"ROWS", {8, 4, 32}});
  space.add(Rule{"ROWS divides TILE",
                 [](const Request&, const Target&) { return [](Point point) { return point[0] % point[1] == 0; }; }});
  return space;
}

TEST(Config, PrintsNamesInOrderWhateverTheOrderGiven) {
  EXPECT_EQ(Config({{"TILE", 32}, {"PAD", 1}}).print(), "PAD=1,TILE=32");
  EXPECT_EQ(Config::parse("TILE=32,PAD=1"), Config::parse("PAD=1,TILE=32"));
  EXPECT_EQ(Config::parse("-").print(), "-");
}

TEST(Config, RefusesMalformedText) {
  for (const char* text : {"", "TILE", "TILE=", "TILE=a", "=1", "TILE=1,TILE=2", "TILE=1,"}) {
    EXPECT_THROW(Config::parse(text), Error) << text;
  }
}

TEST(Space, EnumeratesLegalPointsDefaultsFirst) {
  std::vector<std::string> points;
  for (const Config& config : tiling().legal(request, target)) points.push_back(config.print());
  EXPECT_THAT(points, testing::ElementsAre("ROWS=8,TILE=16", "ROWS=4,TILE=16", "ROWS=8,TILE=32", "ROWS=4,TILE=32",
                                           "ROWS=32,TILE=32", "ROWS=8,TILE=64", "ROWS=4,TILE=64", "ROWS=32,TILE=64"));
  EXPECT_EQ(tiling().first_legal(request, target)->print(), "ROWS=8,TILE=16");
  EXPECT_EQ(tiling().size(), 9);
}

TEST(Space, BindsARuleOnceForAllPoints) {
  int bound = 0;
  Space space = tiling();
  space.add(Rule{"counts", [&bound](const Request&, const Target&) {
                   ++bound;
                   return [](Point) { return true; };
                 }});
  EXPECT_EQ(space.legal(request, target).size(), 8u);
  EXPECT_EQ(bound, 1);
}

TEST(Space, RefusalIsTheNameOfTheRuleWithTheValues) {
  const auto why = [](const char* text) {
    return tiling().refusal(Config::parse(text), request, target).value_or("legal");
  };
  EXPECT_EQ(why("ROWS=32,TILE=16"), "ROWS divides TILE (ROWS=32,TILE=16)");
  EXPECT_EQ(why("ROWS=8,TILE=16"), "legal");
  EXPECT_EQ(why("TILE=16"), "parameter ROWS is missing");
  EXPECT_EQ(why("ROWS=8,TILE=16,WARPS=4"), "no parameter WARPS");
  EXPECT_EQ(why("ROW=8,TILE=16"), "no parameter ROW: did you mean ROWS?");
  EXPECT_THAT(why("ROWS=8,TILE=17"), HasSubstr("TILE=17 is not one of 16, 32, 64"));
}

TEST(Space, WithoutParametersHasOnePoint) {
  EXPECT_EQ(Space().legal(request, target).size(), 1u);
  EXPECT_EQ(Space().first_legal(request, target)->print(), "-");
}

TEST(Arch, KnowsTheLimitsAndRefusesTheUnknown) {
  EXPECT_EQ(Arch::of(9, 0).shared_per_block, 227 * 1024);
  EXPECT_EQ(Arch::of(8, 7).name(), "sm_87");
  EXPECT_THROW(Arch::of(7, 0), Error);
  EXPECT_TRUE(Arch::of(9, 0).at_least(8, 9));
  EXPECT_FALSE(Arch::of(8, 0).at_least(8, 6));
}

}  // namespace
}  // namespace kiln::space_test
