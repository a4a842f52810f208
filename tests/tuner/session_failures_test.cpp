// Outcomes of a session for variants that are wrong, crash, hang or do not compile, and for requests that cannot be
// tuned.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <string>

#include "fakes.h"
#include "session_fixture.h"

namespace kiln::tuner::session_failures_test {
namespace {

using fakes::toy;
using fakes::toy_catalogue;
using fakes::toy_request;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(SessionTest, NeverTimesAWrongVariant) {
  laboratory.set_noisy();
  laboratory.behaviours["first"].check_failures = {{Outcome::wrong_result, "wrong at (0,3)"}};
  const JobResult result = run_one();
  EXPECT_EQ(outcome_of(result, "first"), Outcome::wrong_result);
  EXPECT_EQ(laboratory.count("sample first"), 0U);
  EXPECT_EQ(laboratory.count("check first"), 1U) << "a wrong result is an answer: it is not tried again";
  EXPECT_EQ(result.best->choice.algorithm, "second");
  EXPECT_THAT(result.trials.front().error, HasSubstr("(0,3)"));
}

TEST_F(SessionTest, DoesNotTimeAVariantThatSpills) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1}, 2e-3), toy("third", {1}, 3e-3)});
  laboratory.behaviours["second"] = {.seconds = 1e-6, .spill_loads = 8};
  SessionOptions how = options();
  how.search.candidates = 2;
  const JobResult result = run_one(how);
  EXPECT_EQ(outcome_of(result, "second"), Outcome::spills);
  EXPECT_EQ(laboratory.count("check second"), 0U);
  EXPECT_EQ(outcome_of(result, "third"), Outcome::timed) << "another takes its place";
  EXPECT_EQ(result.best->choice.algorithm, "first");
  ASSERT_THAT(result.trials, SizeIs(3));
  for (const Trial& trial : result.trials) {
    if (trial.outcome == Outcome::spills) {
      EXPECT_EQ(trial.error, "a thread stores 0 bytes of registers to memory and loads 8");
    }
  }
  EXPECT_EQ(laboratory.known_specimens(), 0U) << "what was kept in case that nothing else serves is given up";
}

TEST_F(SessionTest, CountsWhatSpillsAmongTheTriesOfALayer) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1, 2, 3, 4, 5, 6, 7}, 2e-3)});
  laboratory.behaviours["second"].spill_stores = 4;
  SessionOptions how = options();
  how.search.candidates = 3;
  EXPECT_THAT(run_one(how).trials, SizeIs(6)) << "twice as many as are to be timed";
}

TEST_F(SessionTest, TimesTheDefaultChoiceAlsoIfItSpills) {
  laboratory.behaviours["first"].spill_stores = 4;
  const JobResult result = run_one();
  EXPECT_EQ(outcome_of(result, "first"), Outcome::timed);
  ASSERT_TRUE(result.heuristic.has_value()) << "gains are told by it";
}

TEST_F(SessionTest, TimesAVariantThatSpillsWhereNothingElseServes) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1, 2}, 2e-3)});
  laboratory.behaviours["first"].check_failures = {{Outcome::wrong_result, "wrong at (0,3)"}};
  laboratory.behaviours["second"].spill_stores = 4;
  const JobResult result = run_one();
  ASSERT_TRUE(result.best.has_value());
  EXPECT_EQ(result.best->choice.algorithm, "second");
  EXPECT_EQ(result.best->choice.config.print(), "TILE=1") << "the better estimate";
  EXPECT_EQ(laboratory.count("check second TILE=2"), 0U);
  EXPECT_THAT(result.trials, SizeIs(3)) << "each variant once";
}

TEST_F(SessionTest, TriesACrashOnceMoreInAFreshProcess) {
  laboratory.behaviours["first"].check_failures = {crash};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed);
  EXPECT_EQ(laboratory.count("check first"), 2U);
}

TEST_F(SessionTest, QuarantinesWhatCrashesTwice) {
  laboratory.behaviours["first"].check_failures = {crash, crash};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::crashed);
  EXPECT_EQ(laboratory.count("check first"), 2U);
  learnt = sunk;
  sunk.clear();
  laboratory.log.clear();
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::quarantined);
  EXPECT_EQ(laboratory.count("compile first"), 0U);
  EXPECT_THAT(sunk, SizeIs(1)) << "a quarantined trial teaches nothing and must not replace the crash on record";
}

TEST_F(SessionTest, QuarantinesWhatHangsTwice) {
  laboratory.behaviours["first"].check_failures = {hang, hang};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed_out);
  EXPECT_EQ(laboratory.count("check first"), 2U);
  learnt = sunk;
  laboratory.log.clear();
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::quarantined);
  EXPECT_EQ(laboratory.count("compile first"), 0U);
  EXPECT_EQ(laboratory.count("check first"), 0U);
}

TEST_F(SessionTest, NeverQuarantinesWhatRanOutOfMemory) {
  laboratory.behaviours["first"].check_failures = {no_memory, no_memory};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::out_of_memory);
  learnt = sunk;
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed);
}

TEST_F(SessionTest, TriesAgainAtOnceWhatRanOutOfMemory) {
  laboratory.behaviours["first"].check_failures = {no_memory};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed);
}

TEST(TwoAttempts, AreMadeWhereTheFirstOneMayHaveFailedByChance) {
  int attempts = 0;
  const auto report_after = [&](const Failure& failure) {
    attempts = 0;
    return in_two_attempts([&] {
      CheckReport report;
      if (++attempts == 1) report.failure = failure;
      return report;
    });
  };
  for (const Failure& failure : {crash, hang, no_memory}) {
    EXPECT_FALSE(report_after(failure).failure) << failure.error;
    EXPECT_EQ(attempts, 2) << failure.error;
  }
  EXPECT_TRUE(report_after({Outcome::wrong_result, "wrong at (0,3)"}).failure);
  EXPECT_EQ(attempts, 1);
}

TEST_F(SessionTest, CompilesAgainAfterACompilerDiedOrHungButNotAfterAnError) {
  laboratory.behaviours["first"].compile_failures = {hang};
  laboratory.behaviours["second"].compile_failures = {{Outcome::compile_failed, "error: no such type"}};
  const JobResult result = run_one();
  EXPECT_EQ(outcome_of(result, "first"), Outcome::timed);
  EXPECT_EQ(laboratory.count("compile first"), 2U);
  EXPECT_EQ(outcome_of(result, "second"), Outcome::compile_failed);
  EXPECT_EQ(laboratory.count("compile second"), 1U);
}

TEST_F(SessionTest, GivesUpACompileThatHangsTwice) {
  laboratory.behaviours["first"].compile_failures = {hang, hang};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed_out);
}

TEST_F(SessionTest, RefusesWhatIsNotReproducibleWhereThatIsDemanded) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("atomic", {1}, 2e-3, {.deterministic = false})});
  EXPECT_EQ(outcome_of(run_one(), "atomic"), Outcome::timed) << "nobody demands it";
  laboratory.log.clear();
  Request demanding = toy_request();
  demanding.arithmetic.deterministic = true;
  const JobResult result = run({{demanding, 1}}, options()).front();
  EXPECT_EQ(outcome_of(result, "atomic"), Outcome::refused);
  EXPECT_EQ(laboratory.count("compile atomic"), 0U);
  EXPECT_EQ(outcome_of(result, "first"), Outcome::timed);
  for (const Trial& trial : result.trials) {
    if (trial.choice.algorithm != "atomic") continue;
    EXPECT_THAT(trial.error, HasSubstr("not bitwise reproducible"));
  }
}

TEST_F(SessionTest, RemovesAVariantThatCrashesWhileItIsTimed) {
  laboratory.set_noisy();
  laboratory.behaviours["first"].sample_failures = {crash, crash};
  const JobResult result = run_one();
  EXPECT_EQ(outcome_of(result, "first"), Outcome::crashed);
  EXPECT_EQ(result.best->choice.algorithm, "second");
  EXPECT_THAT(result.trials, SizeIs(2)) << "every variant has one trial";
}

TEST_F(SessionTest, TriesASampleThatCrashedOnceMoreInAFreshProcess) {
  laboratory.set_noisy();
  laboratory.behaviours["first"].sample_failures = {crash};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed);
  for (const Trial& trial : sunk) EXPECT_TRUE(has_time(trial.outcome)) << "nothing is quarantined";
}

TEST_F(SessionTest, TimesAsManyAsAskedForThoughSomeAreWrong) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  const Failure wrong{Outcome::wrong_result, "wrong at (0,3)"};
  for (const char* tile : {"1", "2", "3"}) {
    laboratory.behaviours[std::string("first TILE=") + tile].check_failures = {wrong, wrong};
  }
  SessionOptions how = options();
  how.search.candidates = 4;
  const JobResult result = run_one(how);
  EXPECT_THAT(result.trials, SizeIs(3 + 4));
  EXPECT_TRUE(result.best);
}

TEST_F(SessionTest, GoesOnBehindWhatIsKnownToFail) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  laboratory.behaviours["first"].check_failures = std::deque<Failure>(4, {Outcome::wrong_result, "wrong"});
  SessionOptions how = options();
  how.search.candidates = 2;
  EXPECT_FALSE(run_one(how).best) << "twice as many tries are the most";
  stored = sunk;
  laboratory.log.clear();
  const JobResult again = run_one(how);
  EXPECT_TRUE(again.best);
  EXPECT_EQ(laboratory.count("check"), 2U);
}

TEST_F(SessionTest, GivesUpAnAlgorithmOfWhichTwoHung) {
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("hangs", {1, 2, 3, 4, 5, 6, 7, 8}, 1.1e-3)});
  laboratory.behaviours["hangs"].check_failures = std::deque<Failure>(100, hang);
  const JobResult result = run_one();
  EXPECT_EQ(laboratory.count("check hangs"), 4U) << "two of them, twice";
  EXPECT_EQ(result.best->choice.algorithm, "first");
  EXPECT_TRUE(std::any_of(result.trials.begin(), result.trials.end(), [](const Trial& trial) {
    return trial.outcome == Outcome::quarantined && trial.error == "2 others of hangs hung before";
  })) << "those that were compiled by then say why they were not tried";
}

TEST_F(SessionTest, RunsTheTrustedVariantFirstWhereTheCheckNeedsIt) {
  laboratory.trusted_needed = true;
  run_one();
  EXPECT_EQ(laboratory.count("compile trusted"), 1U);
  EXPECT_EQ(laboratory.count("begin " + toy_request().key() + " with trusted"), 1U);
}

TEST_F(SessionTest, FailsARequestWhoseTrustedVariantIsWrongAndGoesOn) {
  laboratory.trusted_needed = true;
  laboratory.behaviours["trusted"].check_failures = {{Outcome::wrong_result, "the reference disagrees"}};
  const auto results = run({{toy_request(1), 9}, {toy_request(2), 1}}, options());
  EXPECT_EQ(results[0].status, JobStatus::failed);
  EXPECT_THAT(results[0].error, HasSubstr("the reference disagrees"));
  EXPECT_EQ(results[1].status, JobStatus::finished);
}

TEST_F(SessionTest, FailsARequestWhoseTrustedVariantDoesNotCompileAndGoesOn) {
  laboratory.trusted_needed = true;
  laboratory.behaviours["trusted TILE=1 for " + toy_request(1).key()].compile_failures = {
      {Outcome::compile_failed, "error: no such type"}};
  laboratory.behaviours["trusted TILE=1 for " + toy_request(2).key()].compile_failures = {hang, hang};
  laboratory.behaviours["trusted TILE=1 for " + toy_request(3).key()].compile_failures = {hang};
  const auto results = run({{toy_request(1), 9}, {toy_request(2), 5}, {toy_request(3), 1}}, options());
  EXPECT_EQ(results[0].status, JobStatus::failed);
  EXPECT_THAT(results[0].error, HasSubstr("the trusted algorithm trusted does not compile: error: no such type"));
  EXPECT_EQ(results[1].status, JobStatus::failed);
  EXPECT_THAT(results[1].error, HasSubstr("exceeded the time limit"));
  EXPECT_EQ(results[2].status, JobStatus::finished) << "it hung once";
}

// Where nothing is compiled, nothing is to be checked.
TEST_F(SessionTest, CompilesNoTrustedVariantForCandidatesThatNeedNoCheck) {
  laboratory.trusted_needed = true;
  run_one();
  stored = sunk;
  laboratory.log.clear();
  run_one();
  EXPECT_THAT(laboratory.log, IsEmpty()) << "all of them are known";

  stored.clear();
  for (const char* each : {"first TILE=1", "second TILE=1"})
    laboratory.behaviours[each].check_failures = {crash, crash};
  sunk.clear();
  run_one();
  learnt = sunk;
  laboratory.log.clear();
  run_one();
  EXPECT_THAT(laboratory.log, IsEmpty()) << "all of them are in quarantine";

  learnt.clear();
  catalogue = toy_catalogue({toy("atomic", {1}, 2e-3, {.deterministic = false})});
  Request demanding = toy_request();
  demanding.arithmetic.deterministic = true;
  laboratory.log.clear();
  EXPECT_EQ(outcome_of(run({{demanding, 1}}, options()).front(), "atomic"), Outcome::refused);
  EXPECT_THAT(laboratory.log, IsEmpty()) << "all of them are refused";
}

TEST_F(SessionTest, FailsARequestThatNoAlgorithmServes) {
  const Request pool = Request::parse("pool_forward x=f32:1x1x4x4:nchw mode=max window=2,2");
  const auto results = run({{pool, 1}, {toy_request(), 1}}, options());
  EXPECT_EQ(results[0].status, JobStatus::failed);
  EXPECT_THAT(results[0].error, HasSubstr("no algorithm serves"));
  EXPECT_EQ(results[1].status, JobStatus::finished);
}

}  // namespace
}  // namespace kiln::tuner::session_failures_test
