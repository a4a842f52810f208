#include "kiln/tuner/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "kiln/base/tie.h"

namespace kiln::tuner::timing_test {
namespace {

/// Runs a race to its end; returns the order in which candidates were sampled.
std::vector<size_t> run(Race& race, const std::function<double(size_t)>& sample) {
  std::vector<size_t> order;
  while (const auto turn = race.next()) {
    for (int i = 0; i < turn->samples; ++i) {
      order.push_back(turn->candidate);
      race.add(turn->candidate, sample(turn->candidate));
    }
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

// Ranks n/2 -+ 0.98 sqrt(n), counted from 0, of samples that are their own ranks.
TEST(Summary, HasTheIntervalOfItsOrderStatistics) {
  for (const auto& [n, low, high] :
       {std::tuple(1, 0, 0), {4, 0, 3}, {7, 0, 6}, {9, 1, 8}, {31, 10, 21}, {60, 22, 38}, {100, 40, 60}}) {
    std::vector<double> samples;
    for (int i = n; i-- > 0;) samples.push_back(i);
    const Summary summary = summarise(samples);
    EXPECT_EQ(summary.low, low) << n;
    EXPECT_EQ(summary.high, high) << n;
    EXPECT_EQ(summary.half_width(), (high - low) / 2.0) << n;
    EXPECT_EQ(summary.median, (n - 1) / 2.0) << n;
  }
}

// docs/tuning.md, "How variants are timed".
TEST(TimingOptions, AreThoseOfThePage) {
  const TimingOptions options;
  EXPECT_EQ(options.screening_samples, 3);
  EXPECT_EQ(options.min_samples, 7);
  EXPECT_EQ(options.doubt_samples, 24);
  EXPECT_EQ(options.max_samples, 60);
  EXPECT_EQ(options.turn_samples, 2);
  EXPECT_EQ(options.lap_samples, 12);
  EXPECT_EQ(options.reject_margin, 0.1);
  EXPECT_EQ(options.precision, 0.01);
  EXPECT_EQ(options.steady, 0.03);
  EXPECT_EQ(options.most_laps, 4) << "the first, and three more";
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

TEST(Race, SamplesTheLeaderAgainAfterEveryLapOfTheOthers) {
  Race race({.screening_samples = 1, .min_samples = 4, .turn_samples = 1}, false);
  for (int i = 0; i < 3; ++i) race.enter();
  const auto time = [](size_t i) { return i == 0 ? 1.0 : 1.02; };
  EXPECT_THAT(run(race, time), testing::ElementsAre(0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0));
}

TEST(Race, EndsALapWhenItIsFull) {
  Race race({.screening_samples = 2, .min_samples = 2, .lap_samples = 4}, false);
  for (int i = 0; i < 4; ++i) race.enter();
  const auto time = [](size_t i) { return i == 0 ? 1.0 : 1.02; };
  EXPECT_THAT(run(race, time), testing::ElementsAre(0, 0, 1, 1, 2, 2, 0, 3, 3, 0));
}

TEST(Race, ConfirmsEveryScreeningWhileMoreAreOnTheirWay) {
  Race race({.screening_samples = 1}, false);
  race.enter();
  EXPECT_EQ(race.next_of_screening(), (Race::Turn{0, 1}));
  race.add(0, 1);
  EXPECT_EQ(race.next_of_screening(), std::nullopt) << "there is nobody to compare with";
  race.enter();
  EXPECT_EQ(race.next_of_screening(), (Race::Turn{1, 1}));
  race.add(1, 2);
  EXPECT_FALSE(race.is_rejected(1)) << "the clock may have stepped";
  EXPECT_EQ(race.next_of_screening(), (Race::Turn{0, 1}));
  race.add(0, 1);
  EXPECT_TRUE(race.is_rejected(1));
  EXPECT_EQ(race.next_of_screening(), std::nullopt);
}

TEST(Race, StatesTimesAtThePaceOfTheFirstCandidate) {
  // From the tenth sample on all takes twice as long. Without the pace, whom that hits would look slow.
  Race race({}, false);
  for (int i = 0; i < 3; ++i) race.enter();
  int n = 0;
  run(race, [&](size_t i) { return (i == 1 ? 0.95 : 1.0) * (++n < 10 ? 1 : 2); });
  EXPECT_EQ(race.leader(), 1U);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_THAT(race.samples(i), testing::Each(testing::DoubleNear(i == 1 ? 0.95 : 1.0, 1e-12))) << i;
    EXPECT_FALSE(race.is_rejected(i)) << i;
  }
}

TEST(Race, TakesALapAgainInWhichTheClockStepped) {
  Race race({.screening_samples = 1}, false);
  race.enter();
  race.enter();
  race.add(0, 1);
  race.add(1, 3);  // three times as slow now, or only later?
  race.add(0, 3);
  EXPECT_TRUE(race.samples(1).empty());
  EXPECT_EQ(race.next(), (Race::Turn{1, 1}));
  race.add(1, 3);
  race.add(0, 3);
  EXPECT_THAT(race.samples(1), testing::ElementsAre(1));
}

TEST(Race, CountsALapOfADeviceThatIsNeverSteady) {
  const TimingOptions options{.screening_samples = 1};
  Race race(options, false);
  race.enter();
  race.enter();
  race.add(0, 1);
  double leader = 1;
  int laps = 0;
  while (race.samples(1).empty() && laps < 100) {
    ++laps;
    race.add(1, 1);
    race.add(0, leader = 3 - leader);
  }
  EXPECT_EQ(laps, options.most_laps);
}

TEST(Race, TakesALapOfANoisyLeaderForSteady) {
  // Its quartiles are 10% apart: 15% between two samples is no step.
  Race race({.screening_samples = 4}, false);
  race.enter();
  race.enter();
  for (const double seconds : {1.0, 1.1, 1.0, 1.1}) race.add(0, seconds);
  race.add(1, 1.05);
  race.add(0, 1.05 * 1.15);
  EXPECT_EQ(race.samples(1).size(), 1U);
}

TEST(Race, TakesMoreSamplesWhereATieIsInDoubt) {
  const TimingOptions options;
  const auto samples_at = [&](double slower) {
    Race race(options, false);
    race.enter();
    race.enter();
    int n = 0;
    run(race, [&](size_t i) { return i == 0 ? 1.0 : slower * (++n % 2 == 0 ? 1.001 : 0.999); });
    return static_cast<int>(race.samples(1).size());
  };
  EXPECT_LT(samples_at(1.005), options.min_samples + options.turn_samples);
  EXPECT_GE(samples_at(1.01), options.doubt_samples);
  EXPECT_LT(samples_at(1.015), options.min_samples + options.turn_samples);
}

TEST(Race, CountsTheLapAtWorkWhenItIsClosed) {
  Race race({.screening_samples = 1}, false);
  race.enter();
  race.enter();
  race.add(0, 1);
  race.add(1, 1.5);
  race.close();
  EXPECT_THAT(race.samples(1), testing::ElementsAre(1.5));
  EXPECT_TRUE(race.is_rejected(1));
}

TEST(Race, GoesOnWhenTheOneThatSetThePaceIsWithdrawn) {
  Race race({.screening_samples = 1}, false);
  race.enter();
  race.enter();
  race.add(0, 1);
  race.add(1, 1.5);
  race.withdraw(0);
  EXPECT_THAT(race.samples(1), testing::ElementsAre(1.5));
  EXPECT_EQ(race.leader(), 1U);
  EXPECT_TRUE(race.next());
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

/// A race of two, screened by these samples at a pace that stays 1. The leader takes a second each time.
Race screened(TimingOptions options, const std::vector<double>& samples) {
  options.screening_samples = static_cast<int>(samples.size());
  options.min_samples = std::min(options.min_samples, options.screening_samples);
  options.lap_samples = 100;
  Race race(options, false);
  race.enter();
  race.enter();
  for (size_t i = 0; i < samples.size(); ++i) race.add(0, 1);
  for (const double sample : samples) race.add(1, sample);
  race.add(0, 1);
  return race;
}

TEST(Race, KnowsAMedianWhoseIntervalIsAsNarrowAsAskedFor) {
  for (const auto& [precision, is_known] : {std::pair(0.25, true), {0.2, false}}) {
    Race race({.screening_samples = 4, .min_samples = 4, .doubt_samples = 4, .precision = precision}, false);
    race.enter();
    for (const double sample : {3.0, 5.0, 3.0, 5.0}) race.add(0, sample);  // 4 -+ 1
    EXPECT_EQ(race.next() == std::nullopt, is_known) << precision;
  }
}

// An interval from the limit on may tie; one that ends there ties.
TEST(Race, DoubtsATieWhoseLimitLiesInTheInterval) {
  const double limit = tie_limit(1.0);
  const TimingOptions options{.doubt_samples = 8, .reject_margin = 1, .precision = 1};
  EXPECT_EQ(screened(options, {limit, limit, 1.2, 1.2}).next(), (Race::Turn{1, options.turn_samples}));
  EXPECT_EQ(screened(options, {1, 1, limit, limit}).next(), std::nullopt);
  EXPECT_EQ(screened(options, {1, 1, limit * 1.001, limit}).next(), (Race::Turn{1, options.turn_samples}));
  EXPECT_EQ(screened({.doubt_samples = 4, .reject_margin = 1, .precision = 1}, {1, 1, 1.2, 1.2}).next(), std::nullopt)
      << "there are as many as doubt asks for";
}

TEST(Race, RejectsWhatIsBeyondTheMarginAndNotWhatIsAtIt) {
  EXPECT_FALSE(screened({.reject_margin = 0.5}, {1.5, 1.5, 1.5}).is_rejected(1));
  EXPECT_TRUE(screened({.reject_margin = 0.5}, {1.501, 1.501, 1.501}).is_rejected(1));
  EXPECT_FALSE(screened({.reject_margin = 0.5}, {2, 2, 1.5}).is_rejected(1)) << "its fastest counts";
}

// With many samples one that was fast by chance saves nobody: the interval of the median does not reach it.
TEST(Race, RejectsByTheMedianOnceThatIsKnown) {
  std::vector<double> samples(31, 2);
  samples[7] = 1;
  EXPECT_TRUE(screened({}, samples).is_rejected(1));
}

TEST(Race, IsLedByTheFirstOfEquals) {
  EXPECT_EQ(screened({}, {1, 1, 1}).leader(), 0U);
  EXPECT_EQ(screened({}, {0.9, 0.9, 0.9}).leader(), 1U);
}

TEST(Race, TakesALapForSteadyUpToTheShareThatIsAskedFor) {
  for (const auto& [last, is_steady] : {std::pair(1.25, true), {0.8, true}, {1.26, false}, {0.79, false}}) {
    Race race({.screening_samples = 2, .steady = 0.25}, false);
    race.enter();
    race.enter();
    for (const size_t candidate : {0, 0, 1}) race.add(candidate, 1);
    race.add(0, last);
    ASSERT_EQ(race.samples(1).size(), is_steady ? 1U : 0U) << last;
    if (is_steady) {
      EXPECT_DOUBLE_EQ(race.samples(1)[0], 1 / std::sqrt(last)) << "at the pace between both ends";
    }
  }
}

// The quartiles of 1, 1, 1, 1, 1.1, 1.1, 1.1, 5 are 0.1 apart, a share of 1/11: its double is 18%.
TEST(Race, TakesTwiceTheDistanceOfTheQuartilesForSteady) {
  for (const auto& [last, is_steady] : {std::pair(1.18, true), {1.19, false}}) {
    Race race({.screening_samples = 8}, false);
    race.enter();
    race.enter();
    for (const double seconds : {5.0, 1.0, 1.1, 1.0, 1.1, 1.0, 1.1, 1.0}) race.add(0, seconds);
    race.add(1, 1.05);
    race.add(0, 1.05 * last);
    EXPECT_EQ(race.samples(1).size(), is_steady ? 1U : 0U) << last;
  }
}

// Behind a lap that counted, as many may be lost again.
TEST(Race, CountsTheLapsThatAreLostOneAfterTheOther) {
  Race race({.screening_samples = 8, .most_laps = 3}, false);
  race.enter();
  race.enter();
  for (int i = 0; i < 8; ++i) race.add(0, 1);
  std::vector<size_t> counted;
  for (const double leader : {2.0, 1.0, 2.0, 1.0, 2.0, 1.0}) {
    race.add(1, 3);
    race.add(0, leader);
    counted.push_back(race.samples(1).size());
  }
  EXPECT_THAT(counted, testing::ElementsAre(0, 0, 1, 1, 1, 2));
}

TEST(Race, ForgetsTheLapOfWhomIsWithdrawnAlone) {
  Race race({.screening_samples = 1}, false);
  for (int i = 0; i < 3; ++i) race.enter();
  for (size_t i = 0; i < 3; ++i) race.add(i, 1);
  race.withdraw(1);
  EXPECT_EQ(race.next_of_screening(), (Race::Turn{0, 1}));
  race.add(0, 1);
  EXPECT_TRUE(race.samples(1).empty());
  EXPECT_THAT(race.samples(2), testing::ElementsAre(1));
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
}  // namespace kiln::tuner::timing_test
