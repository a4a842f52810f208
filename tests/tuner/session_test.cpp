// Results of a session, and work that it does not do again.
#include "kiln/tuner/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fakes.h"
#include "session_fixture.h"

namespace kiln::tuner::session_test {
namespace {

using fakes::FakeLaboratory;
using fakes::toy;
using fakes::toy_catalogue;
using fakes::toy_request;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

TEST_F(SessionTest, FindsTheFasterOneAndTheGainOverTheDefault) {
  laboratory.behaviours["first"] = {.seconds = 4e-3};
  laboratory.behaviours["second"] = {.seconds = 1e-3};
  const JobResult result = run_one();
  EXPECT_EQ(result.status, JobStatus::finished);
  ASSERT_TRUE(result.best && result.heuristic);
  EXPECT_EQ(result.best->choice.algorithm, "second");
  EXPECT_EQ(result.heuristic->choice.algorithm, "first");
  EXPECT_DOUBLE_EQ(result.heuristic->seconds / result.best->seconds, 4);
  EXPECT_GT(result.roofline_seconds, 0);
}

TEST_F(SessionTest, HandsOutEveryTrialWithItsProvenance) {
  const JobResult result = run_one();
  ASSERT_THAT(sunk, SizeIs(result.trials.size()));
  for (const Trial& trial : sunk) {
    EXPECT_EQ(trial.request, toy_request().key());
    EXPECT_EQ(trial.device, laboratory.apparatus().device.id());
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

TEST_F(SessionTest, PicksTheSameWinnerOfATieEveryTime) {
  catalogue = toy_catalogue({toy("a_big", {1}, 1e-3, {.workspace = 1 << 20}), toy("b_small", {1}, 2e-3)});
  laboratory.behaviours["a_big"] = {.seconds = 1.000e-3};
  laboratory.behaviours["b_small"] = {.seconds = 1.008e-3};
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
    EXPECT_EQ(once.trials[i].seconds, again.trials[i].seconds);
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
  // After both screenings of three samples they take turns, and the leader sets the pace.
  EXPECT_THAT(std::vector<std::string>(samples.begin() + 6, samples.begin() + 10),
              ElementsAre("first", "second", "second", "first"));
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

TEST_F(SessionTest, ChecksASmallerRequestInTheSteadOfALargeOne) {
  laboratory.smaller = toy_request(4);
  laboratory.trusted_needed = true;
  const auto results = run({{toy_request(1024), 1}, {toy_request(3), 1}}, options());
  EXPECT_EQ(results[0].request, toy_request(1024));
  EXPECT_EQ(results[0].stand_in, toy_request(4));
  ASSERT_TRUE(results[0].best);
  EXPECT_EQ(results[0].best->request, toy_request(1024).key());
  EXPECT_EQ(laboratory.count("begin " + toy_request(4).key()), 1U);
  const std::string name = results[0].best->choice.algorithm + " " + results[0].best->choice.config.print();
  EXPECT_EQ(laboratory.count("stand-in " + name + " for " + toy_request(4).key()), 1U);
  EXPECT_FALSE(results[1].stand_in);
  EXPECT_EQ(laboratory.count("begin " + toy_request(3).key()), 1U);
  EXPECT_EQ(laboratory.count("stand-in"), results[0].trials.size());
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
}  // namespace kiln::tuner::session_test
