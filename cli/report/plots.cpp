#include "report/plots.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "report/html_text.h"
#include "report/layer_section.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

// Room is judged in pixels, at the least width at which names are shown (report.css: 48rem less the padding).
constexpr double pixels_per_percent = 7.2, pixels_per_letter = 7;
constexpr double narrow_pixels_per_percent = 3.3;  // a phone's, on which texts of the class `wide` are not shown

constexpr double bar_height = 34, plot_height = 340, gain_height = 130;  // pixels

// `drawing` as a link to a layer's section.
std::string linked(size_t number, const std::string& drawing) {
  return number == 0 ? drawing : fmt::format(R"(<a href="{}">{}</a>)", layer_anchor(number), drawing);
}

// The first letters of `label`, at most `room` bytes with the mark of what is left out; no cut inside a character.
std::string shortened(const std::string& label, size_t room) {
  if (label.size() <= room) return label;
  size_t end = room - 1;
  while (end > 0 && (static_cast<unsigned char>(label[end]) & 0xC0) == 0x80) --end;
  return label.substr(0, end) + "…";
}

// Text in a part: its number, and as much of its name as fits; the name alone where it has no number.
std::string part_text(const Part& part, double percent) {
  const size_t least_letters = std::min<size_t>(14, part.label.size());
  const std::string number = part.number == 0 ? "" : std::to_string(part.number);
  const auto letters_in = [&](double padding) {
    return static_cast<size_t>(std::max(0.0, (percent * pixels_per_percent - padding) / pixels_per_letter));
  };
  if (const size_t room = letters_in(20); room >= number.size() + least_letters) {
    return fmt::format(R"(<text x="7" y="21">{}<tspan class="name" dx="{}">{}</tspan></text>)", number,
                       number.empty() ? 0 : 6, escaped(shortened(part.label, room - number.size())));
  }
  if (number.empty() || letters_in(3) < number.size()) return {};
  const bool on_phones =
      percent * narrow_pixels_per_percent > 3 + pixels_per_letter * static_cast<double>(number.size());
  return fmt::format(R"(<text{} x="50%" y="21" text-anchor="middle">{}</text>)", on_phones ? "" : R"( class="wide")",
                     number);
}

// Pixels from the top.
double down(const LogAxis& axis, double value, double height) {
  return height * (1 - axis.percent(value) / 100);
}

// Lines across the plot at the round values of an axis that goes up, with `text_of` them at the left.
template <class TextOf>
std::string lines_across(const LogAxis& axis, double height, TextOf text_of) {
  std::string text;
  for (const double tick : axis.ticks()) {
    text += fmt::format(R"(<line class="axis" x1="0" x2="100%" y1="{0:.1f}" y2="{0:.1f}"/>)"
                        R"(<text x="-8" y="{1:.1f}" text-anchor="end">{2}</text>)",
                        down(axis, tick, height), down(axis, tick, height) + 4, text_of(tick));
  }
  return text;
}

// Where the lines of the roofline lie.
struct Frame {
  LogAxis across, up;
  double x(double flops_per_byte) const { return across.percent(flops_per_byte); }
  double y(double flops_per_second) const { return down(up, flops_per_second, plot_height); }
};

// All points and roofs, and enough on both sides of where memory and arithmetic limit alike to see the roof's shape.
Frame frame_of(double bytes_per_second, const std::vector<Roof>& roofs, const std::vector<RooflinePoint>& points) {
  constexpr double beside = 4;
  double left = points.front().flops_per_byte, right = left;
  double bottom = points.front().flops_per_second, top = bottom;
  for (const RooflinePoint& point : points) {
    left = std::min(left, point.flops_per_byte);
    right = std::max(right, point.flops_per_byte);
    for (const double rate : {point.flops_per_second, point.fallback_flops_per_second}) {
      if (rate > 0) bottom = std::min(bottom, rate);
      top = std::max(top, rate);
    }
  }
  for (const Roof& roof : roofs) {
    const double ridge = roof.flops_per_second / bytes_per_second;
    left = std::min(left, ridge / beside);
    right = std::max(right, ridge * beside);
    top = std::max(top, roof.flops_per_second);
  }
  return {LogAxis(left, right), LogAxis(bottom / 1.5, top * 2)};
}

// The slope of memory and a level for each arithmetic, with their names.
std::string roofs_text(const Frame& frame, double bytes_per_second, const std::vector<Roof>& roofs) {
  const double highest = roofs.front().flops_per_second;
  const double begin = std::max(frame.across.low(), frame.up.low() / bytes_per_second);
  const double ridge = highest / bytes_per_second;
  std::string text = fmt::format(R"(<line class="roofline" x1="{:.2f}%" y1="{:.1f}" x2="{:.2f}%" y2="{:.1f}"/>)",
                                 frame.x(begin), frame.y(begin * bytes_per_second), frame.x(ridge), frame.y(highest));
  // Left of the slope nothing else can stand.
  text += fmt::format(R"(<text class="roof" x="{:.2f}%" y="{:.1f}" dx="-6" text-anchor="end">memory {}</text>)",
                      frame.x(ridge), frame.y(highest) - 22, rate_text(bytes_per_second, "B/s"));
  double text_above = -plot_height;
  for (const Roof& roof : roofs) {
    const double level = frame.y(roof.flops_per_second);
    text += fmt::format(R"(<line class="roofline" x1="{0:.2f}%" y1="{1:.1f}" x2="100%" y2="{1:.1f}"/>)",
                        frame.x(roof.flops_per_second / bytes_per_second), level);
    const bool room_above = level - 6 >= text_above + 18;
    text_above = room_above ? level - 6 : std::max(level + 13, text_above + 14);
    text += fmt::format(R"(<text class="roof" x="100%" y="{:.1f}" text-anchor="end">{} {}</text>)", text_above,
                        escaped(roof.label), rate_text(roof.flops_per_second, "FLOP/s"));
  }
  return text;
}

// From the default choice up to the dot of the tuned one.
std::string point_text(const Frame& frame, const RooflinePoint& point) {
  const double x = frame.x(point.flops_per_byte), y = frame.y(point.flops_per_second);
  std::string text;
  if (point.fallback_flops_per_second > 0) {
    const double from = frame.y(point.fallback_flops_per_second);
    text += fmt::format(R"(<line class="rise" x1="{0:.2f}%" y1="{1:.1f}" x2="{0:.2f}%" y2="{2:.1f}"/>)", x, from, y);
  }
  return text +
         linked(point.number,
                fmt::format(R"(<circle class="dot" cx="{:.2f}%" cy="{:.1f}" r="{:.1f}"><title>{}</title></circle>)", x,
                            y, 3.5 + 6 * std::sqrt(point.share), escaped(point.title)));
}

// A place in the plot: so much of its width, and from there so many pixels.
struct Place {
  double percent, aside;
  double y;  // pixels
};

// Whether a number at `place` covers none of `taken`, where the plot has so many pixels for a percent.
bool is_free(const Place& place, const std::vector<Place>& taken, double scale) {
  constexpr double wide = 14, high = 10;
  return std::none_of(taken.begin(), taken.end(), [&](const Place& other) {
    const double across = (other.percent - place.percent) * scale + other.aside - place.aside;
    return std::abs(across) < wide && std::abs(other.y - place.y) < high;
  });
}

// Numbers beside the dots of `points`, the largest share first, as far as they cover neither each other nor a dot. On
// phones the first few, as far as they do not there.
std::string numbers_text(const Frame& frame, const std::vector<RooflinePoint>& points) {
  constexpr size_t most = 40, most_on_phones = 6;
  std::vector<Place> taken;
  for (const RooflinePoint& point : points)
    taken.push_back({frame.x(point.flops_per_byte), 0, frame.y(point.flops_per_second)});
  const std::vector<Place> dots = taken;
  std::vector<Place> taken_on_phones = dots;
  std::string text;
  size_t shown = 0;
  for (size_t i = 0; i < points.size() && shown < most; ++i) {
    const double beside = 14 + 6 * std::sqrt(points[i].share);
    std::vector<Place> places;
    for (const auto& [aside, below] : {std::pair(beside, 0.0), {-beside, 0.0}, {0.0, -beside}, {0.0, beside}}) {
      const Place place{dots[i].percent, aside, dots[i].y + below};
      if (is_free(place, taken, pixels_per_percent)) places.push_back(place);
    }
    if (places.empty()) continue;
    const auto on_phones = std::find_if(places.begin(), places.end(), [&](const Place& place) {
      return shown < most_on_phones && is_free(place, taken_on_phones, narrow_pixels_per_percent);
    });
    const bool is_wide = on_phones == places.end();
    const Place place = is_wide ? places.front() : *on_phones;
    if (!is_wide) taken_on_phones.push_back(place);
    taken.push_back(place);
    text += fmt::format(R"(<text class="named{}" x="{:.2f}%" y="{:.1f}" dx="{:.1f}" text-anchor="middle">{}</text>)",
                        is_wide ? " wide" : "", place.percent, place.y + 4, place.aside, points[i].number);
    ++shown;
  }
  return text;
}

}  // namespace

std::string stacked_bar(const std::vector<Part>& parts, double whole, Mark kind) {
  std::string text;
  double before = 0;
  for (const Part& part : parts) {
    const double percent = 100 * part.seconds / whole;
    text += linked(part.number,
                   fmt::format(R"(<svg class="part{}" x="{:.3f}%" width="{:.3f}%" height="{}"><title>{}</title>)"
                               R"(<rect width="100%" height="{}"/>{}</svg>)",
                               part.number == 0 ? " others" : "", before, percent, bar_height, escaped(part.title),
                               bar_height, part_text(part, percent)));
    before += percent;
  }
  return fmt::format(R"(<svg class="stack {}" height="{}" role="group" aria-label="{}">{}</svg>)",
                     kind == Mark::tuned ? "of-tuned" : "of-fallback", bar_height,
                     kind == Mark::tuned ? "tuned" : "default choices", text);
}

std::string roofline_plot(double bytes_per_second, std::vector<Roof> roofs, std::vector<RooflinePoint> points) {
  std::stable_sort(roofs.begin(), roofs.end(),
                   [](const Roof& a, const Roof& b) { return a.flops_per_second > b.flops_per_second; });
  std::stable_sort(points.begin(), points.end(),
                   [](const RooflinePoint& a, const RooflinePoint& b) { return a.share > b.share; });
  const Frame frame = frame_of(bytes_per_second, roofs, points);
  std::string text = lines_across(frame.up, plot_height, [](double rate) { return rate_text(rate, ""); });
  for (const double tick : frame.across.ticks()) {
    text += fmt::format(R"(<line class="axis" x1="{0:.2f}%" x2="{0:.2f}%" y1="0" y2="{1}"/>)"
                        R"(<text x="{0:.2f}%" y="{2}" text-anchor="middle">{3:.4g}</text>)",
                        frame.across.percent(tick), plot_height, plot_height + 17, tick);
  }
  text += fmt::format(R"(<text x="100%" y="{}" text-anchor="end">FLOP for each byte</text>)", plot_height + 33);
  text += R"(<text x="-8" y="-8" text-anchor="end">FLOP/s</text>)";
  text += roofs_text(frame, bytes_per_second, roofs);
  for (const RooflinePoint& point : points) text += point_text(frame, point);
  text += numbers_text(frame, points);
  return fmt::format(R"(<svg class="plot" height="{}" role="group" aria-label="{} layers on the roofline">{}</svg>)",
                     plot_height + 38, points.size(), text);
}

std::string gain_plot(const std::vector<Gain>& gains) {
  constexpr double widest = 5, label_distance = 4.5;  // percent
  double least = 1, most = 1;
  for (const Gain& gain : gains) {
    if (gain.ratio <= 0) continue;
    least = std::min(least, gain.ratio);
    most = std::max(most, gain.ratio);
  }
  const LogAxis axis(least, std::max(most, 1.2));
  const double slot = std::min(widest, 100 / static_cast<double>(gains.size()));
  const auto every = static_cast<size_t>(std::ceil(label_distance / slot));
  const double base = down(axis, 1, gain_height);
  std::string text = lines_across(axis, gain_height, [](double ratio) { return fmt::format("{:.4g}x", ratio); });
  for (size_t i = 0; i < gains.size(); ++i) {
    const double left = slot * static_cast<double>(i);
    if (i % every == 0) {
      text += fmt::format(R"(<text x="{:.3f}%" y="{}" text-anchor="middle">{}</text>)", left + slot / 2,
                          gain_height + 16, gains[i].number);
    }
    if (gains[i].ratio <= 0) continue;
    const double end = down(axis, gains[i].ratio, gain_height);
    text += linked(
        gains[i].number,
        fmt::format(
            R"(<rect class="gain" x="{:.3f}%" y="{:.1f}" width="{:.3f}%" height="{:.1f}"><title>{}</title></rect>)",
            left + 0.1 * slot, std::min(base, end), 0.8 * slot, std::max(1.0, std::abs(base - end)),
            escaped(gains[i].title)));
  }
  text += fmt::format(R"(<line class="base" x1="0" x2="100%" y1="{0:.1f}" y2="{0:.1f}"/>)", base);
  return fmt::format(R"(<svg class="plot" height="{}" role="group" aria-label="gain of {} layers">{}</svg>)",
                     gain_height + 24, gains.size(), text);
}

}  // namespace kiln::cli
