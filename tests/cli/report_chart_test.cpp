#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>

#include "report/chart.h"
#include "report/html_text.h"

namespace kiln::cli::report_chart_test {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(Escaped, LeavesNoMarkupNoControlAndNoBrokenText) {
  EXPECT_EQ(escaped(R"(<b a="1" c='2'>&amp;</b>)"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;&lt;/b&gt;");
  EXPECT_EQ(escaped("a\nb\tc"), "a\nb\tc");
  EXPECT_EQ(escaped(std::string("a\0\x1b[31m\x7f", 8)), "a\uFFFD\uFFFD[31m\uFFFD");
  EXPECT_EQ(escaped("\u00B5s \u20AC \U0001F600"), "\u00B5s \u20AC \U0001F600");
  // A lone continuation, an overlong slash, a surrogate, a cut sequence.
  EXPECT_EQ(escaped("\x80|\xC0\xAF|\xED\xA0\x80|\xE2\x82"), "\uFFFD|\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD\uFFFD");
}

TEST(LogAxis, HasSomeRoundTicksInsideForEveryRange) {
  for (const double ratio : {1.0, 1.001, 1.3, 2.0, 4.0, 7.0, 33.0, 1e3, 1e5, 1e9, 1e13}) {
    for (const double low : {1e-9, 3.7e-6, 9.99e-4, 0.5}) {
      const LogAxis axis(low, low * ratio);
      const std::vector<double> ticks = axis.ticks();
      EXPECT_GE(ticks.size(), 2u) << low << " x " << ratio;
      EXPECT_LE(ticks.size(), 8u) << low << " x " << ratio;
      EXPECT_TRUE(std::is_sorted(ticks.begin(), ticks.end()));
      EXPECT_GT(axis.percent(ticks.front()), 0);
      EXPECT_LT(axis.percent(ticks.back()), 100);
    }
  }
}

TEST(LogAxis, KeepsTheOrderOfTimesAndEndsWhereItEnds) {
  const LogAxis axis(1e-6, 1e-4);
  EXPECT_LT(axis.percent(1e-6), axis.percent(2e-6));
  EXPECT_LT(axis.percent(2e-6), axis.percent(1e-4));
  EXPECT_EQ(axis.percent(0), 0);
  EXPECT_EQ(axis.percent(-1), 0);
  EXPECT_EQ(axis.percent(1), 100);
}

TEST(SpreadChart, StacksPointsThatWouldCoverEachOther) {
  const LogAxis axis(1e-6, 1e-4);
  const std::string chart = spread_chart(axis, 1e-6,
                                         {{.seconds = 1e-5, .tuned = true, .label = "a"},
                                          {.seconds = 1e-5, .label = "b"},
                                          {.seconds = 1.01e-5, .fallback = true, .label = "c"},
                                          {.seconds = 9e-5, .label = "d"}});
  const std::regex mark(R"-(class="mark" x="[^"]*" y="([^"]*)")-");
  std::multiset<std::string> heights;
  for (std::sregex_iterator at(chart.begin(), chart.end(), mark), end; at != end; ++at) heights.insert((*at)[1]);
  EXPECT_EQ(heights.size(), 4u);
  EXPECT_EQ(std::set<std::string>(heights.begin(), heights.end()).size(), 3u);  // d stands beside a
}

TEST(SpreadChart, TellsTheMarksApartByShape) {
  const LogAxis axis(1e-6, 1e-4);
  const auto chart = [&](const SpreadPoint& point) { return spread_chart(axis, 1e-6, {point}); };
  EXPECT_THAT(chart({.seconds = 1e-5, .tuned = true}), HasSubstr("<path class=\"tuned\""));
  EXPECT_THAT(chart({.seconds = 1e-5, .fallback = true}), HasSubstr("<path class=\"fallback\""));
  EXPECT_THAT(chart({.seconds = 1e-5}), HasSubstr("<circle class=\"candidate\""));
  const std::string both = chart({.seconds = 1e-5, .tuned = true, .fallback = true});
  EXPECT_THAT(both, HasSubstr("<path class=\"tuned\""));
  EXPECT_THAT(both, HasSubstr("<path class=\"fallback\""));
  EXPECT_THAT(both, Not(HasSubstr("<circle")));
}

TEST(SpreadChart, DrawsNoRooflineThatLiesLeftOfTheAxis) {
  const auto chart = [](double roofline) {
    return spread_chart(LogAxis(1e-6, 1e-4), roofline, {{.seconds = 1e-5, .tuned = true}});
  };
  EXPECT_THAT(chart(1e-6), HasSubstr("class=\"roofline\""));
  EXPECT_THAT(chart(1e-8), Not(HasSubstr("class=\"roofline\"")));
}

TEST(SpreadChart, EscapesLabels) {
  const std::string chart =
      spread_chart(LogAxis(1e-6, 1e-4), 1e-6, {{.seconds = 1e-5, .tuned = true, .label = "<script>"}});
  EXPECT_THAT(chart, Not(HasSubstr("<script")));
}

TEST(BarChart, SaysInWordsWhatItShows) {
  const std::string chart = bar_chart(1e-5, 2e-5, 5e-6);
  EXPECT_THAT(chart, HasSubstr("aria-label=\"tuned 10.00 us, default 20.00 us, roofline 5.00 us\""));
  EXPECT_THAT(chart, HasSubstr("<rect class=\"tuned\" y=\"5\" width=\"50.00%\""));
  EXPECT_THAT(bar_chart(1e-5, 0, 5e-6), Not(HasSubstr("default")));
}

}  // namespace
}  // namespace kiln::cli::report_chart_test
