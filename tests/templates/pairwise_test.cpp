#include "pairwise.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace kiln::testing_support::pairwise_test {
namespace {

std::vector<Config> grid(int a, int b, int c, int d) {
  std::vector<Config> points;
  for (int i = 0; i < a * b * c * d; ++i) {
    points.push_back(Config({{"A", i / (b * c * d)}, {"B", i / (c * d) % b}, {"C", i / d % c}, {"D", i % d}}));
  }
  return points;
}

using Value = std::pair<std::string, int64_t>;

std::set<std::pair<Value, Value>> pairs_in(const std::vector<Config>& configs) {
  std::set<std::pair<Value, Value>> pairs;
  for (const Config& config : configs) {
    for (const Value& first : config.values()) {
      for (const Value& second : config.values()) pairs.insert({first, second});
    }
  }
  return pairs;
}

TEST(PairwiseCover, MeetsEveryPairThatAnyPointHas) {
  const std::vector<Config> points = grid(4, 3, 2, 5);
  EXPECT_EQ(pairs_in(pairwise_cover(points)), pairs_in(points));
}

TEST(PairwiseCover, IsNotMuchLargerThanTheTwoLargestParametersDemand) {
  const std::vector<Config> cover = pairwise_cover(grid(4, 3, 2, 5));
  EXPECT_GE(cover.size(), 20u);
  EXPECT_LE(cover.size(), 24u);
}

TEST(PairwiseCover, LeavesOutWhatRulesForbid) {
  std::vector<Config> points;
  for (const Config& point : grid(4, 4, 2, 2)) {
    if (*point.find("A") <= *point.find("B")) points.push_back(point);
  }
  const std::vector<Config> cover = pairwise_cover(points);
  EXPECT_EQ(pairs_in(cover), pairs_in(points));
  for (const Config& config : cover) EXPECT_LE(*config.find("A"), *config.find("B"));
}

TEST(PairwiseCover, StartsWithTheDefaultAndRepeatsItself) {
  const std::vector<Config> points = grid(3, 3, 3, 1);
  const std::vector<Config> cover = pairwise_cover(points);
  EXPECT_EQ(cover.front(), points.front());
  EXPECT_EQ(cover, pairwise_cover(points));
}

TEST(PairwiseCover, OfOneParameterIsEveryValue) {
  const std::vector<Config> points = {Config({{"A", 1}}), Config({{"A", 2}}), Config({{"A", 3}})};
  EXPECT_EQ(pairwise_cover(points), points);
}

TEST(PairwiseCover, OfNothingIsNothing) {
  EXPECT_TRUE(pairwise_cover({}).empty());
  EXPECT_EQ(pairwise_cover({Config()}).size(), 1u);
}

}  // namespace
}  // namespace kiln::testing_support::pairwise_test
