#include "tune_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "json.h"
#include "kiln/device/event.h"
#include "kiln/generator/roofline.h"
#include "kiln/version.h"
#include "layer_table.h"
#include "modelled_times.h"
#include "short_forms.h"

namespace kiln::cli {

std::string_view kind_of_time(const tuner::Apparatus& apparatus) {
  return apparatus.deterministic_time ? "modelled" : "measured";
}

std::string_view word(tuner::JobStatus status) {
  switch (status) {
    case tuner::JobStatus::finished:
      return "finished";
    case tuner::JobStatus::out_of_time:
      return "out of time";
    case tuner::JobStatus::stopped:
      return "stopped";
    case tuner::JobStatus::failed:
      return "failed";
  }
  return "?";
}

bool default_has_time(const tuner::JobResult& result) {
  return result.heuristic && tuner::has_time(result.heuristic->outcome);
}

bool keeps_default(const tuner::JobResult& result) {
  const bool was_left = result.status == tuner::JobStatus::out_of_time || result.status == tuner::JobStatus::stopped;
  return was_left && !result.best && result.fallback && !result.heuristic;
}

std::string estimate_text(const tuner::JobResult& result) {
  return "~" + time_text(result.fallback->estimate.seconds);
}

std::string gain_text(const tuner::JobResult& result) {
  return default_has_time(result) && result.best ? ratio_text(result.heuristic->seconds / result.best->seconds) : "-";
}

std::string Totals::gain() const {
  return compared > 0 ? ratio_text(heuristic / best) : "-";
}

std::string Totals::remark() const {
  std::string text;
  if (estimated > 0) {
    text += fmt::format("; {} not timed: the default choice, at its estimate (~)",
                        estimated == 1 ? "1 layer was" : fmt::format("{} layers were", estimated));
  }
  if (without_default > 0) {
    text += fmt::format("; the default choice of {} has no time (-), which counts as no gain",
                        without_default == 1 ? "1 layer" : fmt::format("{} layers", without_default));
  }
  if (left_out > 0) text += fmt::format("; without {} that nothing serves", left_out);
  return text;
}

std::optional<LayerTimes> times_of(const tuner::JobResult& result) {
  if (result.best) {
    const double best = result.best->seconds;
    const bool compared = default_has_time(result);
    return LayerTimes{.best = best, .heuristic = compared ? result.heuristic->seconds : best, .compared = compared};
  }
  if (!keeps_default(result)) return std::nullopt;
  const double estimate = result.fallback->estimate.seconds;
  return LayerTimes{.best = estimate, .heuristic = estimate, .estimated = true, .compared = true};
}

Totals totals_of(const std::vector<tuner::JobResult>& results) {
  Totals totals;
  for (const tuner::JobResult& result : results) {
    const std::optional<LayerTimes> times = times_of(result);
    if (!times) {
      ++totals.left_out;
      continue;
    }
    if (times->estimated) ++totals.estimated;
    ++(times->compared ? totals.compared : totals.without_default);
    const auto count = static_cast<double>(result.count);
    totals.best += count * times->best;
    totals.heuristic += count * times->heuristic;
    totals.roofline += count * result.roofline_seconds;
  }
  return totals;
}

size_t trials_in(const std::vector<tuner::JobResult>& results) {
  size_t trials = 0;
  for (const tuner::JobResult& result : results) trials += result.trials.size();
  return trials;
}

namespace {

std::string variant(const tuner::Trial& trial) {
  return trial.choice.algorithm + " " + trial.choice.config.print();
}

std::string_view words_of(tuner::Outcome outcome) {
  switch (outcome) {
    case tuner::Outcome::timed:
      return "timed";
    case tuner::Outcome::rejected_early:
      return "clearly slower";
    case tuner::Outcome::refused:
      return "refused by a rule";
    case tuner::Outcome::compile_failed:
      return "did not compile";
    case tuner::Outcome::spills:
      return "not timed because registers spill";
    case tuner::Outcome::wrong_result:
      return "wrong";
    case tuner::Outcome::timed_out:
      return "timed out";
    case tuner::Outcome::crashed:
      return "crashed";
    case tuner::Outcome::out_of_memory:
      return "out of memory";
    case tuner::Outcome::quarantined:
      return "not tried because it crashed or hung before";
  }
  return "?";
}

bool is_failure(const tuner::Trial& trial) {
  return !tuner::has_time(trial.outcome);
}

// "crashed: what was said about it".
std::string failure_text(const tuner::Trial& trial) {
  return fmt::format("{}: {}", words_of(trial.outcome), in_one_line(trial.error));
}

// Why no candidate of a layer can be used.
std::string why_none(const tuner::JobResult& result) {
  if (!result.error.empty()) return in_one_line(result.error);
  for (const tuner::Trial& trial : result.trials) {
    if (is_failure(trial)) return failure_text(trial);
  }
  return std::string(word(result.status));
}

// The cells behind those that say which layer it is.
std::vector<std::string> found_cells(const tuner::JobResult& result) {
  if (keeps_default(result)) {
    const Candidate& kept = *result.fallback;
    return {fmt::format("{} {} (default, {})", kept.choice.algorithm, kept.choice.config.print(), word(result.status)),
            estimate_text(result), percent_text(result.roofline_seconds / kept.estimate.seconds), "-"};
  }
  if (!result.best) return {"none: " + why_none(result), "-", "-", "-"};
  return {variant(*result.best), time_text(result.best->seconds),
          percent_text(result.roofline_seconds / result.best->seconds), gain_text(result)};
}

// Kind of a failure. A candidate whose time the device does not know is `refused` with the reason.
std::string kind_of(const tuner::Trial& trial) {
  const bool is_untimed = trial.outcome == tuner::Outcome::refused && trial.error.starts_with(device::not_timed);
  if (!is_untimed) return std::string(words_of(trial.outcome));
  return trial.error.substr(0, std::min(trial.error.find(" ("), trial.error.find('\n')));  // without what to do
}

// Failures, a line each, and a sum by kind. Candidates that a rule refused, or that spill, are no fault.
std::string failures_text(const std::vector<tuner::JobResult>& results) {
  constexpr size_t most_lines = 20;
  std::map<std::string, size_t> sums;
  std::string lines;
  size_t failures = 0;
  for (const tuner::JobResult& result : results) {
    for (const tuner::Trial& trial : result.trials) {
      if (!is_failure(trial)) continue;
      ++sums[kind_of(trial)];
      const bool is_fault = trial.outcome != tuner::Outcome::refused && trial.outcome != tuner::Outcome::spills;
      if (!is_fault || ++failures > most_lines) continue;
      lines += fmt::format("  {}: {}: {}\n", summary(result.request), variant(trial), failure_text(trial));
    }
  }
  if (failures > most_lines) lines += fmt::format("  and {} more: --json lists all\n", failures - most_lines);
  std::string text;
  for (const auto& [outcome, count] : sums) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, outcome);
  return text.empty() ? text : fmt::format("of these: {}\n{}", text, lines);
}

std::string stand_ins_text(const std::vector<tuner::JobResult>& results) {
  const auto stand_ins = std::count_if(results.begin(), results.end(), [](const auto& r) { return r.stand_in; });
  if (stand_ins == 0) return {};
  return fmt::format(
      "too large to be run here: {} of {}; {}\n", stand_ins, count_text(results.size(), "layer"),
      stand_ins == 1 ? "its results were checked with a smaller one" : "their results were checked with smaller ones");
}

Json json_of(const tuner::Trial& trial) {
  return {{"algorithm", trial.choice.algorithm},
          {"config", trial.choice.config.print()},
          {"outcome", tuner::to_string(trial.outcome)},
          {"seconds", trial.seconds},
          {"spread_seconds", trial.spread},
          {"samples", trial.samples},
          {"estimate_seconds", trial.estimate},
          {"check", trial.check},
          {"error", trial.error},
          {"workspace_bytes", trial.workspace_bytes},
          {"deterministic", trial.deterministic},
          {"registers", trial.resources.registers},
          {"compile_seconds", trial.compile_seconds > 0 ? Json(trial.compile_seconds) : Json()},
          {"source_digest", trial.source_digest}};
}

Json json_of(const tuner::JobResult& result, const ModelNodes& nodes, const tuner::Apparatus& apparatus) {
  const Roofline bound = roofline(result.request, apparatus.target.arch, apparatus.figures);
  Json fallback, trials = Json::array(), refused = Json::array();
  if (result.fallback) {
    fallback = {{"algorithm", result.fallback->choice.algorithm},
                {"config", result.fallback->choice.config.print()},
                {"estimate_seconds", result.fallback->estimate.seconds}};
  }
  for (const tuner::Trial& trial : result.trials) trials.push_back(json_of(trial));
  for (const Refusal& refusal : result.refused) {
    refused.push_back({{"algorithm", refusal.algorithm}, {"reason", refusal.reason}});
  }
  return {{"request", result.request.key()},
          {"label", summary(result.request)},
          {"count", result.count},
          {"nodes", nodes.of(result.request)},
          {"status", word(result.status)},
          {"error", result.error},
          {"checked", result.stand_in.value_or(result.request).key()},
          {"roofline_seconds", result.roofline_seconds},
          {"flops", bound.flops},
          {"bytes", bound.bytes},
          {"arithmetic", to_string(bound.math)},
          {"peak_flops_per_second", bound.flops_per_second},
          {"best", result.best ? json_of(*result.best) : Json()},
          {"default", result.heuristic ? json_of(*result.heuristic) : Json()},
          {"fallback", fallback},
          {"trials", trials},
          {"refused", refused}};
}

}  // namespace

bool all_served(const std::vector<tuner::JobResult>& results) {
  return std::all_of(results.begin(), results.end(), [](const tuner::JobResult& result) {
    return (result.best && result.status != tuner::JobStatus::failed) || keeps_default(result);
  });
}

std::string print_table(const TuneReport& report, const Output& output) {
  LayerTable table(report.nodes, {"algorithm and parameters", fmt::format(">{} time", kind_of_time(report.apparatus)),
                                  ">of roofline", ">over default"});
  for (const tuner::JobResult& result : report.results) table.add(result.request, result.count, found_cells(result));
  std::string text = fmt::format("\n{}\n", output.print(table.table()));
  if (const Totals totals = totals_of(report.results); totals.best > 0) {
    text += fmt::format("all layers, with their counts: {} {}, {} of roofline, {} over the default choice{}\n",
                        time_text(totals.best), kind_of_time(report.apparatus),
                        percent_text(totals.roofline / totals.best), totals.gain(), totals.remark());
  }
  text += fmt::format("{} candidates tried, {} of them known from before; records in {}\n", trials_in(report.results),
                      report.reused, report.database);
  text += stand_ins_text(report.results);
  text += failures_text(report.results);
  for (const tuner::JobResult& result : report.results) {
    if (result.status != tuner::JobStatus::failed || !result.best) continue;
    text += fmt::format("not tuned, an earlier result is shown: {}: {}\n", summary(result.request),
                        in_one_line(result.error));
  }
  return text + not_covered_text(report.not_covered);
}

Json json_of(const TuneReport& report) {
  Json layers = Json::array();
  for (const tuner::JobResult& result : report.results) {
    layers.push_back(json_of(result, report.nodes, report.apparatus));
  }
  Json json = {{"kiln_version", version()},
               {"device", report.apparatus.device.id()},
               {"driver_version", report.apparatus.driver_version},
               {"nvrtc_version", report.apparatus.nvrtc_version},
               {"time", kind_of_time(report.apparatus)},
               {"modelled_by", modelled_json(report.apparatus.device.name)},
               {"calibrated", report.calibration.has_value()},
               {"calibration", report.calibration.value_or(Calibration{}).print()},
               {"database", report.database},
               {"peak_bytes_per_second", report.apparatus.figures.dram_bytes_per_second},
               {"layers", layers},
               {"not_covered", not_covered_json(report.not_covered)}};
  if (!report.devices.empty()) json.set("devices", report.devices);
  const Totals totals = totals_of(report.results);
  json.set("totals", {{"best_seconds", totals.best},
                      {"default_seconds", totals.heuristic},
                      {"roofline_seconds", totals.roofline},
                      {"layers_estimated", totals.estimated},
                      {"layers_without_default", totals.without_default},
                      {"layers_left_out", totals.left_out}});
  return json;
}

}  // namespace kiln::cli
