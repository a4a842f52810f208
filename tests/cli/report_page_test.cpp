#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <regex>
#include <set>

#include "kiln/base/error.h"
#include "report/page.h"

namespace kiln::cli::report_page_test {
namespace {

using testing::HasSubstr;
using testing::Not;

const char* const hostile = "</code><script>alert('\xff')</script>\"&";

tuner::Trial trial(const std::string& algorithm, tuner::Outcome outcome, double median) {
  tuner::Trial made;
  made.choice.algorithm = algorithm;
  made.outcome = outcome;
  made.seconds = median;
  if (median > 0) made.samples = {median, 1.1 * median};
  made.check = "largest error 1e-07 of 3e-06 allowed";
  made.algorithm_digest = "d1ge57";
  return made;
}

// One tuned layer and one that nothing serves; every text from outside is hostile.
class ReportPage : public testing::Test {
 protected:
  ReportPage() {
    apparatus_.device.name = hostile;
    apparatus_.driver_description = hostile;
    apparatus_.deterministic_time = true;
    apparatus_.target.arch = Arch::of(9, 0);
    apparatus_.figures = {.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12};
    tuner::JobResult tuned;
    tuned.request = Request::parse("conv_forward x=f32:1x8x14x14 w=f32:16x8x3x3 pad=1");
    tuned.count = 3;
    tuned.roofline_seconds = 1e-6;
    tuned.trials = {trial("conv_direct", tuner::Outcome::timed, 4e-6),
                    trial("conv_implicit_gemm", tuner::Outcome::timed, 2e-6),
                    trial(hostile, tuner::Outcome::compile_failed, 0)};
    tuned.trials[2].error = hostile;
    tuned.best = tuned.trials[1];
    tuned.heuristic = tuned.trials[0];
    tuned.refused = {{"conv_depthwise", hostile}, {"conv_1x1", "the filter is 3x3"}};
    tuner::JobResult failed;
    failed.request = Request::parse("softmax_forward x=f32:3x100");
    failed.status = tuner::JobStatus::failed;
    failed.error = hostile;
    results_ = {tuned, failed};
    not_covered_ = {{hostile, {hostile, "second"}, hostile}};
    nodes_.add(tuned.request, {"/layer1/conv", hostile});
  }

  TuneReport report() const {
    TuneReport made{apparatus_, results_, not_covered_, hostile, 1, hostile, hostile, "2026-11-20T10:00:00.000Z"};
    made.nodes = nodes_;
    return made;
  }

  std::string page() const { return print_page({report()}); }

  tuner::Apparatus apparatus_;
  std::vector<tuner::JobResult> results_;
  std::vector<NotCovered> not_covered_;
  ModelNodes nodes_;
};

TEST_F(ReportPage, SaysHowMuchWorkspaceAVariantTakes) {
  const std::vector<std::pair<int64_t, const char*>> rows = {{0, "none"},
                                                             {1, "1 B"},
                                                             {1023, "1023 B"},
                                                             {1024, "1.0 KiB"},
                                                             {1536, "1.5 KiB"},
                                                             {1047552, "1023.0 KiB"},
                                                             {1048524, "1023.9 KiB"},
                                                             {1048525, "1.0 MiB"},
                                                             {1048576, "1.0 MiB"},
                                                             {int64_t{5} << 29, "2560.0 MiB"}};
  for (const auto& [bytes, text] : rows) {
    for (tuner::Trial& each : results_[0].trials) each.workspace_bytes = bytes;
    EXPECT_THAT(page(), HasSubstr(fmt::format(">{}<", text)));
  }
}

TEST_F(ReportPage, NamesTheNodesOfAModelThatALayerServes) {
  EXPECT_THAT(page(), HasSubstr("2 nodes of the model: <code>/<wbr>layer1/<wbr>conv, "));
}

TEST_F(ReportPage, EscapesEveryTextFromOutside) {
  EXPECT_THAT(page(), Not(HasSubstr("<script")));
  EXPECT_THAT(page(), Not(HasSubstr("\xff")));
  EXPECT_THAT(page(), HasSubstr("&lt;script&gt;alert("));
}

TEST_F(ReportPage, FetchesNothingAndForbidsIt) {
  for (const char* way : {"http:", "https:", "src=", "url(", "@import", "<script", "<iframe", "<object", "onload"}) {
    EXPECT_THAT(page(), Not(HasSubstr(way))) << way;
  }
  EXPECT_THAT(page(), HasSubstr("Content-Security-Policy\" content=\"default-src 'none'"));
}

// Every element is closed where it was opened: no text can change what comes after it.
TEST_F(ReportPage, IsWellFormed) {
  const std::string text = page();
  const std::regex tag(R"-(<(/?)([a-z][a-z0-9]*)((?:[^<>"]|"[^"]*")*?)(/?)>)-");
  const std::set<std::string> empty = {"meta", "link", "wbr"};
  std::vector<std::string> open;
  size_t tags = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), tag), end; at != end; ++at, ++tags) {
    const std::string name = (*at)[2];
    if (empty.contains(name) || (*at)[4] == "/") continue;
    if ((*at)[1] != "/") {
      open.push_back(name);
      continue;
    }
    ASSERT_FALSE(open.empty()) << "</" << name << ">";
    ASSERT_EQ(open.back(), name);
    open.pop_back();
  }
  EXPECT_TRUE(open.empty());
  EXPECT_EQ(tags + 1, static_cast<size_t>(std::count(text.begin(), text.end(), '<')));  // and the doctype
}

TEST_F(ReportPage, SaysWhatBoundsTheWinnersWhereThatIsTold) {
  EXPECT_THAT(page(), Not(HasSubstr("Bound by ")));
  TuneReport told = report();
  told.launches = {{std::string("alu 90%, ") + hostile, std::string("busy alu 90%\n") + hostile}, {"", ""}};
  const std::string text = print_page({told});
  EXPECT_THAT(text, HasSubstr("<summary>Bound by alu 90%, "));
  EXPECT_THAT(text, HasSubstr("<pre>busy alu 90%\n"));
  EXPECT_THAT(text, Not(HasSubstr("<script")));
  const size_t first = text.find("Bound by ");
  EXPECT_EQ(text.find("Bound by ", first + 1), std::string::npos) << "nothing is told of the second layer";
}

TEST_F(ReportPage, SaysThatTimesAreModelled) {
  EXPECT_THAT(page(), HasSubstr("All times are modelled"));
  apparatus_.deterministic_time = false;
  EXPECT_THAT(page(), Not(HasSubstr("modelled")));
}

TEST_F(ReportPage, ShowsTimesAgainstRooflineAndDefault) {
  EXPECT_THAT(page(), HasSubstr("tuned 2.00 us, default 4.00 us, roofline 1.00 us"));
  EXPECT_THAT(page(), HasSubstr("50.0% of roofline"));
  EXPECT_THAT(page(), HasSubstr("tuned is 2.00x as fast"));
  EXPECT_THAT(page(), HasSubstr("6.00 us"));  // with its count
}

TEST_F(ReportPage, BeginsWithFiguresOfAllLayers) {
  const std::string text = page();
  const size_t time = text.find("<h2>Where the time goes"), roofline = text.find("<h2>Roofline");
  const size_t gains = text.find("<h2>Gains by tuning"), layers = text.find("<h2>Layers");
  EXPECT_TRUE(time < roofline && roofline < gains && gains < layers && layers != std::string::npos);
  EXPECT_THAT(text, HasSubstr("data-name=\"of the time\">100.0%<"));
  EXPECT_THAT(text, HasSubstr("data-name=\"of the time\">-<")) << "the layer that nothing serves";
}

// A layer that the budget did not reach.
TEST_F(ReportPage, CountsALayerWithoutATimeWithTheEstimateOfItsDefault) {
  EXPECT_THAT(page(), HasSubstr("layers with nothing to use, left out"));
  tuner::JobResult& left = results_[1];
  left.status = tuner::JobStatus::out_of_time;
  left.error.clear();
  left.count = 2;
  left.roofline_seconds = 1e-6;
  left.fallback = Candidate{{"softmax_rows", Config()}, {.seconds = 7e-6}};
  EXPECT_THAT(page(), HasSubstr("Keeps the default choice <strong>softmax_rows</strong>"));
  EXPECT_THAT(page(), HasSubstr("~7.00 us"));
  EXPECT_THAT(page(), HasSubstr("layers at their default's estimate"));
  EXPECT_THAT(page(), HasSubstr("20.00 us"));  // 3 x 2 + 2 x 7
  EXPECT_THAT(page(), Not(HasSubstr("left out")));
}

TEST_F(ReportPage, TellsNoGainOverADefaultWithoutATime) {
  EXPECT_THAT(page(), HasSubstr("<dt>gain over default</dt><dd>2.00x</dd>"));
  EXPECT_THAT(page(), Not(HasSubstr("counted as no gain")));
  results_[0].heuristic->outcome = tuner::Outcome::wrong_result;
  EXPECT_THAT(page(), HasSubstr("<dt>gain over default</dt><dd>-</dd>"));
  EXPECT_THAT(page(), HasSubstr("<dt>layers whose default has no time, counted as no gain</dt><dd>1</dd>"));
  EXPECT_THAT(page(), HasSubstr("data-name=\"default\">-</td><td class=\"number\" data-name=\"gain\">-</td>"));
  EXPECT_THAT(page(), Not(HasSubstr("x as fast")));
}

TEST_F(ReportPage, NamesEveryCandidateAndRefusalWithItsReason) {
  EXPECT_THAT(page(), HasSubstr("3 candidates: 2 timed, 1 compile failed"));
  EXPECT_THAT(page(), HasSubstr("<dt>conv_1x1</dt><dd>the filter is 3x3</dd>"));
  EXPECT_THAT(page(), HasSubstr("<strong>Nothing to use:</strong> &lt;/code&gt;"));
  EXPECT_THAT(page(), HasSubstr("d1ge57"));
  EXPECT_THAT(page(), HasSubstr("2 &times; &lt;/code&gt;"));
}

}  // namespace
}  // namespace kiln::cli::report_page_test
