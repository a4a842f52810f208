#include "statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "comparison.h"
#include "kiln/reference/fill.h"

namespace kiln::bench::statistics_test {
namespace {

double uniform(uint64_t seed, uint64_t counter) {
  return static_cast<double>(reference::random_bits(seed, counter) >> 11) * 0x1p-53;
}

TEST(PairedRatio, IsTheirsOverOurs) {
  const std::vector<double> ours = {1, 2, 4}, theirs = {2, 4, 8};
  const PairedRatio ratio = paired_ratio(ours, theirs);
  EXPECT_EQ(ratio.median, 2);
  EXPECT_EQ(ratio.low, 2);
  EXPECT_EQ(ratio.high, 2);
  EXPECT_EQ(ratio.pairs, 3);
  EXPECT_EQ(ratio.verdict(), "faster");
}

// Drift of the device for a while slows both of a pair: the ratio does not see it.
TEST(PairedRatio, DoesNotSeeDriftThatHitsBothOfAPair) {
  std::vector<double> ours, theirs;
  for (int i = 0; i < 40; ++i) {
    const double drift = 1 + 0.5 * std::sin(i);
    ours.push_back(drift);
    theirs.push_back(0.97 * drift);
  }
  const PairedRatio ratio = paired_ratio(ours, theirs);
  EXPECT_NEAR(ratio.low, 0.97, 1e-12);
  EXPECT_NEAR(ratio.high, 0.97, 1e-12);
  EXPECT_EQ(ratio.verdict(), "slower");
}

TEST(PairedRatio, TheIntervalCoversTheTrueMedianAbout95TimesOutOf100) {
  int covered = 0;
  for (uint64_t experiment = 0; experiment < 1000; ++experiment) {
    std::vector<double> ours, theirs;
    for (uint64_t i = 0; i < 30; ++i) {  // skewed noise around a true median ratio of 1
      ours.push_back(1);
      theirs.push_back(std::exp(0.2 * std::pow(2 * uniform(experiment, i) - 1, 3)));
    }
    const PairedRatio ratio = paired_ratio(ours, theirs);
    covered += ratio.low <= 1 && 1 <= ratio.high;
  }
  EXPECT_GE(covered, 930);
  EXPECT_LE(covered, 990);
}

TEST(PairedRatio, IsEvenWhereTheIntervalHoldsOne) {
  const std::vector<double> ours = {1, 1, 1, 1, 1}, theirs = {0.9, 1.1, 1, 1.2, 0.8};
  EXPECT_EQ(paired_ratio(ours, theirs).verdict(), "even");
  EXPECT_EQ(paired_ratio({}, {}).pairs, 0);
}

TEST(GeometricMean, IsThatOfTheRatiosInsideItsInterval) {
  const std::vector<double> ratios = {0.5, 2, 1, 4, 0.25, 1, 1.5};
  const Interval mean = geometric_mean(ratios);
  EXPECT_NEAR(mean.value, std::pow(1.5, 1.0 / 7), 1e-12);
  EXPECT_LT(mean.low, mean.value);
  EXPECT_GT(mean.high, mean.value);
  EXPECT_EQ(geometric_mean(ratios).low, mean.low);  // seeded
  const std::vector<double> one = {3};
  EXPECT_NEAR(geometric_mean(one).low, 3, 1e-12);
  EXPECT_EQ(geometric_mean({}).value, 0);
}

TEST(StopRule, WaitsForPrecisionAndForNoMorePairsThanMayBe) {
  const StopRule rule{.least = 9, .most = 20, .precision = 0.01};
  EXPECT_FALSE(rule.satisfied({1, 1, 1, 8}));
  EXPECT_TRUE(rule.satisfied({1, 0.995, 1.005, 9}));
  EXPECT_FALSE(rule.satisfied({1, 0.9, 1.1, 19}));
  EXPECT_TRUE(rule.satisfied({1, 0.9, 1.1, 20}));
}

TEST(RelativeError, IsThatOfTheWholeAndInfiniteForWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(relative_error({3, 4}, {3, 4}), 0);
  EXPECT_DOUBLE_EQ(relative_error({3, 5}, {3, 4}), 0.2);
  EXPECT_DOUBLE_EQ(relative_error({1}, {0}), 1);
  EXPECT_TRUE(std::isinf(relative_error({NAN, 4}, {3, 4})));
  EXPECT_TRUE(std::isinf(relative_error({3, INFINITY}, {3, 4})));
}

}  // namespace
}  // namespace kiln::bench::statistics_test
