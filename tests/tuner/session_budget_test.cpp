// Time of a session and how it ends.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "fakes.h"
#include "session_fixture.h"

namespace kiln::tuner::session_budget_test {
namespace {

using fakes::toy;
using fakes::toy_catalogue;
using fakes::toy_request;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(SessionTest, SharesTheBudgetEquallyWhereAllIsEqualAndGivesEveryRequestItsDefault) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  SessionOptions how = options();
  how.budget_seconds = 0.75;  // eight checks
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}, {toy_request(3), 1}, {toy_request(4), 1}}, how);
  for (const JobResult& result : results) {
    EXPECT_EQ(result.status, JobStatus::out_of_time);
    EXPECT_TRUE(result.heuristic);
    EXPECT_THAT(result.trials, SizeIs(2));
  }
  EXPECT_LT(laboratory.now, 0.85);
}

TEST_F(SessionTest, SpendsTheBudgetWhereMostCanBeSaved) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1e-3)});
  SessionOptions how = options();
  how.budget_seconds = 1.55;  // 16 checks
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 96}, {toy_request(3), 3}}, how);
  EXPECT_THAT(results[1].trials, SizeIs(10)) << "all there is: it is 96% of the time";
  EXPECT_GE(results[2].trials.size(), results[0].trials.size());
  for (const JobResult& result : results) EXPECT_TRUE(result.heuristic);
}

TEST_F(SessionTest, DecidesAgainAsResultsCome) {
  // Predicted alike, and occurring alike; measured, one is a thousand times the other.
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  for (int tile = 1; tile <= 8; ++tile) {
    laboratory.behaviours[fmt::format("first TILE={} for {}", tile, toy_request(2).key())] = {.seconds = 1};
  }
  SessionOptions how = options();
  how.budget_seconds = 0.95;  // ten checks
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}}, how);
  EXPECT_THAT(results[0].trials, SizeIs(2));
  EXPECT_THAT(results[1].trials, SizeIs(8));
}

// A trial of one costs ten times as much as one of the other; all else is equal.
TEST_F(SessionTest, ATurnThatTakesLongWeighsWhatItGains) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  laboratory.on_check = [this] {
    const auto begun = std::find_if(laboratory.log.rbegin(), laboratory.log.rend(),
                                    [](const std::string& line) { return line.starts_with("begin "); });
    if (*begun == "begin " + toy_request(1).key()) laboratory.now += 0.9;
  };
  SessionOptions how = options();
  how.budget_seconds = 3.05;
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}}, how);
  EXPECT_THAT(results[1].trials, SizeIs(8)) << "all there is";
  EXPECT_LT(results[0].trials.size(), 4U);
}

TEST_F(SessionTest, LeavesALayerAtItsRooflineAlone) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  for (int tile = 1; tile <= 8; ++tile) {
    laboratory.behaviours[fmt::format("first TILE={} for {}", tile, toy_request(2).key())] = {.seconds = 1e-12};
  }
  SessionOptions how = options();
  how.budget_seconds = 0.75;
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 100}}, how);
  EXPECT_THAT(results[1].trials, SizeIs(1));
  EXPECT_THAT(results[0].trials, SizeIs(7));
}

// Compilers that are idle work for the request whose next trial is worth most. What is on its way to the device counts
// as tried: else one request would have them to itself.
TEST_F(SessionTest, CompilesAheadForOthersWhereOneHasMuchOnItsWay) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 1e-3)});
  SessionOptions how = options();
  how.budget_seconds = 4;
  run({{toy_request(1), 4}, {toy_request(2), 3}, {toy_request(3), 2}, {toy_request(4), 2}}, how);
  const auto place_of = [&](int tile, int rows) {
    const std::string source = fmt::format("first TILE={} for {}", tile, toy_request(rows).key());
    return std::find(laboratory.compiled.begin(), laboratory.compiled.end(), source) - laboratory.compiled.begin();
  };
  ASSERT_LT(place_of(8, 2), std::ssize(laboratory.compiled));
  EXPECT_LT(place_of(6, 2), place_of(3, 3)) << "two of request 2 are on their way,";
  for (const int rows : {3, 4}) EXPECT_LT(place_of(4, rows), place_of(7, 2)) << "and the others have their turn first";
}

TEST(Worth, IsWhatOneMoreTrialIsExpectedToSavePerSecond) {
  const Prospect prospect{.count = 3, .seconds = 5, .roofline_seconds = 1, .trials = 1, .cost = 2};
  EXPECT_DOUBLE_EQ(worth_of(prospect), 3 * 4 * 0.5 / 2);
  EXPECT_EQ(worth_of({.count = 3, .seconds = 1, .roofline_seconds = 2}), 0);
}

TEST_F(SessionTest, WaitsForTheDefaultThoughItsCompilerHungOnce) {
  laboratory.behaviours["first"].compile_failures = {hang};
  SessionOptions how = options();
  how.budget_seconds = 0.3;
  const auto results = run({{toy_request(1), 9}, {toy_request(2), 1}, {toy_request(3), 1}, {toy_request(4), 1}}, how);
  EXPECT_EQ(laboratory.count("compile first"), 5U);
  EXPECT_TRUE(results.front().heuristic);
}

TEST_F(SessionTest, NamesTheDefaultOfALayerWithoutATime) {
  SessionOptions how = options();
  how.budget_seconds = 0.05;
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}}, how);
  EXPECT_EQ(results[1].status, JobStatus::out_of_time);
  EXPECT_FALSE(results[1].heuristic);
  ASSERT_TRUE(results[1].fallback);
  EXPECT_EQ(results[1].fallback->choice.algorithm, "first");
  EXPECT_DOUBLE_EQ(results[1].fallback->estimate.seconds, 1e-3);
}

TEST_F(SessionTest, TunesEqualJobsInTheOrderGiven) {
  SessionOptions how = options();
  how.budget_seconds = 0.05;  // the first check
  const auto results = run({{toy_request(), 1}, {toy_request(), 1}, {toy_request(), 1}}, how);
  EXPECT_THAT(results[0].trials, SizeIs(1));
  EXPECT_THAT(results[1].trials, IsEmpty());
  EXPECT_THAT(results[2].trials, IsEmpty());
}

TEST_F(SessionTest, SpendsNothingBeyondItsBudget) {
  for (const double budget : {0.15, 0.1 + 0.1}) {  // in the middle of the second check, and at its end
    laboratory.now = 0;
    SessionOptions how = options();
    how.budget_seconds = budget;
    const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}, {toy_request(3), 1}}, how);
    size_t tried = 0;
    for (const JobResult& result : results) tried += result.trials.size();
    EXPECT_EQ(tried, 2U) << budget;
    EXPECT_EQ(results.back().status, JobStatus::out_of_time) << budget;
  }
}

TEST_F(SessionTest, KeepsWhatWasTimedWhenTheBudgetEndsInTheMiddleOfARace) {
  laboratory.set_noisy();
  laboratory.behaviours["first"].noise = {0, 0.2e-3};
  laboratory.behaviours["second"].noise = {0, 0.2e-3};
  SessionOptions how = options();
  how.budget_seconds = 1.0;  // two checks, and eighty samples; the races would want 120
  const JobResult result = run_one(how);
  EXPECT_EQ(result.status, JobStatus::out_of_time);
  EXPECT_EQ(outcome_of(result, "first"), Outcome::timed);
  EXPECT_EQ(outcome_of(result, "second"), Outcome::timed);
  EXPECT_THAT(sunk, SizeIs(2));
}

// A step that never ends: the laboratory asks whether to go on until it is told to end it.
TEST_F(SessionTest, CutsOffTheStepAtWorkWhenItsBudgetIsOver) {
  laboratory.hangs_at = "check second";
  SessionOptions how = options();
  how.budget_seconds = 3;
  const JobResult result = run_one(how);
  EXPECT_EQ(result.status, JobStatus::out_of_time);
  EXPECT_THAT(sunk, SizeIs(1)) << "nothing is known of what was cut off";
  EXPECT_EQ(result.best->choice.algorithm, "first");
  EXPECT_EQ(laboratory.count("check second"), 1U) << "there is no time for another attempt";
  EXPECT_LT(laboratory.now, 3 + 3);
}

TEST_F(SessionTest, SaysWhatItWaitsFor) {
  laboratory.hangs_at = "check second";
  SessionOptions how = options();
  how.budget_seconds = 3;
  run_one(how);
  EXPECT_EQ(progress.back().waiting_for, "checking second TILE=1");
  EXPECT_GT(progress.back().waiting_seconds, 2);
}

// Once a second while nothing finishes, and until two seconds behind the budget.
TEST_F(SessionTest, ReportsEverySecondWhatItWaitsForUntilItsGraceEnds) {
  laboratory.check_cost = 0;
  laboratory.hangs_at = "check first";
  SessionOptions how = options();
  how.budget_seconds = 3;
  run_one(how);
  std::vector<double> waits;
  for (const Progress& now : progress) {
    if (now.waiting_for == "checking first TILE=1" && now.last == nullptr) waits.push_back(now.waiting_seconds);
  }
  EXPECT_THAT(waits, testing::ElementsAre(1, 2, 3, 4, 5));
  EXPECT_EQ(laboratory.now, 5.5) << "the first time that it asks behind the fifth second";
}

// Twenty times as long as the longest check of the layer so far, five seconds at least; of operands, a quarter of the
// budget, five seconds at least.
TEST_F(SessionTest, AllowsAStepAsLongAsOthersMakeUsual) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("hangs", {1}, 1.1e-3)});
  laboratory.hangs_at = "check hangs";
  for (const auto& [check_cost, limit, end] : {std::tuple(0.25, 5, 10.75), {0.5, 10, 21.5}}) {
    laboratory.now = 0;
    laboratory.check_cost = check_cost;
    SessionOptions how = options();
    how.budget_seconds = 1000;
    const JobResult result = run_one(how);
    EXPECT_EQ(result.trials.at(1).error,
              fmt::format("checking hangs TILE=1 took more than {} s, which the budget does not allow", limit));
    EXPECT_EQ(laboratory.now, end) << "one check, and two attempts";
  }
  laboratory.hangs_at = "begin";
  for (const auto& [budget, limit] : {std::pair(24, 6), {20, 5}, {16, 5}}) {
    laboratory.now = 0;
    SessionOptions how = options();
    how.budget_seconds = budget;
    const JobResult result = run_one(how);
    EXPECT_EQ(result.error, fmt::format("its operands could not be made: making operands took more than {} s, which "
                                        "the budget does not allow",
                                        limit));
    EXPECT_EQ(laboratory.now, 2 * (limit + 0.5)) << budget;
  }
}

TEST_F(SessionTest, CutsOffTheStepAtWorkSomeTimeAfterStop) {
  laboratory.hangs_at = "check first";
  Session session(catalogue, laboratory, options(), callbacks());
  laboratory.on_check = [&] { session.stop(); };
  const JobResult result = session.run({{toy_request(), 1}}).front();
  EXPECT_EQ(result.status, JobStatus::stopped);
  EXPECT_THAT(sunk, IsEmpty());
  EXPECT_DOUBLE_EQ(laboratory.now, laboratory.check_cost + 2.5) << "asked every half second, beyond two seconds";
}

TEST_F(SessionTest, LetsNoVariantThatHangsUseUpTheBudget) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3}, 1e-3), toy("hangs", {1}, 1.1e-3)});
  laboratory.hangs_at = "check hangs";
  SessionOptions how = options();
  how.budget_seconds = 30;
  const JobResult result = run_one(how);
  EXPECT_EQ(result.status, JobStatus::finished);
  EXPECT_EQ(outcome_of(result, "hangs"), Outcome::timed_out) << "others of the layer took a moment";
  EXPECT_THAT(result.trials, SizeIs(4));
  EXPECT_LT(laboratory.now, 14) << "five seconds, twice";
}

TEST_F(SessionTest, LetsNoRequestWhoseOperandsNeverComeUseUpTheBudget) {
  laboratory.hangs_at = "begin " + toy_request(2).key();
  SessionOptions how = options();
  how.budget_seconds = 60;
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 9}}, how);
  EXPECT_EQ(results[1].status, JobStatus::failed);
  EXPECT_THAT(results[1].error, HasSubstr("making operands took more than"));
  EXPECT_EQ(results[0].status, JobStatus::finished);
}

TEST_F(SessionTest, StopsAfterTheTrialAtWork) {
  Session session(catalogue, laboratory, options(), callbacks());
  laboratory.on_check = [&] { session.stop(); };
  const auto results = session.run({{toy_request(1), 1}, {toy_request(2), 1}});
  EXPECT_THAT(sunk, SizeIs(1));
  for (const JobResult& result : results) EXPECT_EQ(result.status, JobStatus::stopped);
}

}  // namespace
}  // namespace kiln::tuner::session_budget_test
