#include "kiln/tuner/trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>

#include "fakes.h"
#include "kiln/base/error.h"
#include "kiln/tuner/quarantine.h"

namespace kiln::tuner::trial_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr int64_t no_limit = std::numeric_limits<int64_t>::max();

Trial timed(const std::string& algorithm, double median, int64_t workspace = 0, bool deterministic = true) {
  Trial trial;
  trial.choice.algorithm = algorithm;
  trial.outcome = Outcome::timed;
  trial.seconds = median;
  trial.workspace_bytes = workspace;
  trial.deterministic = deterministic;
  return trial;
}

TEST(Outcomes, HaveNamesThatParseBack) {
  for (const Outcome outcome :
       {Outcome::timed, Outcome::rejected_early, Outcome::refused, Outcome::compile_failed, Outcome::spills,
        Outcome::wrong_result, Outcome::timed_out, Outcome::crashed, Outcome::out_of_memory, Outcome::quarantined}) {
    EXPECT_EQ(parse_outcome(to_string(outcome)), outcome);
  }
  EXPECT_EQ(parse_outcome("Timed"), std::nullopt);
}

TEST(Winner, IsTheFastestBeyondATie) {
  EXPECT_EQ(winner({timed("a", 1.03), timed("b", 1.0, 1 << 20)})->choice.algorithm, "b");
}

TEST(Winner, NeedsTheLeastWorkspaceWithinATie) {
  EXPECT_EQ(winner({timed("a", 1.0, 1 << 20), timed("b", 1.009, 0, false)})->choice.algorithm, "b");
}

TEST(Winner, IsReproducibleRatherThanNotWithinATie) {
  EXPECT_EQ(winner({timed("a", 1.0, 0, false), timed("b", 1.005)})->choice.algorithm, "b");
}

TEST(Winner, ComesFirstByNameWithinATieWhateverTheOrder) {
  EXPECT_EQ(winner({timed("b", 1.0), timed("a", 1.005)})->choice.algorithm, "a");
  EXPECT_EQ(winner({timed("a", 1.005), timed("b", 1.0)})->choice.algorithm, "a");
}

TEST(Winner, DoesNotDriftAlongAChainOfNeighbours) {
  // a ties with b, b with c, but a is 3% faster than c.
  EXPECT_EQ(winner({timed("c", 1.0), timed("b", 1.008), timed("a", 1.015)})->choice.algorithm, "b");
}

TEST(Winner, IsNobodyIfNothingHasATime) {
  Trial failed = timed("a", 1.0);
  failed.outcome = Outcome::wrong_result;
  EXPECT_EQ(winner({failed}), nullptr);
}

TEST(Ranking, LeavesOutWhatExceedsTheWorkspaceLimit) {
  const std::vector<Trial> trials{timed("a", 1.0, 100), timed("b", 2.0, 10), timed("c", 3.0)};
  EXPECT_EQ(ranking(trials, no_limit).size(), 3U);
  ASSERT_EQ(ranking(trials, 10).size(), 2U);
  EXPECT_EQ(ranking(trials, 10).front()->choice.algorithm, "b");
}

Trial failed(Outcome outcome) {
  Trial trial;
  trial.outcome = outcome;
  trial.source_digest = "source";
  trial.device = "device";
  trial.driver_version = "13.0";
  trial.nvrtc_version = "13.0";
  return trial;
}

TEST(Quarantine, TakesCrashesAndHangsOnly) {
  Quarantine quarantine;
  for (const Outcome outcome : {Outcome::timed, Outcome::rejected_early, Outcome::refused, Outcome::compile_failed,
                                Outcome::wrong_result, Outcome::out_of_memory, Outcome::quarantined}) {
    quarantine.learn(failed(outcome));
  }
  EXPECT_EQ(quarantine.size(), 0U);
  quarantine.learn(failed(Outcome::crashed));
  EXPECT_TRUE(quarantine.contains({"source", "device", "13.0", "13.0"}));
}

TEST(Quarantine, EndsWithANewDriverNvrtcDeviceOrSource) {
  Quarantine quarantine;
  quarantine.learn(failed(Outcome::timed_out));
  EXPECT_TRUE(quarantine.contains({"source", "device", "13.0", "13.0"}));
  EXPECT_FALSE(quarantine.contains({"other", "device", "13.0", "13.0"}));
  EXPECT_FALSE(quarantine.contains({"source", "other", "13.0", "13.0"}));
  EXPECT_FALSE(quarantine.contains({"source", "device", "13.1", "13.0"}));
  EXPECT_FALSE(quarantine.contains({"source", "device", "13.0", "13.1"}));
}

// A choice for `rows` rows, with what stands in for them; 100 rows are worth it, fewer than 4 cannot be done.
Programs programs_for(int rows, std::optional<int> rows_of_stand_in) {
  const auto rows_at_least = [](int64_t least) {
    return [least](const fakes::ToyParameters&, const Request& request, const Target&) {
      return request.batch() >= least;
    };
  };
  const Catalogue catalogue = fakes::toy_catalogue(
      {describe<fakes::ToyParameters>("picky", "softmax_forward", "toy.cu")
           .param("TILE", &fakes::ToyParameters::tile, {1})
           .rule("four rows", rows_at_least(4))
           .pruning("a hundred rows", rows_at_least(100))
           .program([](const fakes::ToyParameters&, const Request& request, const Target&, const Emitter&) {
             Program program;
             program.sources = {request.key()};
             return program;
           })
           .estimate([](const fakes::ToyParameters&, const Request&, const Target&, const DeviceFigures&) {
             return Estimate{};
           })});
  Subject subject{fakes::toy_request(rows)};
  if (rows_of_stand_in) subject.stand_in = fakes::toy_request(*rows_of_stand_in);
  Variants variants = catalogue.on(subject.request, {.arch = Arch::of(9, 0), .nvrtc_major = 13, .nvrtc_minor = 0});
  return programs_of(variants, subject.stand_in, {"picky", Config({{"TILE", 1}})});
}

std::string refusal_for(int rows, std::optional<int> rows_of_stand_in) {
  try {
    (void)programs_for(rows, rows_of_stand_in);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProgramsOf, AStandInNeedNotBeWorthIt) {
  const Programs programs = programs_for(200, 8);
  EXPECT_EQ(programs.program.sources.front().code, fakes::toy_request(200).key());
  EXPECT_EQ(programs.stand_in.value().sources.front().code, fakes::toy_request(8).key());
  EXPECT_FALSE(programs_for(200, std::nullopt).stand_in);
  EXPECT_THAT(refusal_for(8, std::nullopt), HasSubstr("a hundred rows")) << "the request itself has to be";
}

TEST(ProgramsOf, AStandInThatCannotBeServedNamesItsBatch) {
  EXPECT_THAT(refusal_for(200, 2),
              AllOf(HasSubstr("its result cannot be checked by that of "), HasSubstr("four rows")));
}

}  // namespace
}  // namespace kiln::tuner::trial_test
