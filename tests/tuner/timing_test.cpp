#include "kiln/tuner/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <vector>

namespace kiln::tuner {
namespace {

/// Runs a race to its end; returns the order in which candidates were sampled.
std::vector<size_t> run(Race& race, const std::function<double(size_t)>& sample) {
  std::vector<size_t> order;
  while (const auto candidate = race.next()) {
    order.push_back(*candidate);
    race.add(*candidate, sample(*candidate));
  }
  return order;
}

TEST(Summary, HasTheMedianOfOddAndEvenSamples) {
  EXPECT_DOUBLE_EQ(summarise({3, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(summarise({4, 1, 2, 3}).median, 2.5);
  EXPECT_DOUBLE_EQ(summarise({}).median, 0);
}

TEST(Summary, CoversTheMedianNineteenTimesOutOfTwenty) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> skewed(1);
  const double median = std::log(2.0);
  int covered = 0;
  constexpr int rounds = 2000;
  for (int i = 0; i < rounds; ++i) {
    std::vector<double> samples(31);
    for (double& sample : samples) sample = skewed(random);
    const Summary summary = summarise(samples);
    covered += summary.low <= median && median <= summary.high ? 1 : 0;
  }
  EXPECT_GE(covered, 0.94 * rounds);
  EXPECT_LE(covered, 0.995 * rounds);
}

TEST(Race, TakesOneSampleOfADeterministicDevice) {
  Race race({}, true);
  race.enter();
  race.enter();
  EXPECT_THAT(run(race, [](size_t i) { return i == 0 ? 2.0 : 1.0; }), testing::ElementsAre(0, 1));
  EXPECT_EQ(race.leader(), 1U);
}

TEST(Race, RejectsTheClearlySlowerAfterItsScreening) {
  const TimingOptions options;
  Race race(options, false);
  race.enter();
  race.enter();
  run(race, [](size_t i) { return i == 0 ? 1.0 : 1.5; });
  EXPECT_TRUE(race.is_rejected(1));
  EXPECT_FALSE(race.is_rejected(0));
  EXPECT_EQ(race.samples(1).size(), static_cast<size_t>(options.screening_samples));
  EXPECT_GE(race.samples(0).size(), static_cast<size_t>(options.min_samples));
}

TEST(Race, RejectsAnEarlierLeaderWhenAFasterOneComes) {
  Race race({}, false);
  race.enter();
  run(race, [](size_t) { return 2.0; });
  const size_t faster = race.enter();
  run(race, [&](size_t i) { return i == faster ? 1.0 : 2.0; });
  EXPECT_TRUE(race.is_rejected(0));
  EXPECT_EQ(race.leader(), faster);
}

TEST(Race, KeepsWhatIsOnlySlightlySlower) {
  Race race({}, false);
  race.enter();
  race.enter();
  run(race, [](size_t i) { return i == 0 ? 1.0 : 1.05; });
  EXPECT_FALSE(race.is_rejected(1));
}

TEST(Race, InterleavesTheSurvivorsInRounds) {
  Race race({.screening_samples = 1, .min_samples = 4}, false);
  for (int i = 0; i < 3; ++i) race.enter();
  EXPECT_THAT(run(race, [](size_t) { return 1.0; }), testing::ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2));
}

TEST(Race, StopsEarlyWhereSamplesAgreeAndAtTheLimitWhereTheyDoNot) {
  const TimingOptions options;
  Race quiet(options, false), noisy(options, false);
  quiet.enter();
  noisy.enter();
  EXPECT_EQ(run(quiet, [](size_t) { return 1.0; }).size(), static_cast<size_t>(options.min_samples));
  int n = 0;
  EXPECT_EQ(run(noisy, [&](size_t) { return ++n % 2 == 0 ? 1.0 : 2.0; }).size(),
            static_cast<size_t>(options.max_samples));
}

TEST(Race, PicksTheFasterOfTwoUnderDriftThatWouldMisleadOneAfterTheOther) {
  // The device gets 20% slower over time; one candidate is 3% faster.
  Race race({}, false);
  race.enter();
  race.enter();
  double drift = 1;
  run(race, [&](size_t i) {
    drift += 0.002;
    return (i == 1 ? 0.97 : 1.0) * drift;
  });
  EXPECT_EQ(race.leader(), 1U);
}

TEST(Race, GoesOnWithoutTheOneThatWasWithdrawn) {
  Race race({}, false);
  race.enter();
  race.enter();
  race.withdraw(0);
  const std::vector<size_t> order = run(race, [](size_t) { return 1.0; });
  EXPECT_THAT(order, testing::Each(1U));
  EXPECT_EQ(race.leader(), 1U);
}

}  // namespace
}  // namespace kiln::tuner
