#include "explain_trials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln::cli::explain_trials_test {
namespace {

using testing::ElementsAre;
using testing::Pair;

cache::Record record(const std::string& config, double seconds) {
  cache::Record made;
  made.request = "softmax_forward x=f32:1x10:nc y=f32:1x10:nc axis=1 mode=accurate";
  made.device = "device";
  made.algorithm = "softmax_warp";
  made.algorithm_digest = "now";
  made.config = config;
  made.outcome = std::string(cache::outcome::timed);
  made.seconds = seconds;
  return made;
}

TEST(ExplainTrials, SaysOfEveryCandidateWhyItLost) {
  cache::Record early = record("early", 3e-5), needy = record("needy", 1.005e-5), varies = record("varies", 1e-5);
  early.outcome = std::string(cache::outcome::rejected_early);
  needy.workspace_bytes = 4096;
  varies.deterministic = false;
  cache::Record wrong = record("wrong", 0), stale = record("stale", 1e-6), predicted = record("predicted", 1e-6);
  wrong.outcome = std::string(cache::outcome::wrong_result);
  wrong.error = "wrong at (0): got 1\nand more";
  stale.algorithm_digest = "then";
  predicted.kind = cache::TimeKind::predicted;
  predicted.outcome = std::string(cache::outcome::predicted);
  const auto trials =
      explain_trials({wrong, stale, predicted, early, needy, varies, record("best", 1e-5), record("slow", 1.12e-5)},
                     [](std::string_view, std::string_view digest) { return digest == "now"; });
  std::vector<std::pair<std::string, std::string>> said;
  for (const ExplainedTrial& trial : trials) said.emplace_back(trial.record.config, trial.why);
  EXPECT_THAT(said,
              ElementsAre(Pair("varies", "a tie, and not bitwise reproducible"), Pair("best", "wins"),
                          Pair("needy", "a tie, with 4096 bytes more of workspace (0.5% slower)"),
                          Pair("slow", "12.0% slower"), Pair("early", "200.0% slower (so clearly that timing stopped)"),
                          Pair("predicted", "only predicted: a time that was taken comes first"),
                          Pair("stale", "stale: its algorithm has changed since"),
                          Pair("wrong", "wrong_result: wrong at (0): got 1")));
}

TEST(ExplainTrials, WithNothingToUseThereIsNoWinner) {
  cache::Record stale = record("stale", 1e-6);
  const auto trials = explain_trials({stale}, [](std::string_view, std::string_view) { return false; });
  ASSERT_EQ(trials.size(), 1u);
  EXPECT_EQ(trials[0].why, "stale: its algorithm has changed since");
  EXPECT_TRUE(explain_trials({}, [](std::string_view, std::string_view) { return true; }).empty());
}

TEST(ExplainTrials, SaysWhichRuleDecidedATie) {
  const auto current = [](std::string_view, std::string_view digest) { return digest == "now"; };
  cache::Record fast = record("fast", 1e-5), slim = record("slim", 1.005e-5), far = record("far", 1.1e-5);
  fast.workspace_bytes = 4096;
  EXPECT_EQ(tie_text({far, fast, slim}, current),
            "a tie: softmax_warp fast is 0.5% faster, and within 1% less workspace decides: 0 bytes, not 4096");
  fast.workspace_bytes = 0;
  fast.deterministic = false;
  EXPECT_THAT(tie_text({far, fast, slim}, current), testing::EndsWith("bitwise reproducible results decide"));
  fast.deterministic = true;
  fast.config = "z";
  EXPECT_THAT(tie_text({far, fast, slim}, current), testing::EndsWith("the order of the names decides"));
  EXPECT_EQ(tie_text({far, slim}, current), "") << "the fastest wins";
  cache::Record predicted = record("predicted", 1e-6);
  predicted.kind = cache::TimeKind::predicted;
  predicted.outcome = std::string(cache::outcome::predicted);
  EXPECT_EQ(tie_text({far, slim, predicted}, current), "") << "a prediction decides nothing among times";
  EXPECT_EQ(tie_text({}, current), "");
}

}  // namespace
}  // namespace kiln::cli::explain_trials_test
