#include "report/page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

#include "kiln/version.h"
#include "modelled_times.h"
#include "report/chart.h"
#include "report/figures.h"
#include "report/html_text.h"
#include "report/layer_section.h"
#include "report/style.h"
#include "short_forms.h"

namespace kiln::cli {
namespace {

// A file by its name; a request as it is.
std::string title(const TuneReport& report) {
  std::error_code ignored;
  const std::filesystem::path path(report.workload);
  return escaped(std::filesystem::is_regular_file(path, ignored) ? path.filename().string() : report.workload);
}

std::string header(const TuneReport& report) {
  const device::DeviceInfo& device = report.apparatus.device;
  const bool modelled = report.apparatus.deterministic_time;
  return fmt::format(
      "<header>\n<p class=\"kicker\">Kiln tuning report</p>\n<h1>{}</h1>\n<p>{}, compute capability {}.{}, {} SMs. "
      "{}</p>\n</header>\n",
      title(report), escaped(device.name), device.cc_major, device.cc_minor, device.sms,
      modelled
          ? fmt::format(
                "<strong>All times are modelled</strong> by the emulated device: nothing was measured. They are {}.",
                escaped(modelled_text(device.name)))
          : "Times are measured: medians of cold-cache runs, with 95% intervals.");
}

std::string tile(const std::string& value, std::string_view name) {
  return fmt::format("<div><dt>{}</dt><dd>{}</dd></div>\n", name, value);
}

// The whole workload in a few numbers.
std::string tiles(const TuneReport& report) {
  int64_t layers = 0;
  for (const tuner::JobResult& result : report.results) layers += result.count;
  std::string text = "<dl class=\"tiles\">\n";
  if (const Totals totals = totals_of(report.results); totals.best > 0) {
    text += tile(time_text(totals.best), "all layers, tuned");
    text += tile(time_text(totals.heuristic), "with the default choices");
    text += tile(totals.gain(), "gain over default");
    text += tile(percent_text(totals.roofline / totals.best), "of roofline");
    if (totals.estimated > 0) text += tile(fmt::format("{}", totals.estimated), "layers at their default's estimate");
    if (totals.without_default > 0) {
      text += tile(fmt::format("{}", totals.without_default), "layers whose default has no time, counted as no gain");
    }
    if (totals.left_out > 0) text += tile(fmt::format("{}", totals.left_out), "layers with nothing to use, left out");
  }
  text += tile(fmt::format("{}", layers), fmt::format("layers, {} of them distinct", report.results.size()));
  text += tile(fmt::format("{}", trials_in(report.results)),
               fmt::format("candidates, {} known from before", report.reused));
  return text + "</dl>\n";
}

// Share of the time of all layers; an estimate is marked as one.
std::string share_text(const tuner::JobResult& result, double sum) {
  const std::optional<LayerTimes> times = times_of(result);
  if (!times || !(sum > 0)) return "-";
  return (times->estimated ? "~" : "") + percent_text(static_cast<double>(result.count) * times->best / sum);
}

// `sum`: seconds of all layers.
std::string layer_row(const tuner::JobResult& result, size_t number, double sum) {
  std::string cells = fmt::format(
      "<tr><td class=\"ordinal\">{0}</td><td class=\"variant\"><a href=\"{1}\">{2}</a></td><td class=\"number\" "
      "data-name=\"count\">{3}</td>",
      number, layer_anchor(number), escaped(summary(result.request)), result.count);
  const std::string share =
      fmt::format("<td class=\"number\" data-name=\"of the time\">{}</td>", share_text(result, sum));
  if (!result.best) {
    return cells + "<td class=\"number\" data-name=\"tuned\">none</td>" + share +
           fmt::format("<td class=\"number\" data-name=\"default\">{}</td>",
                       keeps_default(result) ? estimate_text(result) : "-") +
           "<td class=\"number\" data-name=\"gain\">-</td><td class=\"number\" data-name=\"of roofline\">-</td>"
           "<td class=\"chart\"></td></tr>\n";
  }
  const double best = result.best->seconds;
  const double fallback = default_has_time(result) ? result.heuristic->seconds : 0;
  return cells +
         fmt::format(
             "<td class=\"number\" data-name=\"tuned\">{}</td>{}<td class=\"number\" data-name=\"default\">{}</td>"
             "<td class=\"number\" data-name=\"gain\">{}</td><td class=\"number\" data-name=\"of "
             "roofline\">{}</td><td class=\"chart\">{}</td></tr>\n",
             time_text(best), share, fallback > 0 ? time_text(fallback) : "-", gain_text(result),
             percent_text(result.roofline_seconds / best), bar_chart(best, fallback, result.roofline_seconds));
}

std::string overview(const TuneReport& report) {
  std::string text =
      "<section>\n<h2>Layers</h2>\n<p class=\"legend\">Each bar starts at zero: <svg class=\"key-bar\" "
      "aria-hidden=\"true\"><rect class=\"tuned\" x=\"1\" y=\"5\" width=\"30\" height=\"10\"/></svg>tuned, <svg "
      "class=\"key-bar\" aria-hidden=\"true\"><rect class=\"fallback\" x=\"1\" y=\"3\" width=\"30\" "
      "height=\"14\"/></svg>default choice, " +
      glyph(Mark::roofline) +
      "roofline.</p>\n<table class=\"layers\">\n<thead><tr><th></th><th>layer</th><th class=\"number\">count</th><th "
      "class=\"number\">tuned</th><th class=\"number\">of the time</th><th class=\"number\">default</th><th "
      "class=\"number\">gain</th><th "
      "class=\"number\">of roofline</th><th>time</th></tr></thead>\n<tbody>\n";
  const double sum = totals_of(report.results).best;
  for (size_t i = 0; i < report.results.size(); ++i) text += layer_row(report.results[i], report.first_layer + i, sum);
  return text + "</tbody>\n</table>\n</section>\n";
}

std::string not_covered(const TuneReport& report) {
  if (report.not_covered.empty()) return {};
  std::string text = "<section>\n<h2>Not covered</h2>\n<dl class=\"refused\">\n";
  for (const NotCovered& node : report.not_covered) {
    text +=
        fmt::format("<div><dt>{} &times; {}</dt><dd>{}: {}</dd></div>\n", node.nodes.size(), escaped(node.operation),
                    breakable(fmt::format("{}", fmt::join(node.nodes, ", ")), "/"), escaped(node.reason));
  }
  return text + "</dl>\n</section>\n";
}

std::string provenance_row(std::string_view name, const std::string& value) {
  return fmt::format("<div><dt>{}</dt><dd><code>{}</code></dd></div>\n", name, escaped(value));
}

// Everything that has to be the same for these times to come out again.
std::string provenance(const TuneReport& report) {
  const tuner::Apparatus& apparatus = report.apparatus;
  std::map<std::string, std::set<std::string>> digests;  // of each algorithm tried
  for (const tuner::JobResult& result : report.results) {
    for (const tuner::Trial& trial : result.trials) digests[trial.choice.algorithm].insert(trial.algorithm_digest);
  }
  std::string text = "<section>\n<h2>Provenance</h2>\n<dl class=\"provenance\">\n";
  text += provenance_row("command", report.command);
  text += provenance_row("made", report.created);
  text += provenance_row("Kiln", std::string(version()));
  text += provenance_row("device", apparatus.device.id());
  text += provenance_row("driver", fmt::format("{}: {}", apparatus.driver_version, apparatus.driver_description));
  text += provenance_row("NVRTC", apparatus.nvrtc_version);
  text += provenance_row("predictions", predictions_text(report.calibration.has_value(),
                                                         report.calibration.value_or(Calibration{}).print()));
  text += provenance_row("records", report.database);
  for (const auto& [algorithm, of_algorithm] : digests) {
    for (const std::string& digest : of_algorithm) text += provenance_row(escaped(algorithm), digest);
  }
  return text +
         "</dl>\n<p>Every candidate was compared with the double-precision reference before it was timed. Times within "
         "1% "
         "of the fastest are ties: of those, the variant with the least workspace is used. The roofline is the larger "
         "of "
         "the arithmetic at the device's peak (that of tensor cores where they can do it, though no kernel uses them "
         "yet) "
         "and the compulsory traffic at its full memory bandwidth.</p>\n"
         "</section>\n";
}

}  // namespace

std::string page_head(const std::string& title) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src "
      "data:\">\n<link rel=\"icon\" href=\"data:,\">\n<title>Kiln: {}</title>\n<style>\n{}</style>\n</head>\n",
      title, page_style);
}

std::string print_page(const std::vector<TuneReport>& reports) {
  std::string text = page_head(title(reports.front())) + "<body>\n" + header(reports.front()) + "<main>\n";
  for (const TuneReport& report : reports) {
    if (&report != &reports.front()) text += header(report);
    text += tiles(report) + figures(report) + overview(report);
    for (size_t i = 0; i < report.results.size(); ++i) {
      text += layer_section(report.results[i], report.nodes.of(report.results[i].request), report.first_layer + i,
                            report.launches.empty() ? ModelledLaunches{} : report.launches[i]);
    }
    text += not_covered(report) + provenance(report);
  }
  return text + "</main>\n</body>\n</html>\n";
}

}  // namespace kiln::cli
