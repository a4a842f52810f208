#include "tune_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace kiln::cli::tune_report_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

tuner::Trial timed(const std::string& algorithm, double seconds) {
  tuner::Trial trial;
  trial.choice.algorithm = algorithm;
  trial.outcome = tuner::Outcome::timed;
  trial.seconds = seconds;
  return trial;
}

// A layer that was tuned, and one that the budget did not reach.
class TuneReportTest : public testing::Test {
 protected:
  TuneReportTest() : results_(2) {
    tuner::JobResult& tuned = results_[0];
    tuned.request = Request::parse("softmax_forward x=f32:3x100");
    tuned.count = 3;
    tuned.roofline_seconds = 1e-6;
    tuned.heuristic = timed("default", 4e-6);
    tuned.best = timed("best", 2e-6);
    tuned.fallback = Candidate{tuned.heuristic->choice, {.seconds = 5e-6}};
    tuner::JobResult& left = results_[1];
    left.request = Request::parse("softmax_forward x=f32:3x200");
    left.count = 2;
    left.roofline_seconds = 1e-6;
    left.status = tuner::JobStatus::out_of_time;
    left.fallback = Candidate{{"default", Config()}, {.seconds = 7e-6}};
  }

  std::string table() const { return print_table(report(), {.wide = true}); }
  TuneReport report() const { return {apparatus_, results_, not_covered_, "t.db", 0, "", "", ""}; }

  tuner::Apparatus apparatus_;
  std::vector<tuner::JobResult> results_;
  std::vector<NotCovered> not_covered_;
};

TEST_F(TuneReportTest, CountsALayerWithoutATimeWithTheEstimateOfItsDefault) {
  const Totals totals = totals_of(results_);
  EXPECT_DOUBLE_EQ(totals.best, 3 * 2e-6 + 2 * 7e-6);
  EXPECT_DOUBLE_EQ(totals.heuristic, 3 * 4e-6 + 2 * 7e-6);
  EXPECT_DOUBLE_EQ(totals.roofline, 3 * 1e-6 + 2 * 1e-6);
  EXPECT_EQ(totals.estimated, 1U);
  EXPECT_EQ(totals.left_out, 0U);
  EXPECT_THAT(table(), AllOf(HasSubstr("default - (default, out of time)"), HasSubstr("~7.00 us"),
                             HasSubstr("1 layer was not timed: the default choice, at its estimate (~)")));
  EXPECT_TRUE(all_served(results_));
  EXPECT_EQ(json_of(report()).value()["totals"]["layers_estimated"], 1);
}

TEST_F(TuneReportTest, SaysOfCandidatesWithoutATimeWhy) {
  tuner::Trial untimed = timed("untimed", 0), refused = timed("refused", 0);
  untimed.outcome = refused.outcome = tuner::Outcome::refused;
  untimed.error = "not timed: tensor instructions need nvdisasm (how to get it)";
  refused.error = "a rule";
  results_[0].trials = {untimed, untimed, refused};
  EXPECT_THAT(table(), HasSubstr("of these: 2 not timed: tensor instructions need nvdisasm, 1 refused by a rule\n"));
}

TEST_F(TuneReportTest, HasWhatFiguresAreDrawnFromAsJson) {
  apparatus_.target.arch = Arch::of(9, 0);
  apparatus_.figures = {.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12};
  results_[0].request = Request::parse("gemm a=f16:64x32 b=f16:32x16");
  const auto json = json_of(report()).value();
  EXPECT_EQ(json["peak_bytes_per_second"], 4.8e12);
  const auto& layer = json["layers"][0];
  EXPECT_EQ(layer["label"], "gemm 64x32 by 32x16 f16");
  EXPECT_EQ(layer["flops"], 2.0 * 64 * 32 * 16);
  EXPECT_EQ(layer["bytes"], 2.0 * (64 * 32 + 32 * 16 + 64 * 16));
  EXPECT_EQ(layer["arithmetic"], "tensor cores in f16 or bf16");
  EXPECT_DOUBLE_EQ(layer["peak_flops_per_second"], 2.0 * 2048 * 132 * 1.98e9);
}

TEST_F(TuneReportTest, SaysHowManyLayersItLeavesOut) {
  results_[1].status = tuner::JobStatus::failed;
  EXPECT_EQ(totals_of(results_).left_out, 1U);
  EXPECT_DOUBLE_EQ(totals_of(results_).best, 3 * 2e-6);
  EXPECT_THAT(table(), HasSubstr("; without 1 that nothing serves"));
  EXPECT_FALSE(all_served(results_));
}

// A choice that was found wrong is not kept.
TEST_F(TuneReportTest, DoesNotKeepADefaultThatFailed) {
  results_[1].heuristic = timed("default", 0);
  results_[1].heuristic->outcome = tuner::Outcome::wrong_result;
  results_[1].trials = {*results_[1].heuristic};
  EXPECT_THAT(table(), AllOf(HasSubstr("none: wrong"), Not(HasSubstr("~7.00 us"))));
  EXPECT_FALSE(all_served(results_));
}

TEST_F(TuneReportTest, TakesALayerWhoseDefaultHasNoTimeForNoGain) {
  results_[0].heuristic->outcome = tuner::Outcome::wrong_result;
  EXPECT_DOUBLE_EQ(totals_of(results_).heuristic, 3 * 2e-6 + 2 * 7e-6);
  EXPECT_THAT(table(), HasSubstr("1.00x over the default choice; "));
  EXPECT_THAT(table(), HasSubstr("; the default choice of 1 layer has no time (-), which counts as no gain"));
  EXPECT_EQ(json_of(report()).value()["totals"]["layers_without_default"], 1);
  results_.pop_back();
  EXPECT_THAT(table(), HasSubstr("- over the default choice; ")) << "no layer tells, as its row says";
}

TEST_F(TuneReportTest, SaysHowManyLayersWereCheckedWithSmallerOnes) {
  EXPECT_THAT(table(), Not(HasSubstr("too large")));
  results_[1].stand_in = Request::parse("softmax_forward x=f32:1x200");
  EXPECT_THAT(table(),
              HasSubstr("\ntoo large to be run here: 1 of 2 layers; its results were checked with a smaller one\n"));
  const auto layers = json_of(report()).value()["layers"];
  EXPECT_EQ(layers[0]["checked"], results_[0].request.key());
  EXPECT_EQ(layers[1]["checked"], results_[1].stand_in->key());
  EXPECT_EQ(layers[1]["request"], results_[1].request.key());
  results_[0].stand_in = results_[1].stand_in;
  EXPECT_THAT(table(),
              HasSubstr("\ntoo large to be run here: 2 of 2 layers; their results were checked with smaller ones\n"));
  results_.pop_back();
  EXPECT_THAT(table(), HasSubstr("\ntoo large to be run here: 1 of 1 layer; its results were checked "));
}

}  // namespace
}  // namespace kiln::cli::tune_report_test
