#include "kiln/generator/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kiln/base/error.h"
#include "kiln/generator/arch.h"

namespace kiln::space_test {
namespace {

using testing::HasSubstr;

Space tiling() {
  Space space;
  space.add(Parameter{"TILE", {16, 32, 64}});
  space.add(Parameter{"ROWS", {8, 4, 32}});
  space.add(Rule{"ROWS divides TILE"});
  return space;
}

std::optional<size_t> broken_in_tiling(Point point) {
  return point[0] % point[1] == 0 ? std::nullopt : std::optional<size_t>(0);
}

std::vector<std::string> legal_points(const Space& space, const BrokenRule& broken) {
  std::vector<std::string> points;
  space.for_each_legal(broken, [&](const Config& config) {
    points.push_back(config.print());
    return true;
  });
  return points;
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
  EXPECT_THAT(legal_points(tiling(), broken_in_tiling),
              testing::ElementsAre("ROWS=8,TILE=16", "ROWS=4,TILE=16", "ROWS=8,TILE=32", "ROWS=4,TILE=32",
                                   "ROWS=32,TILE=32", "ROWS=8,TILE=64", "ROWS=4,TILE=64", "ROWS=32,TILE=64"));
  EXPECT_EQ(tiling().size(), 9);
}

TEST(Space, StopsWhereItIsToldTo) {
  int visited = 0;
  tiling().for_each_legal(broken_in_tiling, [&](const Config&) { return ++visited < 3; });
  EXPECT_EQ(visited, 3);
}

TEST(Space, RefusalNamesTheRuleAndTheValuesThatWouldBeLegal) {
  const auto why = [](const char* text) {
    return tiling().refusal(Config::parse(text), broken_in_tiling).value_or("legal");
  };
  EXPECT_EQ(why("ROWS=32,TILE=16"),
            "ROWS divides TILE (ROWS=32,TILE=16): legal with TILE=32 or 64, or with ROWS=4 or 8");
  EXPECT_EQ(why("ROWS=8,TILE=16"), "legal");
  EXPECT_EQ(why("TILE=16"), "parameter ROWS is missing");
  EXPECT_EQ(why("ROWS=8,TILE=16,WARPS=4"), "no parameter WARPS: there are TILE, ROWS");
  EXPECT_EQ(why("ROW=8,TILE=16"), "no parameter ROW: did you mean ROWS?");
  EXPECT_EQ(why("ROWS=8,TILE=17"), "TILE=17 is not one of 16, 32, 64");
  EXPECT_EQ(why("ROWS=5,TILE=16"), "ROWS=5 is not one of 4, 8, 32") << "in order, not as tuning tries them";
  EXPECT_EQ(Space().refusal(Config::parse("TILE=1"), broken_in_tiling), "no parameter TILE: there is none");
  const auto all_broken = [](Point) { return std::optional<size_t>(0); };
  EXPECT_EQ(tiling().refusal(Config::parse("ROWS=8,TILE=16"), all_broken),
            "ROWS divides TILE (ROWS=8,TILE=16): no other value of one parameter makes it legal");
}

TEST(Space, WithoutParametersHasOnePoint) {
  EXPECT_THAT(legal_points(Space(), [](Point) { return std::nullopt; }), testing::ElementsAre("-"));
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
