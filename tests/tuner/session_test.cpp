#include "kiln/tuner/session.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes.h"

namespace kiln::tuner {
namespace {

using fakes::Behaviour;
using fakes::FakeLaboratory;
using fakes::toy;
using fakes::toy_catalogue;
using fakes::toy_request;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Failure crash{Outcome::crashed, "signal 11"};
const Failure hang{Outcome::timed_out, "exceeded the time limit"};
const Failure no_memory{Outcome::out_of_memory, "8 GiB"};

class SessionTest : public testing::Test {
 protected:
  SessionOptions options() {
    SessionOptions made;
    made.clock = laboratory.clock();
    return made;
  }

  std::vector<JobResult> run(const std::vector<Job>& jobs, SessionOptions how) {
    Session session(catalogue, laboratory, std::move(how), callbacks());
    for (const Trial& trial : learnt) session.quarantine().learn(trial);
    return session.run(jobs);
  }
  JobResult run_one(SessionOptions how) { return run({{toy_request(), 1}}, std::move(how)).front(); }
  JobResult run_one() { return run_one(options()); }

  SessionCallbacks callbacks() {
    return {.sink = [this](const Trial& trial) { sunk.push_back(trial); },
            .known = [this](const Request& request, const Choice& choice, const std::string& algorithm,
                            const std::string& source) -> std::optional<Trial> {
              for (const Trial& trial : stored) {
                if (trial.request == request.key() && trial.choice == choice && trial.algorithm_digest == algorithm &&
                    trial.source_digest == source) {
                  return trial;
                }
              }
              return std::nullopt;
            },
            .progress = [this](const Progress& now) { progress.push_back(now); }};
  }

  static Outcome outcome_of(const JobResult& result, const std::string& algorithm) {
    for (const Trial& trial : result.trials) {
      if (trial.choice.algorithm == algorithm) return trial.outcome;
    }
    ADD_FAILURE() << algorithm << " was not tried";
    return Outcome::refused;
  }

  // Of each trial in the sink, the rows of its request.
  std::vector<int> requests_sunk() const {
    std::vector<int> rows;
    for (const Trial& trial : sunk) {
      for (const int each : {1, 2, 3, 4}) {
        if (trial.request == toy_request(each).key()) rows.push_back(each);
      }
    }
    return rows;
  }

  FakeLaboratory laboratory;
  Catalogue catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("second", {1}, 2e-3)});
  std::vector<Trial> sunk, stored, learnt;
  std::vector<Progress> progress;
};

TEST_F(SessionTest, FindsTheFasterOneAndTheGainOverTheDefault) {
  laboratory.behaviours["first"] = {.seconds = 4e-3};
  laboratory.behaviours["second"] = {.seconds = 1e-3};
  const JobResult result = run_one();
  EXPECT_EQ(result.status, JobStatus::finished);
  ASSERT_TRUE(result.best && result.heuristic);
  EXPECT_EQ(result.best->choice.algorithm, "second");
  EXPECT_EQ(result.heuristic->choice.algorithm, "first");
  EXPECT_DOUBLE_EQ(result.heuristic->median / result.best->median, 4);
  EXPECT_GT(result.roofline_seconds, 0);
}

TEST_F(SessionTest, HandsOutEveryTrialWithItsProvenance) {
  const JobResult result = run_one();
  ASSERT_THAT(sunk, SizeIs(result.trials.size()));
  for (const Trial& trial : sunk) {
    EXPECT_EQ(trial.request, toy_request().key());
    EXPECT_EQ(trial.device_id, laboratory.apparatus().device.id());
    EXPECT_EQ(trial.driver_version, "13.0");
    EXPECT_EQ(trial.nvrtc_version, "13.0");
    EXPECT_EQ(trial.algorithm_digest, catalogue.digest(trial.choice.algorithm));
    EXPECT_FALSE(trial.source_digest.empty());
    EXPECT_TRUE(trial.modelled);
    EXPECT_EQ(trial.check, "fine");
    EXPECT_THAT(trial.samples, SizeIs(1));
    EXPECT_GT(trial.compile_seconds, 0);
  }
}

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
  laboratory.behaviours["first"].check_failures = {no_memory};
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::out_of_memory);
  learnt = sunk;
  EXPECT_EQ(outcome_of(run_one(), "first"), Outcome::timed);
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
  catalogue = toy_catalogue({toy("first", {1}, 1e-3), toy("atomic", {1}, 2e-3, false, 0, false)});
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

TEST_F(SessionTest, PicksTheSameWinnerOfATieEveryTime) {
  catalogue = toy_catalogue({toy("a_big", {1}, 1e-3, false, 1 << 20), toy("b_small", {1}, 2e-3)});
  laboratory.behaviours["a_big"] = {.seconds = 1.000e-3};
  laboratory.behaviours["b_small"] = {.seconds = 1.015e-3};
  EXPECT_EQ(run_one().best->choice.algorithm, "b_small");
}

TEST_F(SessionTest, RetunesToEqualTrials) {
  catalogue = toy_catalogue({toy("first", {1, 2, 4, 8}, 1e-3), toy("second", {1, 2, 4, 8}, 2e-3)});
  laboratory.set_noisy();
  laboratory.behaviours["second TILE=4"] = {.seconds = 0.5e-3, .noise = {0, 1e-6, 2e-6}};
  const JobResult once = run_one();
  FakeLaboratory fresh;
  fresh.set_noisy();
  fresh.behaviours["second TILE=4"] = {.seconds = 0.5e-3, .noise = {0, 1e-6, 2e-6}};
  const JobResult again = Session(catalogue, fresh, {.clock = fresh.clock()}, {}).run({{toy_request(), 1}}).front();
  ASSERT_EQ(once.trials.size(), again.trials.size());
  for (size_t i = 0; i < once.trials.size(); ++i) {
    EXPECT_EQ(once.trials[i].choice, again.trials[i].choice);
    EXPECT_EQ(once.trials[i].median, again.trials[i].median);
  }
  EXPECT_EQ(once.best->choice, (Choice{"second", Config::parse("TILE=4")}));
}

TEST_F(SessionTest, RejectsTheClearlySlowerEarly) {
  laboratory.set_noisy();
  laboratory.behaviours["second"] = {.seconds = 9e-3};
  const JobResult result = run_one();
  EXPECT_EQ(outcome_of(result, "second"), Outcome::rejected_early);
  EXPECT_EQ(outcome_of(result, "first"), Outcome::timed);
  EXPECT_LT(laboratory.count("sample second"), laboratory.count("sample first"));
}

TEST_F(SessionTest, InterleavesTheSurvivors) {
  laboratory.set_noisy();
  laboratory.behaviours["first"] = {.seconds = 1e-3};
  laboratory.behaviours["second"] = {.seconds = 1.01e-3};
  run_one();
  std::vector<std::string> samples;
  for (const std::string& line : laboratory.log) {
    if (line.starts_with("sample")) samples.push_back(line.substr(7, line.find(' ', 7) - 7));
  }
  ASSERT_GT(samples.size(), 8U);
  // After both screenings of three samples they take turns.
  EXPECT_THAT(std::vector<std::string>(samples.begin() + 6, samples.begin() + 10),
              ElementsAre("first", "second", "first", "second"));
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
}

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

TEST_F(SessionTest, SpendsNothingBeyondItsBudget) {
  SessionOptions how = options();
  how.budget_seconds = 0.15;
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 1}, {toy_request(3), 1}}, how);
  size_t tried = 0;
  for (const JobResult& result : results) tried += result.trials.size();
  EXPECT_EQ(tried, 2U);
  EXPECT_EQ(results.back().status, JobStatus::out_of_time);
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

TEST_F(SessionTest, CutsOffTheStepAtWorkSomeTimeAfterStop) {
  laboratory.hangs_at = "check first";
  Session session(catalogue, laboratory, options(), callbacks());
  laboratory.on_check = [&] { session.stop(); };
  const JobResult result = session.run({{toy_request(), 1}}).front();
  EXPECT_EQ(result.status, JobStatus::stopped);
  EXPECT_THAT(sunk, IsEmpty());
  EXPECT_LT(laboratory.now, 4);
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

TEST_F(SessionTest, DoesNotRepeatWhatIsKnown) {
  run_one();
  stored = sunk;
  sunk.clear();
  laboratory.log.clear();
  const JobResult again = run_one();
  EXPECT_THAT(laboratory.log, IsEmpty());
  EXPECT_THAT(sunk, IsEmpty());
  EXPECT_THAT(again.trials, SizeIs(2));
  EXPECT_TRUE(again.best);
}

TEST_F(SessionTest, ContinuesWhereAKilledSessionEnded) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  struct Killed {};
  laboratory.on_check = [&] {
    if (sunk.size() == 3) throw Killed();
  };
  EXPECT_THROW(run_one(), Killed);
  laboratory.on_check = {};
  stored = sunk;
  sunk.clear();
  laboratory.log.clear();
  const JobResult rest = run_one();
  EXPECT_EQ(laboratory.count("check"), 5U);
  EXPECT_THAT(rest.trials, SizeIs(8));
}

TEST_F(SessionTest, MeasuresAgainWhatAnEditedAlgorithmMakes) {
  run_one();
  stored = sunk;
  for (Trial& trial : stored) trial.algorithm_digest = "of an older template";
  laboratory.log.clear();
  run_one();
  EXPECT_EQ(laboratory.count("check"), 2U);
}

TEST_F(SessionTest, TunesTheMostRewardingRequestFirst) {
  run({{toy_request(1), 1}, {toy_request(2), 5}, {toy_request(3), 2}}, options());
  EXPECT_THAT(requests_sunk(), ElementsAre(2, 2, 3, 3, 1, 1));
}

TEST_F(SessionTest, PredictsFromTheCalibrationThatItIsGiven) {
  const auto overhead = [](const std::string& name, double launches) {
    return describe<fakes::ToyParameters>(name, "softmax_forward", "toy.cu")
        .param("TILE", &fakes::ToyParameters::tile, {1})
        .program([=](const fakes::ToyParameters&, const Request& request, const Target&, const Emitter&) {
          Program program;
          program.sources = {name + " for " + request.key()};
          program.steps = {Launch{.source = 0, .entry = "toy", .grid = {}, .arguments = {}}};
          return program;
        })
        .estimate([=](const fakes::ToyParameters&, const Request&, const Target&, const DeviceFigures& figures) {
          return Estimate{.seconds = launches * figures.calibration.launch_seconds + 1e-5 / launches};
        });
  };
  catalogue = toy_catalogue({overhead("one launch", 1), overhead("two launches", 2)});
  SessionOptions how = options();
  EXPECT_EQ(run_one(how).heuristic->choice.algorithm, "two launches");
  how.calibration = Calibration{.launch_seconds = 2e-5};  // eight times what is assumed
  const JobResult calibrated = run_one(how);
  EXPECT_EQ(calibrated.heuristic->choice.algorithm, "one launch");
  EXPECT_DOUBLE_EQ(calibrated.heuristic->estimate, 3e-5);
}

TEST_F(SessionTest, ReturnsResultsInTheOrderGiven) {
  const auto results = run({{toy_request(1), 1}, {toy_request(2), 5}}, options());
  EXPECT_EQ(results[0].request, toy_request(1));
  EXPECT_EQ(results[1].request, toy_request(2));
  EXPECT_EQ(results[1].count, 5);
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
  catalogue = toy_catalogue({toy("atomic", {1}, 2e-3, false, 0, false)});
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

TEST_F(SessionTest, CompilesAheadWhileTheDeviceMeasures) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8}, 1e-3)});
  run_one();
  const auto first_check = std::find_if(laboratory.log.begin(), laboratory.log.end(),
                                        [](const std::string& line) { return line.starts_with("check"); });
  EXPECT_GE(first_check - laboratory.log.begin(), 4) << "both lanes have work before the first check starts";
}

TEST_F(SessionTest, PreparesTheNextRequestBeforeThisOneIsDone) {
  run({{toy_request(1), 9}, {toy_request(2), 1}}, options());
  const auto second_begin = std::find(laboratory.log.begin(), laboratory.log.end(), "begin " + toy_request(2).key());
  ASSERT_NE(second_begin, laboratory.log.end());
  EXPECT_EQ(std::count_if(laboratory.log.begin(), second_begin,
                          [](const std::string& line) { return line.starts_with("compile"); }),
            4);
}

TEST_F(SessionTest, ForgetsEverySpecimenInTheEnd) {
  laboratory.trusted_needed = true;
  laboratory.behaviours["first"].check_failures = {crash, crash};
  run({{toy_request(1), 1}, {toy_request(2), 1}}, options());
  EXPECT_EQ(laboratory.known_specimens(), 0U);
}

TEST_F(SessionTest, ReportsProgressThatEndsAtItsPlan) {
  run({{toy_request(1), 1}, {toy_request(2), 1}}, options());
  ASSERT_FALSE(progress.empty());
  EXPECT_EQ(progress.front().candidates, 0U);
  EXPECT_EQ(progress.back().job, 1U);
  EXPECT_EQ(progress.back().jobs, 2U);
  EXPECT_EQ(progress.back().candidates, progress.back().planned);
  EXPECT_DOUBLE_EQ(progress.back().remaining.value(), 0);
  const auto in_the_middle = std::find_if(progress.begin(), progress.end(), [](const Progress& now) {
    return now.all_candidates == 2 && now.all_planned == 4;
  });
  ASSERT_NE(in_the_middle, progress.end());
  EXPECT_DOUBLE_EQ(in_the_middle->remaining.value(), in_the_middle->elapsed) << "as much as the first two took";
}

TEST_F(SessionTest, LetsALocalSearchGoOnAfterItsFirstRace) {
  catalogue = toy_catalogue({toy("first", {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, 1e-3)});
  laboratory.set_noisy();
  SessionOptions how = options();
  how.search = {.kind = SearchKind::local, .candidates = 8};
  EXPECT_THAT(run_one(how).trials, SizeIs(8));
}

}  // namespace
}  // namespace kiln::tuner
