#include <gmock/gmock.h>

#include <cmath>
#include <regex>
#include <string>
#include <vector>

#include "kiln/generator/roofline.h"
#include "report/figures.h"
#include "report/plots.h"

namespace kiln::cli::report_plots_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

// The numbers of every match of `pattern`, a row for each.
std::vector<std::vector<double>> numbers_in(const std::string& text, const std::string& pattern) {
  const std::regex expression(pattern);
  std::vector<std::vector<double>> rows;
  for (std::sregex_iterator at(text.begin(), text.end(), expression), end; at != end; ++at) {
    std::vector<double> row;
    for (size_t i = 1; i < at->size(); ++i) row.push_back(std::stod((*at)[i]));
    rows.push_back(row);
  }
  return rows;
}

// x and width of each part of a stacked bar, percent.
std::vector<std::vector<double>> parts_in(const std::string& bar) {
  return numbers_in(bar, R"-(class="part[^"]*" x="([\d.]+)%" width="([\d.]+)%")-");
}

double widths_in(const std::string& bar) {
  double sum = 0;
  for (const auto& part : parts_in(bar)) sum += part[1];
  return sum;
}

// cx in percent and cy in pixels of each dot.
std::vector<std::vector<double>> dots_in(const std::string& plot) {
  return numbers_in(plot, R"-(class="dot" cx="([\d.]+)%" cy="([\d.]+)")-");
}

TEST(StackedBar, PutsPartsSideBySideInProportion) {
  const std::string bar =
      stacked_bar({{3, "a", "", 5e-6}, {1, "b", "", 3e-6}, {0, "2 others", "", 2e-6}}, 20e-6, Mark::tuned);
  const auto parts = parts_in(bar);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_THAT(parts[0], ElementsAre(0, 25));
  EXPECT_THAT(parts[1], ElementsAre(25, 15));
  EXPECT_THAT(parts[2], ElementsAre(40, 10));
  EXPECT_THAT(bar, HasSubstr("<a href=\"#layer-3\"><svg class=\"part\""));
  EXPECT_THAT(bar, Not(HasSubstr("#layer-0")));
}

TEST(StackedBar, ShowsAsMuchOfANameAsFitsAndNoHalfCharacters) {
  const std::string name = "conv 1x64x56x56 -> 64, 3x3, pad 1, bias+relu";
  const auto bar = [&](const std::string& label, double seconds) {
    return stacked_bar({{7, label, "title", seconds}}, 1, Mark::tuned);
  };
  EXPECT_THAT(bar(name, 1),
              HasSubstr(">7<tspan class=\"name\" dx=\"6\">conv 1x64x56x56 -&gt; 64, 3x3, pad 1, bias+relu<"));
  EXPECT_THAT(bar(name, 0.2), HasSubstr(">conv 1x64x56x56…</tspan>"));
  EXPECT_THAT(bar(name, 0.05), HasSubstr("<text x=\"50%\" y=\"21\" text-anchor=\"middle\">7</text>"));
  EXPECT_THAT(bar(name, 0.025), HasSubstr("<text class=\"wide\" x=\"50%\""));
  EXPECT_THAT(bar(name, 0.01), Not(HasSubstr("<text")));
  EXPECT_THAT(bar(name, 0.01), HasSubstr("<title>title</title>"));
  for (double share = 0.1; share < 0.6; share += 0.01) {
    const std::string text =
        bar("\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5\u00B5", share);
    EXPECT_THAT(text, Not(HasSubstr("\uFFFD"))) << share;
  }
}

TEST(StackedBar, EscapesNames) {
  const std::string bar = stacked_bar({{1, "<b>&\"", "<i>&'", 1}}, 1, Mark::fallback);
  EXPECT_THAT(bar, HasSubstr("&lt;b&gt;&amp;&quot;"));
  EXPECT_THAT(bar, HasSubstr("<title>&lt;i&gt;&amp;&#39;</title>"));
}

// Plot of a device of 1 TB/s and 10 TFLOP/s, which meet at 10 FLOP for each byte.
class RooflinePlot : public testing::Test {
 protected:
  std::string plot(std::vector<RooflinePoint> points) const {
    return roofline_plot(1e12, {{"f32 arithmetic", 10e12}}, std::move(points));
  }
  // x1, y1, x2, y2 of the slope, then of the level (whose x2 is 100%).
  static std::vector<std::vector<double>> roofs_in(const std::string& text) {
    return numbers_in(text, R"-(class="roofline" x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" y2="([\d.]+)"/>)-");
  }
};

TEST_F(RooflinePlot, PutsALayerThatReachesTheRoofOnItsLines) {
  const std::string text = plot({{1, "", 10, 10e12, 0, 0.5}, {2, "", 1, 1e12, 0, 0.3}, {3, "", 100, 10e12, 0, 0.2}});
  const auto roofs = roofs_in(text), dots = dots_in(text);
  ASSERT_EQ(roofs.size(), 2U);
  ASSERT_EQ(dots.size(), 3U);
  const auto& slope = roofs[0];
  const auto& level = roofs[1];
  EXPECT_NEAR(slope[2], level[0], 0.01) << "where they meet";
  EXPECT_NEAR(slope[3], level[1], 0.1);
  EXPECT_NEAR(dots[0][0], slope[2], 0.01);
  EXPECT_NEAR(dots[0][1], slope[3], 0.1);
  const double along = (dots[1][0] - slope[0]) / (slope[2] - slope[0]);
  EXPECT_NEAR(dots[1][1], slope[1] + along * (slope[3] - slope[1]), 0.3) << "on the slope";
  EXPECT_NEAR(dots[2][1], level[1], 0.1) << "on the level";
  EXPECT_GT(dots[2][0], level[0]);
}

TEST_F(RooflinePlot, IsLogarithmicInBothDirections) {
  const auto dots = dots_in(plot({{1, "", 1, 1e9, 0, 0.4}, {2, "", 10, 1e10, 0, 0.3}, {3, "", 100, 1e11, 0, 0.3}}));
  ASSERT_EQ(dots.size(), 3U);
  EXPECT_NEAR(dots[1][0] - dots[0][0], dots[2][0] - dots[1][0], 0.02);
  EXPECT_NEAR(dots[0][1] - dots[1][1], dots[1][1] - dots[2][1], 0.2);
  EXPECT_GT(dots[0][1], dots[1][1]) << "up is faster";
}

TEST_F(RooflinePlot, KeepsEverythingInside) {
  const std::string text = plot({{1, "", 1e-3, 1e3, 1e2, 1}, {2, "", 1e6, 11e12, 12e12, 0}});
  for (const auto& dot : dots_in(text)) {
    EXPECT_GT(dot[0], 0);
    EXPECT_LT(dot[0], 100);
    EXPECT_GT(dot[1], 0);
    EXPECT_LT(dot[1], 340);
  }
  for (const auto& roof : roofs_in(text)) {
    for (const double y : {roof[1], roof[3]}) EXPECT_TRUE(y >= 0 && y <= 340) << y;
  }
}

TEST_F(RooflinePlot, RisesFromTheDefaultChoice) {
  EXPECT_THAT(plot({{1, "", 10, 1e12, 0, 1}}), Not(HasSubstr("class=\"rise\"")));
  const std::string text = plot({{1, "", 10, 4e12, 1e12, 1}});
  const auto rise = numbers_in(text, R"-(class="rise" x1="([\d.]+)%" y1="([\d.]+)" x2="([\d.]+)%" y2="([\d.]+)")-");
  const auto dots = dots_in(text);
  ASSERT_EQ(rise.size(), 1U);
  EXPECT_EQ(rise[0][0], dots[0][0]);
  EXPECT_EQ(rise[0][3], dots[0][1]);
  EXPECT_GT(rise[0][1], dots[0][1]);
}

TEST_F(RooflinePlot, NamesNoTwoLayersInOnePlace) {
  std::vector<RooflinePoint> points;
  for (size_t i = 1; i <= 300; ++i)
    points.push_back({i, "", 10 + 0.01 * static_cast<double>(i % 7), 1e12, 0, 1.0 / 300});
  const auto numbers =
      numbers_in(plot(points),
                 R"-(class="named(?: wide)?" x="([\d.]+)%" y="([\d.]+)" dx="([-\d.]+)" text-anchor="middle">(\d+))-");
  EXPECT_GE(numbers.size(), 1U);
  EXPECT_LE(numbers.size(), 40U);
  for (const auto& a : numbers) {
    for (const auto& b : numbers) {
      if (a[3] == b[3]) continue;
      EXPECT_TRUE(std::abs(7.2 * (a[0] - b[0]) + a[2] - b[2]) >= 13 || std::abs(a[1] - b[1]) >= 9)
          << a[3] << " " << b[3];
    }
  }
}

// Some 43 pixels apart on a screen, and 20 on a phone, where the first number would stand on the second dot.
TEST_F(RooflinePlot, KeepsNumbersOffOtherDotsOnPhones) {
  const std::string text = plot({{1, "", 10, 1e12, 0, 0.6}, {2, "", 11.8, 1e12, 0, 0.4}});
  const auto dots = dots_in(text);
  const auto numbers =
      numbers_in(text, R"-(class="named" x="([\d.]+)%" y="([\d.]+)" dx="([-\d.]+)" text-anchor="middle">(\d+))-");
  ASSERT_EQ(dots.size(), 2U);
  ASSERT_FALSE(numbers.empty());
  constexpr double phone = 3.3;  // pixels for a percent
  for (const auto& number : numbers) {
    for (const auto& dot : dots) {
      const bool beside = std::abs(phone * (number[0] - dot[0]) + number[2]) >= 12;
      EXPECT_TRUE(beside || std::abs(number[1] - 4 - dot[1]) >= 10) << number[3];
    }
  }
}

TEST_F(RooflinePlot, EscapesTitles) {
  EXPECT_THAT(plot({{1, "<b>&", 10, 1e12, 0, 1}}), HasSubstr("<title>&lt;b&gt;&amp;</title>"));
}

TEST(GainPlot, HasABarAsHighAsTheGain) {
  const std::string plot = gain_plot({{1, "", 1}, {2, "", 2}, {3, "", 4}, {4, "", 0}, {5, "", 0.5}});
  const auto bars =
      numbers_in(plot, R"-(class="gain" x="([\d.]+)%" y="([\d.]+)" width="([\d.]+)%" height="([\d.]+)")-");
  const auto base = numbers_in(plot, R"-(class="base" x1="0" x2="100%" y1="([\d.]+)")-");
  ASSERT_EQ(bars.size(), 4U) << "none where there is no gain to tell";
  EXPECT_EQ(bars[0][3], 1) << "1x: a line";
  EXPECT_NEAR(bars[2][3], 2 * bars[1][3], 0.2);
  EXPECT_NEAR(bars[3][3], bars[1][3], 0.2) << "half as fast, down";
  EXPECT_NEAR(bars[3][1], base[0][0], 0.1);
  EXPECT_NEAR(bars[1][1] + bars[1][3], base[0][0], 0.2);
}

TEST(GainPlot, HasRoomForOneLayerAndForManyOf) {
  for (const size_t count : {1, 7, 300}) {
    const std::string plot = gain_plot(std::vector<Gain>(count, {1, "", 1.5}));
    const auto bars = numbers_in(plot, R"-(class="gain" x="([\d.]+)%" y="[\d.]+" width="([\d.]+)%")-");
    ASSERT_EQ(bars.size(), count);
    EXPECT_LE(bars.back()[0] + bars.back()[1], 100.01);
    EXPECT_LE(bars.front()[1], 5);
  }
}

TEST_F(RooflinePlot, WritesNamesOfRoofsThatAreCloseInDifferentPlaces) {
  const std::string text = roofline_plot(1e12, {{"a", 10e12}, {"b", 11e12}, {"c", 12e12}}, {{1, "", 1, 1e3, 0, 1}});
  const auto names = numbers_in(text, R"-(class="roof" x="100%" y="([-\d.]+)")-");
  ASSERT_EQ(names.size(), 3U);
  EXPECT_GE(names[1][0] - names[0][0], 13);
  EXPECT_GE(names[2][0] - names[1][0], 13);
}

// Layers of an H200: `count` of 2 us each that take 3 us by default.
class Figures : public testing::Test {
 protected:
  explicit Figures(size_t count = 0) {
    apparatus_.deterministic_time = true;
    apparatus_.target.arch = Arch::of(9, 0);
    apparatus_.figures = {.sms = 132, .clock_hz = 1.98e9, .dram_bytes_per_second = 4.8e12, .l2_bytes = 50 << 20};
    for (size_t i = 0; i < count; ++i) add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 3e-6);
  }

  tuner::JobResult& add(const std::string& request, double seconds, double by_default, int64_t count = 1) {
    tuner::JobResult result;
    result.request = Request::parse(request);
    result.count = count;
    result.best = trial("fast<&>", seconds);
    result.heuristic = trial("usual", by_default);
    results_.push_back(result);
    return results_.back();
  }

  static tuner::Trial trial(const std::string& algorithm, double seconds) {
    tuner::Trial made;
    made.choice.algorithm = algorithm;
    made.outcome = tuner::Outcome::timed;
    made.seconds = seconds;
    return made;
  }

  std::string text() const { return figures({apparatus_, results_, {}, "", 0, "", "", ""}); }

  // The two stacked bars, tuned first.
  static std::vector<std::string> bars_in(const std::string& page) {
    std::vector<std::string> bars;
    for (const char* kind : {"of-tuned", "of-fallback"}) {
      const size_t begin = page.find(std::string("<svg class=\"stack ") + kind);
      if (begin != std::string::npos) bars.push_back(page.substr(begin, page.find('\n', begin) - begin));
    }
    return bars;
  }

  tuner::Apparatus apparatus_;
  std::vector<tuner::JobResult> results_;
};

TEST_F(Figures, FillTheLongerBarAndShowTheGainInTheOther) {
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 6e-6, 3);
  add("softmax_forward x=f32:64x1000", 4e-6, 4e-6);
  const auto bars = bars_in(text());
  ASSERT_EQ(bars.size(), 2U);
  EXPECT_NEAR(widths_in(bars[1]), 100, 0.01);
  EXPECT_NEAR(widths_in(bars[0]), 100 * 10.0 / 22, 0.01);
  EXPECT_NEAR(parts_in(bars[0])[0][1], 100 * 6.0 / 22, 0.01) << "the count counts";
  EXPECT_THAT(text(), HasSubstr("1: gemm 64x64 by 64x64: 2.00 us, 3 times, 60.0% of the time"));
  EXPECT_THAT(text(), HasSubstr("tuned: <strong>10.00 us</strong> modelled"));
  EXPECT_THAT(text(), HasSubstr("default choices: <strong>22.00 us</strong> modelled"));
}

TEST_F(Figures, PutDotsWhereWorkAndTimeSay) {
  add("gemm a=f32:4096x4096 b=f32:4096x4096", 5e-3, 8e-3);  // 2 * 4096^3 FLOP, 3 * 4096^2 * 4 bytes
  const Roofline bound = roofline(results_[0].request, apparatus_.target.arch, apparatus_.figures);
  EXPECT_DOUBLE_EQ(bound.flops, 2.0 * 4096 * 4096 * 4096);
  EXPECT_DOUBLE_EQ(bound.bytes, 3.0 * 4096 * 4096 * 4);
  EXPECT_THAT(
      text(),
      HasSubstr(
          "1: gemm 4096x4096 by 4096x4096: fast&lt;&amp;&gt; -: 5.00 ms modelled, 27.5 TFLOP/s, 41.1% of its roof"));
  EXPECT_THAT(text(), HasSubstr("f32 arithmetic 66.9 TFLOP/s"));
  EXPECT_THAT(text(), HasSubstr("memory 4.8 TB/s"));
  EXPECT_THAT(text(), Not(HasSubstr("Not here")));
  EXPECT_EQ(dots_in(text()).size(), 1U);
}

TEST_F(Figures, HaveARoofForEachArithmetic) {
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 2e-6);
  add("gemm a=f16:64x64 b=f16:64x64", 2e-6, 2e-6);
  EXPECT_THAT(text(), HasSubstr("f32 arithmetic 66.9 TFLOP/s"));
  EXPECT_THAT(text(), HasSubstr("tensor cores in f16 or bf16 1.07 PFLOP/s"));
}

TEST_F(Figures, SayWhichLayersHaveNoPlace) {
  add("tensor_set y=f32:4x16", 2e-6, 2e-6);
  EXPECT_THAT(text(), Not(HasSubstr("<h2>Roofline"))) << "nothing computes";
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 2e-6);
  EXPECT_THAT(text(), HasSubstr("Not here: 1 layer, without any arithmetic."));
  apparatus_.figures = {};
  EXPECT_THAT(text(), Not(HasSubstr("<h2>Roofline"))) << "no figures of the device";
}

TEST_F(Figures, LeaveOutWhatHasNoTime) {
  EXPECT_EQ(text(), "") << "no layer at all";
  add("gemm a=f32:64x64 b=f32:64x64", 0, 0);
  results_.back().status = tuner::JobStatus::failed;
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 2e-6).best.reset();
  EXPECT_EQ(text(), "");
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 3e-6);
  const auto bars = bars_in(text());
  EXPECT_EQ(parts_in(bars[0]).size(), 1U);
  EXPECT_THAT(bars[0], HasSubstr("#layer-3"));
  EXPECT_THAT(text(), Not(HasSubstr("nan")));
  EXPECT_THAT(text(), Not(HasSubstr("inf")));
}

TEST_F(Figures, MarkEstimatesAndTellNoGainOfThem) {
  tuner::JobResult& left = add("gemm a=f32:64x64 b=f32:64x64", 1, 1);
  left.best.reset();
  left.heuristic.reset();
  left.status = tuner::JobStatus::out_of_time;
  left.fallback = Candidate{{"usual", Config()}, {.seconds = 7e-6}};
  EXPECT_THAT(text(), HasSubstr("~7.00 us, 100.0% of the time"));
  EXPECT_THAT(text(), HasSubstr("usual -: ~7.00 us estimated"));
  EXPECT_THAT(text(), HasSubstr("<strong>7.00 us</strong> modelled, ~7.00 us of it estimated"));
  EXPECT_THAT(text(), Not(HasSubstr("Gains by tuning")));
  EXPECT_THAT(text(), Not(HasSubstr("class=\"rise\"")));
}

TEST_F(Figures, ShowTwelveLayersAloneAndTheOthersTogether) {
  for (int i = 0; i < 12; ++i) add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 3e-6);
  EXPECT_EQ(parts_in(bars_in(text())[0]).size(), 12U);
  add("gemm a=f32:64x64 b=f32:64x64", 1e-6, 3e-6);
  add("softmax_forward x=f32:64x1000", 1e-6, 4e-6);
  const std::string bar = bars_in(text())[0];
  EXPECT_EQ(parts_in(bar).size(), 13U);
  EXPECT_THAT(bar, HasSubstr("#layer-12"));
  EXPECT_THAT(bar, Not(HasSubstr("#layer-13")));
  EXPECT_THAT(bar, HasSubstr("2 others"));
}

TEST_F(Figures, StandForADefaultWithoutATimeByNoGain) {
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 4e-6);
  add("gemm a=f32:64x64 b=f32:64x64", 2e-6, 0).heuristic->outcome = tuner::Outcome::crashed;
  EXPECT_EQ(numbers_in(text(), R"-(class="gain" x="([\d.]+))-").size(), 1U);
}

class FiguresOf300 : public Figures {
 protected:
  FiguresOf300() : Figures(300) {}
};

TEST_F(FiguresOf300, GroupWhatIsTooShortToBeSeen) {
  results_[41].count = 200;
  const auto bars = bars_in(text());
  ASSERT_EQ(bars.size(), 2U);
  for (const std::string& bar : bars) EXPECT_EQ(parts_in(bar).size(), 2U);
  EXPECT_THAT(bars[0], HasSubstr("#layer-42"));
  EXPECT_THAT(bars[0], HasSubstr("299 of gemm: 598.00 us, 59.9% of the time"));
  EXPECT_NEAR(widths_in(bars[1]), 100, 0.01);
  EXPECT_NEAR(widths_in(bars[0]), 100 * 2.0 / 3, 0.01);
  EXPECT_EQ(dots_in(text()).size(), 300U);
}

TEST_F(FiguresOf300, GroupByOperationWhereAllAreShort) {
  for (size_t i = 0; i < 100; ++i) results_[i].request = Request::parse("softmax_forward x=f32:64x1000");
  results_[200].request = Request::parse("pool_forward x=f32:1x4x8x8 window=2");
  results_[201].request = Request::parse("tensor_set y=f32:4x16");
  const std::string bar = bars_in(text())[0];
  const auto parts = parts_in(bar);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_NEAR(parts[0][1], 100 * 2.0 / 3 * 198 / 300, 0.01);
  EXPECT_THAT(bar, HasSubstr(">198 of gemm<"));
  EXPECT_THAT(bar, HasSubstr(">100 of softmax_forw…<"));
  EXPECT_THAT(bar, HasSubstr("<title>2 others: 4.00 us"));
}

TEST_F(Figures, ShowASingleShortLayerByItself) {
  add("gemm a=f32:64x64 b=f32:64x64", 1, 1);
  add("softmax_forward x=f32:64x1000", 1e-6, 1e-6);
  EXPECT_THAT(text(), Not(HasSubstr("others")));
  EXPECT_EQ(parts_in(bars_in(text())[0]).size(), 2U);
}

}  // namespace
}  // namespace kiln::cli::report_plots_test
