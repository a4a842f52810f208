#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/html_text.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

constexpr std::string_view diamond = R"(<path class="tuned" d="M0-6 6 0 0 6-6 0z"/>)";
constexpr std::string_view square = R"(<path class="fallback" d="M-7-7H7V7H-7z"/>)";
constexpr std::string_view ring = R"(<circle class="candidate" r="4"/>)";

constexpr double lane_height = 11;     // of stacked points, pixels
constexpr double lane_distance = 2.8;  // least distance of two points in one lane, percent: their width on a phone

// 12 us, 0.5 us, 1.25 ms.
std::string tick_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.4g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.4g} ms", seconds * 1e3);
  return fmt::format("{:.4g} s", seconds);
}

// The lowest lane in which each point, in the order of time, covers no other.
std::vector<size_t> lanes_of(const LogAxis& axis, const std::vector<SpreadPoint>& points) {
  std::vector<double> last_in_lane;
  std::vector<size_t> lanes;
  for (const SpreadPoint& point : points) {
    const double place = axis.percent(point.seconds);
    size_t lane = 0;
    while (lane < last_in_lane.size() && place - last_in_lane[lane] < lane_distance) ++lane;
    if (lane == last_in_lane.size()) last_in_lane.push_back(0);
    last_in_lane[lane] = place;
    lanes.push_back(lane);
  }
  return lanes;
}

std::string point_text(const LogAxis& axis, const SpreadPoint& point, double y) {
  std::string text;
  if (point.spread > 0) {
    text += fmt::format(R"(<line class="whisker" x1="{0:.2f}%" x2="{1:.2f}%" y1="{2}" y2="{2}"/>)",
                        axis.percent(point.seconds - point.spread), axis.percent(point.seconds + point.spread), y);
  }
  std::string shape(point.tuned ? diamond : point.fallback ? "" : ring);
  if (point.fallback) shape += square;
  return text + fmt::format(R"(<svg class="mark" x="{:.2f}%" y="{}"><title>{}</title>{}</svg>)",
                            axis.percent(point.seconds), y, escaped(point.label), shape);
}

std::string axis_text(const LogAxis& axis, double y) {
  std::string text = fmt::format(R"(<line class="axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>)", y);
  for (const double tick : axis.ticks()) {
    text += fmt::format(
        R"(<line class="axis" x1="{0:.2f}%" x2="{0:.2f}%" y1="{1}" y2="{2}"/><text x="{0:.2f}%" y="{3}">{4}</text>)",
        axis.percent(tick), y, y + 4, y + 17, tick_text(tick));
  }
  return text;
}

}  // namespace

std::string glyph(Mark mark) {
  constexpr std::string_view line = R"(<path class="roofline" d="M0-8V8"/>)";
  std::string_view shape = ring;
  if (mark == Mark::tuned) shape = diamond;
  if (mark == Mark::fallback) shape = square;
  if (mark == Mark::roofline) shape = line;
  return fmt::format(R"(<svg class="glyph" viewBox="-9 -9 18 18" aria-hidden="true">{}</svg>)", shape);
}

std::string bar_chart(double tuned, double fallback, double roofline) {
  const double whole = std::max({tuned, fallback, roofline});
  std::string label = fmt::format("tuned {}", time_text(tuned));
  std::string text;
  if (fallback > 0) {
    text += fmt::format(R"(<rect class="fallback" y="3" width="{:.2f}%" height="14"/>)", 100 * fallback / whole);
    label += fmt::format(", default {}", time_text(fallback));
  }
  text += fmt::format(R"(<rect class="tuned" y="5" width="{:.2f}%" height="10"/>)", 100 * tuned / whole);
  text += fmt::format(R"(<line class="halo" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="20"/>)"
                      R"(<line class="roofline" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="20"/>)",
                      100 * roofline / whole);
  label += fmt::format(", roofline {}", time_text(roofline));
  return fmt::format(R"(<svg class="bar" height="20" role="img" aria-label="{}">{}</svg>)", label, text);
}

std::string spread_chart(const LogAxis& axis, double roofline, std::vector<SpreadPoint> points) {
  std::sort(points.begin(), points.end(),
            [](const SpreadPoint& a, const SpreadPoint& b) { return a.seconds < b.seconds; });
  const std::vector<size_t> lanes = lanes_of(axis, points);
  const size_t highest = lanes.empty() ? 0 : *std::max_element(lanes.begin(), lanes.end());
  const double floor = 14 + lane_height * static_cast<double>(highest);  // the middle of the lowest lane
  std::string text = axis_text(axis, floor + 13);
  if (axis.percent(roofline) > 0) {
    text += fmt::format(R"(<line class="roofline" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="{1}"/>)",
                        axis.percent(roofline), floor + 13);
  }
  for (size_t i = 0; i < points.size(); ++i) {
    text += point_text(axis, points[i], floor - lane_height * static_cast<double>(lanes[i]));
  }
  return fmt::format(R"(<svg class="spread" height="{}" role="img" aria-label="times of {} candidates">{}</svg>)",
                     floor + 36, points.size(), text);
}

std::string range_chart(const LogAxis& axis, double fastest, double median, double slowest) {
  return fmt::format(
      R"(<svg class="range" height="16" aria-hidden="true"><line class="axis" x1="0" x2="100%" y1="8" y2="8"/>)"
      R"(<line class="whisker" x1="{0:.2f}%" x2="{1:.2f}%" y1="8" y2="8"/>)"
      R"(<line class="median" x1="{2:.2f}%" x2="{2:.2f}%" y1="2" y2="14"/></svg>)",
      axis.percent(fastest), axis.percent(slowest), axis.percent(median));
}

}  // namespace kiln::cli
