#include <gmock/gmock.h>

#include "machine_tuning.h"
#include "progress_display.h"

namespace kiln::cli::progress_test {
namespace {

tuner::Progress halfway() {
  tuner::Progress progress;
  progress.job = 1;
  progress.jobs = 4;
  progress.candidates = 8;
  progress.planned = 16;
  progress.all_candidates = 24;
  progress.all_planned = 64;
  progress.remaining = 75;
  return progress;
}

TEST(Progress, SaysWhereItIsHowLongItTakesAndWhatIsBest) {
  tuner::Progress progress = halfway();
  EXPECT_EQ(progress_status(progress), "layer 2/4, candidate 8/16, 1m15s left");
  tuner::Trial best;
  best.seconds = 1.234e-5;
  progress.best = &best;
  EXPECT_EQ(progress_status(progress), "layer 2/4, candidate 8/16, 1m15s left, best 12.34 us");
}

TEST(Progress, DoesNotGuessTheTimeLeftBeforeTheFirstTrial) {
  tuner::Progress progress = halfway();
  progress.remaining.reset();
  EXPECT_EQ(progress_status(progress), "layer 2/4, candidate 8/16");
}

TEST(Progress, OfSeveralCardsIsKnownOnceAllCanTell) {
  EXPECT_EQ(longest_remaining({75, 80, 3}), 80);
  EXPECT_EQ(longest_remaining({75, std::nullopt, 3}), std::nullopt);
  EXPECT_EQ(longest_remaining({}), 0) << "nobody has anything to do";
}

TEST(Progress, NamesTheStepThatTakesLong) {
  tuner::Progress progress = halfway();
  progress.waiting_for = "checking conv_direct TILE=8";
  progress.waiting_seconds = 1;
  EXPECT_EQ(progress_status(progress), "layer 2/4, candidate 8/16, 1m15s left") << "not for a moment";
  progress.waiting_seconds = 64;
  EXPECT_EQ(progress_status(progress), "layer 2/4, candidate 8/16, 1m15s left; checking conv_direct TILE=8 for 1m04s");
}

TEST(Progress, TheBarCountsTheCandidatesOfAllLayers) {
  const std::string bar = progress_bar(halfway());  // 24 of 64 are 9 of 24 characters
  EXPECT_THAT(bar, testing::StartsWith("[#########...............] layer 2/4"));
  EXPECT_THAT(progress_bar(halfway(), "cuda:1"),
              testing::StartsWith("[#########...............] device cuda:1: layer 2/4"));
  tuner::Progress over = halfway();
  over.all_candidates = 100;  // more than were planned
  EXPECT_THAT(progress_bar(over), testing::StartsWith("[########################] "));
  EXPECT_THAT(progress_bar({}), testing::StartsWith("[########################] "));
}

TEST(Progress, IsALineOfJsonForPrograms) {
  tuner::Progress progress = halfway();
  progress.request = "softmax_forward x=f32:4x16:nc";
  EXPECT_EQ(progress_json(progress),
            R"({"layer":2,"layers":4,"request":"softmax_forward x=f32:4x16:nc","candidates":8,"planned":16,)"
            R"("all_candidates":24,"all_planned":64,"elapsed_seconds":0.0,"remaining_seconds":75.0,)"
            R"("best_seconds":null,"waiting_for":"","waiting_seconds":0.0})");
  EXPECT_THAT(progress_json(progress, "cuda:1"), testing::EndsWith(R"("waiting_seconds":0.0,"device":"cuda:1"})"));
}

}  // namespace
}  // namespace kiln::cli::progress_test
