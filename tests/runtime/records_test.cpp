#include "kiln/runtime/records.h"

#include <gtest/gtest.h>

#include <random>

#include "kiln/cache/pack.h"

namespace kiln::records_test {
namespace {

tuner::Trial trial() {
  tuner::Trial trial;
  trial.request = "softmax_forward x=f32:1x10:nc y=f32:1x10:nc axis=1 mode=accurate";
  trial.choice = {"softmax_warp", Config::parse("LANES=32,VECTOR=4")};
  trial.outcome = tuner::Outcome::timed;
  trial.samples = {2e-6, 1e-6, 3e-6};
  trial.seconds = 2e-6;
  trial.spread = 1e-7;
  trial.check = "largest error 1e-7, bound 1e-6";
  trial.error = "a warning";
  trial.workspace_bytes = 256;
  trial.deterministic = true;
  trial.resources.registers = 32;
  trial.resources.spill_stores = 8;
  trial.resources.spill_loads = 4;
  trial.resources.static_shared = 512;
  trial.dynamic_shared = 1024;
  trial.device = "device";
  trial.modelled = true;
  trial.driver_version = "13.0";
  trial.nvrtc_version = "13.0";
  trial.algorithm_digest = "a";
  trial.source_digest = "b";
  return trial;
}

TEST(Records, KeepEverythingThatATrialIsJudgedBy) {
  const tuner::Trial before = trial();
  const std::optional<cache::Record> record = record_of(before, "session");
  ASSERT_TRUE(record);
  cache::validate(*record);
  EXPECT_EQ(record->kind, cache::TimeKind::modelled);
  EXPECT_EQ(record->session, "session");
  EXPECT_EQ(record->resources.registers, 32);
  const std::optional<tuner::Trial> after = trial_of(*record);
  ASSERT_TRUE(after);
  EXPECT_EQ(after->request, before.request);
  EXPECT_EQ(after->choice, before.choice);
  EXPECT_EQ(after->outcome, before.outcome);
  EXPECT_EQ(after->samples, before.samples);
  EXPECT_EQ(after->seconds, before.seconds);
  EXPECT_EQ(after->spread, before.spread);
  EXPECT_EQ(after->check, before.check);
  EXPECT_EQ(after->error, before.error);
  EXPECT_EQ(after->workspace_bytes, before.workspace_bytes);
  EXPECT_EQ(after->deterministic, before.deterministic);
  EXPECT_EQ(after->device, before.device);
  EXPECT_EQ(after->driver_version, before.driver_version);
  EXPECT_EQ(after->nvrtc_version, before.nvrtc_version);
  EXPECT_EQ(after->algorithm_digest, before.algorithm_digest);
  EXPECT_EQ(after->source_digest, before.source_digest);
  EXPECT_EQ(after->modelled, before.modelled);
  EXPECT_EQ(after->resources.registers, 32);
  EXPECT_EQ(after->resources.spill_stores, 8 + 4) << "they are stored as one sum";
  EXPECT_EQ(after->resources.static_shared, 512 + 1024);
}

TEST(Records, SayNothingOfTheResourcesOfWhatWasNotCompiled) {
  tuner::Trial refused = trial();
  refused.outcome = tuner::Outcome::refused;
  refused.source_digest.clear();
  const cache::Resources resources = record_of(refused, "")->resources;
  EXPECT_EQ(resources.registers, cache::Resources().registers);
  EXPECT_EQ(resources.shared_bytes, cache::Resources().shared_bytes);
  EXPECT_EQ(trial_of(*record_of(refused, ""))->resources.registers, 0);
}

// The tuner's winner is the one that an application gets from the cache afterwards, ties included.
TEST(Records, TheTunersWinnerIsTheCachesWinner) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<tuner::Trial> trials;
    std::vector<cache::Record> records;
    for (int i = 0; i < 8; ++i) {
      tuner::Trial one = trial();
      one.choice = {random() % 2 == 0 ? "a" : "b", Config::parse("TILE=" + std::to_string(i))};
      one.seconds = 1e-5 * (1 + 0.005 * static_cast<double>(random() % 12));
      one.workspace_bytes = static_cast<int64_t>(random() % 2) * 256;
      one.deterministic = random() % 2 == 0;
      one.outcome = random() % 6 == 0 ? tuner::Outcome::wrong_result : tuner::Outcome::timed;
      trials.push_back(one);
      records.push_back(*record_of(one, "session"));
    }
    const tuner::Trial* tuned = tuner::winner(trials);
    const cache::Record* stored = cache::winner_among(records);
    ASSERT_EQ(tuned == nullptr, stored == nullptr);
    if (tuned != nullptr) {
      ASSERT_EQ(stored->algorithm, tuned->choice.algorithm);
      ASSERT_EQ(stored->config, tuned->choice.config.print());
    }
  }
}

TEST(Records, OutcomesHaveTheNamesThatTheCacheKnows) {
  for (const auto& [outcome, name] : std::vector<std::pair<tuner::Outcome, std::string_view>>{
           {tuner::Outcome::timed, cache::outcome::timed},
           {tuner::Outcome::rejected_early, cache::outcome::rejected_early},
           {tuner::Outcome::refused, cache::outcome::refused},
           {tuner::Outcome::compile_failed, cache::outcome::compile_failed},
           {tuner::Outcome::wrong_result, cache::outcome::wrong_result},
           {tuner::Outcome::timed_out, cache::outcome::timed_out},
           {tuner::Outcome::crashed, cache::outcome::crashed},
           {tuner::Outcome::out_of_memory, cache::outcome::out_of_memory}}) {
    tuner::Trial some = trial();
    some.outcome = outcome;
    EXPECT_EQ(record_of(some, "")->outcome, name);
    EXPECT_EQ(cache::usable(*record_of(some, "")), tuner::has_time(outcome));
  }
}

TEST(Records, QuarantinedTrialsAreNotStored) {
  tuner::Trial some = trial();
  some.outcome = tuner::Outcome::quarantined;
  EXPECT_FALSE(record_of(some, ""));
}

TEST(Records, OfANewerKilnAreNotUnderstoodRatherThanMisread) {
  cache::Record record = *record_of(trial(), "");
  record.outcome = "levitated";
  EXPECT_FALSE(trial_of(record));
  record = *record_of(trial(), "");
  record.config = "LANES=many";
  EXPECT_FALSE(trial_of(record));
}

}  // namespace
}  // namespace kiln::records_test
