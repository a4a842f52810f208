#include "kiln/tuner/shard.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "kiln/base/error.h"

namespace kiln::tuner::shard_test {
namespace {

/// As the layers of models are: many small ones, some that take a hundred times as long.
std::vector<Load> loads_of(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::lognormal_distribution<double> seconds(0, 1.2);
  std::vector<Load> loads;
  for (size_t i = 0; i < count; ++i) loads.push_back({"request " + std::to_string(i), seconds(random)});
  return loads;
}

double largest_share(const std::vector<Load>& loads, const std::vector<uint64_t>& shards, uint64_t count) {
  std::vector<double> taken(count, 0.0);
  double sum = 0;
  for (size_t i = 0; i < loads.size(); ++i) {
    taken.at(shards[i]) += loads[i].seconds;
    sum += loads[i].seconds;
  }
  return *std::max_element(taken.begin(), taken.end()) * static_cast<double>(count) / sum;
}

TEST(Shards, TakeAboutEquallyLong) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Load> loads = loads_of(200, seed);
    for (const uint64_t count : {2, 4, 7}) EXPECT_LE(largest_share(loads, shards_of(loads, count), count), 1.25);
  }
}

TEST(Shards, OneLoadThatIsMostOfAllIsAlone) {
  std::vector<Load> loads = loads_of(20, 1);
  loads.push_back({"large", 1000});
  const std::vector<uint64_t> shards = shards_of(loads, 3);
  EXPECT_EQ(std::count(shards.begin(), shards.end(), shards.back()), 1);
}

TEST(Shards, DoNotDependOnTheOrder) {
  std::vector<Load> loads = loads_of(100, 2);
  std::map<std::string, uint64_t> first;
  const std::vector<uint64_t> shards = shards_of(loads, 5);
  for (size_t i = 0; i < loads.size(); ++i) first[loads[i].key] = shards[i];
  std::shuffle(loads.begin(), loads.end(), std::mt19937(3));
  const std::vector<uint64_t> again = shards_of(loads, 5);
  for (size_t i = 0; i < loads.size(); ++i) EXPECT_EQ(again[i], first.at(loads[i].key));
}

TEST(Shards, FurtherLoadsLeaveNearlyAllWhereTheyWere) {
  size_t moved = 0, all = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const std::vector<Load> loads = loads_of(100, seed);
    const std::vector<Load> fewer(loads.begin(), loads.end() - 5);
    const std::vector<uint64_t> before = shards_of(fewer, 4), after = shards_of(loads, 4);
    for (size_t i = 0; i < before.size(); ++i) moved += before[i] != after[i] ? 1 : 0;
    all += before.size();
  }
  EXPECT_LE(moved * 8, all) << moved << " of " << all;
}

TEST(Shards, NeverMove) {
  // Shards run on different machines and days; this must not change.
  const std::vector<Load> loads = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 3}, {"f", 0}};
  EXPECT_EQ(shards_of(loads, 1), (std::vector<uint64_t>(6, 0)));
  EXPECT_EQ(shards_of(loads, 3), (std::vector<uint64_t>{1, 2, 2, 1, 0, 2}));
  EXPECT_EQ(shards_of(loads, 1'000'000'000), (std::vector<uint64_t>{41, 28, 42, 4, 34, 8}));
  std::vector<Load> many;
  for (int i = 0; i < 40; ++i) many.push_back({"request " + std::to_string(i), static_cast<double>(1 + i * i % 17)});
  std::string all;
  for (const uint64_t shard : shards_of(many, 7)) all += std::to_string(shard);
  EXPECT_EQ(all, "1055231012453531516024053666060340315542");
}

TEST(Shards, MayBeMoreThanThereAreLoads) {
  const std::vector<Load> loads = loads_of(3, 4);
  std::vector<uint64_t> shards = shards_of(loads, 1'000'000'000);
  std::sort(shards.begin(), shards.end());
  EXPECT_EQ(std::unique(shards.begin(), shards.end()), shards.end()) << "each has one of its own";
  EXPECT_TRUE(shards_of({}, 3).empty());
}

TEST(Shards, AreParsed) {
  EXPECT_EQ(Shard::parse("2/7").index, 2U);
  EXPECT_EQ(Shard::parse("2/7").count, 7U);
  for (const char* text : {"", "1", "1/", "/2", "2/2", "-1/2", "1/0", "a/b", "0/1 "}) {
    EXPECT_THROW(Shard::parse(text), Error) << text;
  }
  EXPECT_EQ(Shard::parse("99999/100000").count, Shard::most);
  EXPECT_THROW(Shard::parse("0/100001"), Error);
}

}  // namespace
}  // namespace kiln::tuner::shard_test
