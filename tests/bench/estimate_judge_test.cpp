// bench_estimate's judgement on variants whose estimates and times are made up.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "judge.h"

namespace kiln::bench::estimate_judge_test {
namespace {

Candidate candidate(const std::string& algorithm, double estimate) {
  Candidate result;
  result.choice.algorithm = algorithm;
  result.estimate.seconds = estimate;
  return result;
}

std::string name(const std::string& algorithm) {
  return name_of(candidate(algorithm, 0).choice);
}

// 20 algorithms of one point each, in the order of their estimates.
Candidates twenty() {
  Candidates all;
  for (int i = 0; i < 20; ++i) all.ranked.push_back(candidate(std::string(1, static_cast<char>('a' + i)), 1 + i));
  return all;
}

TEST(EstimateJudge, ComparesTheDefaultAndTheSearchWithTheFastest) {
  Times times;
  for (const Candidate& each : twenty().ranked) times[name_of(each.choice)] = 8;
  times[name("b")] = 5;
  times[name("t")] = 4;  // its estimate is the last: the search does not try it
  const EstimateRow row = judge_estimates(twenty(), times);
  EXPECT_EQ(row.timed, 20U);
  EXPECT_EQ(row.standard.choice.algorithm, "a");
  EXPECT_EQ(row.fastest.choice.algorithm, "t");
  EXPECT_DOUBLE_EQ(row.standard_share(), 0.5);
  EXPECT_DOUBLE_EQ(row.tried_share(), 0.8);
  EXPECT_TRUE(row.standard_has_time);
  EXPECT_TRUE(row.tried_have_times);
}

TEST(EstimateJudge, MarksWhatHasNoTime) {
  const EstimateRow row = judge_estimates(twenty(), {{name("c"), 2}, {name("d"), 1}});
  EXPECT_EQ(row.timed, 2U);
  EXPECT_FALSE(row.standard_has_time);
  EXPECT_EQ(row.standard.choice.algorithm, "c") << "the best estimate that has a time stands for the default";
  EXPECT_DOUBLE_EQ(row.standard_share(), 0.5);
  EXPECT_FALSE(row.tried_have_times);
  EXPECT_DOUBLE_EQ(row.tried_share(), 1);
  EXPECT_DOUBLE_EQ(row.spearman, -1);
  EXPECT_EQ(judge_estimates(twenty(), {{name("z"), 1}}).timed, 0U);
}

cache::Record record(const std::string& algorithm, std::string_view outcome, double seconds) {
  cache::Record result;
  result.algorithm = algorithm;
  result.config = "TILE=8";
  result.outcome = outcome;
  result.seconds = seconds;
  return result;
}

TEST(EstimateJudge, TakesTimesOfWhatRanAndIsRight) {
  const std::vector<cache::Record> records = {
      record("a", cache::outcome::timed, 1), record("b", cache::outcome::rejected_early, 2),
      record("c", cache::outcome::predicted, 3), record("d", cache::outcome::wrong_result, 4),
      record("e", cache::outcome::compile_failed, 0)};
  Candidate tiled = candidate("a", 0);
  tiled.choice.config = Config::parse("TILE=8");
  EXPECT_EQ(times_of(records), (Times{{name_of(tiled.choice), 1}, {"b TILE=8", 2}}));
}

TEST(EstimateJudge, UserTemplatesAreNoDefault) {
  Candidates candidates = twenty();
  candidates.ranked.front().user_template = true;
  const EstimateRow row = judge_estimates(candidates, {{name("a"), 1}, {name("b"), 2}});
  EXPECT_EQ(row.standard.choice.algorithm, "b");
  EXPECT_EQ(row.fastest.choice.algorithm, "a");
  EXPECT_TRUE(row.standard_has_time);
}

TEST(EstimateJudge, TheWorstIsNotTheLastAndRanksAreAveraged) {
  const EstimateRow bad = judge_estimates(twenty(), {{name("a"), 4}, {name("b"), 1}}),
                    good = judge_estimates(twenty(), {{name("a"), 1}, {name("b"), 2}});
  const EstimateVerdict verdict = judge_estimates({bad, good});
  EXPECT_DOUBLE_EQ(verdict.worst_standard_share, 0.25);
  EXPECT_DOUBLE_EQ(verdict.spearman, 0) << "-1 and 1";
  const EstimateVerdict twice = judge_estimates({good, good});
  EXPECT_DOUBLE_EQ(twice.spearman, 1);
}

TEST(EstimateJudge, SharesOfSeveralAreGeometricMeans) {
  const EstimateRow all = judge_estimates(twenty(), {{name("a"), 1}}),
                    part = judge_estimates(twenty(), {{name("a"), 4}, {name("b"), 1}});
  const EstimateVerdict verdict = judge_estimates({all, part});
  EXPECT_DOUBLE_EQ(verdict.standard_share, 0.5);
  EXPECT_DOUBLE_EQ(verdict.worst_standard_share, 0.25);
  EXPECT_DOUBLE_EQ(verdict.tried_share, 1);
  EXPECT_EQ(verdict.marked, 2U) << "16 are tried, and no other has a time";
  const EstimateRow untried = judge_estimates(twenty(), {{name("t"), 1}});
  EXPECT_EQ(untried.tried_share(), 0);
  EXPECT_DOUBLE_EQ(judge_estimates({untried, part}).tried_share, 1) << "nothing is known of what it would try";
  const EstimateRow quarter = judge_estimates(twenty(), {{name("a"), 4}, {name("t"), 1}});
  EXPECT_DOUBLE_EQ(judge_estimates({untried, quarter}).tried_share, 0.25) << "of one row";
}

}  // namespace
}  // namespace kiln::bench::estimate_judge_test
