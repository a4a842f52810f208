#include "report/layer_section.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "report/chart.h"
#include "report/html_text.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

using tuner::JobResult;
using tuner::Trial;

// Trials with a time first, fastest first; then the others in the order tried.
std::vector<const Trial*> in_order(const std::vector<Trial>& trials) {
  std::vector<const Trial*> order;
  for (const Trial& trial : trials) order.push_back(&trial);
  std::stable_sort(order.begin(), order.end(), [](const Trial* a, const Trial* b) {
    const bool a_timed = tuner::has_time(a->outcome), b_timed = tuner::has_time(b->outcome);
    return a_timed != b_timed ? a_timed : a_timed && a->seconds < b->seconds;
  });
  return order;
}

bool same_choice(const Trial& trial, const std::optional<Trial>& other) {
  return other && trial.choice == other->choice;
}

// From the fastest candidate to the slowest, and from the roofline if that is near: one that is far would leave the
// candidates no room. Nothing if no candidate has a time.
std::optional<LogAxis> axis_of(const JobResult& result) {
  constexpr double near = 4;
  double low = std::numeric_limits<double>::infinity(), high = 0;
  for (const Trial& trial : result.trials) {
    if (!tuner::has_time(trial.outcome)) continue;
    low = std::min(low, trial.seconds);
    high = std::max(high, trial.seconds + trial.spread);
  }
  if (low <= 0 || low > high) return std::nullopt;
  return LogAxis(result.roofline_seconds * near > low ? std::min(low, result.roofline_seconds) : low, high);
}

// Broken between parameters.
std::string config_text(const Trial& trial) {
  return breakable(trial.choice.config.print(), ",");
}

std::string words_of(std::string_view outcome) {
  std::string text(outcome);
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string time_with_spread(const Trial& trial) {
  if (trial.spread <= 0) return time_text(trial.seconds);
  return fmt::format("{} <small>&plusmn; {}</small>", time_text(trial.seconds),
                     percent_text(trial.spread / trial.seconds));
}

std::string bytes_text(int64_t bytes) {
  if (bytes == 0) return "none";
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const double kib = static_cast<double>(bytes) / 1024;
  if (kib < 1023.95) return fmt::format("{:.1f} KiB", kib);  // one digit of more would be 1024.0
  return fmt::format("{:.1f} MiB", kib / 1024);
}

std::string fact(std::string_view name, const std::string& value, const std::string& note) {
  return fmt::format("<div><dt>{}</dt><dd>{}<small>{}</small></dd></div>\n", name, value, note);
}

// The figures at the head of a layer.
std::string facts(const JobResult& result) {
  std::string text = "<dl class=\"facts\">\n";
  const double best = result.best ? result.best->seconds : 0;
  if (result.best) {
    text += fact(glyph(Mark::tuned) + "tuned", time_with_spread(*result.best),
                 fmt::format("{} of roofline", percent_text(result.roofline_seconds / best)));
  }
  if (default_has_time(result)) {
    text += fact(glyph(Mark::fallback) + "default choice", time_with_spread(*result.heuristic),
                 result.best ? fmt::format("tuned is {} as fast", ratio_text(result.heuristic->seconds / best)) : "");
  }
  text += fact(glyph(Mark::roofline) + "roofline", time_text(result.roofline_seconds),
               "the least that arithmetic and memory traffic take");
  return text + "</dl>\n";
}

std::string chosen(const JobResult& result) {
  if (keeps_default(result)) {
    return fmt::format(
        "<p>Keeps the default choice <strong>{}</strong> <code>{}</code>, which was not timed ({}): {} is "
        "its estimate.</p>\n",
        escaped(result.fallback->choice.algorithm), escaped(result.fallback->choice.config.print()),
        word(result.status), estimate_text(result));
  }
  if (!result.best) {
    const std::string why = result.error.empty() ? std::string(word(result.status)) : result.error;
    return fmt::format("<p class=\"none\"><strong>Nothing to use:</strong> {}</p>\n", escaped(why));
  }
  std::string text = fmt::format("<p>Uses <strong>{}</strong> <code>{}</code>", escaped(result.best->choice.algorithm),
                                 config_text(*result.best));
  if (same_choice(*result.best, result.heuristic)) {
    text += ", which is also the default choice";
  } else if (result.heuristic) {
    text += fmt::format("; the default choice is {} <code>{}</code>", escaped(result.heuristic->choice.algorithm),
                        config_text(*result.heuristic));
  }
  text += ".";
  if (result.status != tuner::JobStatus::finished) {
    text += fmt::format(" Not every candidate was tried: {}.", word(result.status));
  }
  return text + "</p>\n";
}

std::string spread(const JobResult& result, const LogAxis& axis) {
  std::vector<SpreadPoint> points;
  for (const Trial& trial : result.trials) {
    if (!tuner::has_time(trial.outcome)) continue;
    points.push_back(
        {trial.seconds, trial.spread, same_choice(trial, result.best), same_choice(trial, result.heuristic),
         fmt::format("{} {}: {}", trial.choice.algorithm, trial.choice.config.print(), time_text(trial.seconds))});
  }
  const bool near = axis.percent(result.roofline_seconds) > 0;
  return fmt::format(
      "<figure>\n{}\n<figcaption>Every candidate with a time, on a logarithmic axis: {}tuned {}default {}others "
      "{}</figcaption>\n</figure>\n",
      spread_chart(axis, result.roofline_seconds, std::move(points)), glyph(Mark::tuned), glyph(Mark::fallback),
      glyph(Mark::candidate),
      near ? glyph(Mark::roofline) + "roofline" : "(the roofline lies far to the left of the axis)");
}

std::string candidate_row(const JobResult& result, const Trial& trial, const std::optional<LogAxis>& axis) {
  const bool timed = tuner::has_time(trial.outcome);
  std::string marks;
  if (same_choice(trial, result.best)) marks += glyph(Mark::tuned);
  if (same_choice(trial, result.heuristic)) marks += glyph(Mark::fallback);
  std::string range;
  if (timed && axis) {
    const auto [fastest, slowest] = std::minmax_element(trial.samples.begin(), trial.samples.end());
    const bool sampled = !trial.samples.empty();
    range = range_chart(*axis, sampled ? *fastest : trial.seconds, trial.seconds, sampled ? *slowest : trial.seconds);
  }
  const std::string note = escaped(trial.error.empty() ? trial.check : trial.error);
  return fmt::format(
      "<tr><td class=\"variant\">{}<strong>{}</strong> <code>{}</code><small class=\"note\">{}: {}</small></td><td "
      "class=\"number\" data-name=\"time\">{}</td><td class=\"chart\">{}</td><td class=\"number\" "
      "data-name=\"estimate\">{}</td><td class=\"number\" "
      "data-name=\"registers\">{}</td><td class=\"number\" data-name=\"workspace\">{}</td></tr>\n",
      marks, escaped(trial.choice.algorithm), config_text(trial), words_of(tuner::to_string(trial.outcome)), note,
      timed ? time_with_spread(trial) : "-", range, trial.estimate > 0 ? time_text(trial.estimate) : "-",
      trial.resources.registers > 0 ? std::to_string(trial.resources.registers) : "-",
      bytes_text(trial.workspace_bytes));
}

// "16 candidates: 14 timed, 2 compile failed"
std::string counted(const std::vector<Trial>& trials) {
  std::map<tuner::Outcome, size_t> counts;
  for (const Trial& trial : trials) ++counts[trial.outcome];
  std::string text = fmt::format("{} candidate{}", trials.size(), trials.size() == 1 ? "" : "s");
  std::string_view separator = ": ";
  for (const auto& [outcome, count] : counts) {
    text += fmt::format("{}{} {}", separator, count, words_of(tuner::to_string(outcome)));
    separator = ", ";
  }
  return text;
}

std::string candidates(const JobResult& result, const std::optional<LogAxis>& axis) {
  if (result.trials.empty()) return {};
  std::string text = fmt::format(
      "<details>\n<summary>{}</summary>\n<table class=\"candidates\">\n<thead><tr><th>variant, "
      "result and check</th><th class=\"number\">time</th><th>samples</th><th class=\"number\">estimate</th><th "
      "class=\"number\">registers</th><th class=\"number\">workspace</th></tr></thead>\n<tbody>\n",
      counted(result.trials));
  for (const Trial* trial : in_order(result.trials)) text += candidate_row(result, *trial, axis);
  return text + "</tbody>\n</table>\n</details>\n";
}

std::string bounds(const ModelledLaunches& launches) {
  if (launches.bound.empty()) return {};
  return fmt::format("<details>\n<summary>Bound by {}</summary>\n<pre>{}</pre>\n</details>\n", escaped(launches.bound),
                     escaped(launches.text));
}

std::string refusals(const JobResult& result) {
  if (result.refused.empty()) return {};
  std::string text = "<h4>Algorithms that do not apply</h4>\n<dl class=\"refused\">\n";
  for (const Refusal& refusal : result.refused) {
    text += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", escaped(refusal.algorithm), escaped(refusal.reason));
  }
  return text + "</dl>\n";
}

}  // namespace

std::string layer_anchor(size_t number) {
  return fmt::format("#layer-{}", number);
}

std::string layer_section(const JobResult& result, const std::vector<std::string>& nodes, size_t number,
                          const ModelledLaunches& launches) {
  std::string text = fmt::format("<section class=\"layer\" id=\"{}\">\n<h3><span class=\"ordinal\">{}</span>{}</h3>\n",
                                 layer_anchor(number).substr(1), number, escaped(summary(result.request)));
  text += fmt::format("<p class=\"key\"><code>{}</code>{}</p>\n", escaped(result.request.key()),
                      result.count == 1 ? "" : fmt::format(" occurs {} times", result.count));
  if (!nodes.empty()) {
    text += fmt::format("<p class=\"key\">{} of the model: <code>{}</code></p>\n", count_text(nodes.size(), "node"),
                        breakable(fmt::format("{}", fmt::join(nodes, ", ")), "/"));
  }
  const std::optional<LogAxis> axis = axis_of(result);
  text += chosen(result);
  text += facts(result);
  if (axis) text += spread(result, *axis);
  text += bounds(launches);
  text += candidates(result, axis);
  text += refusals(result);
  return text + "</section>\n";
}

}  // namespace kiln::cli
