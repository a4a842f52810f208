#include "results.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "short_forms.h"
#include "table.h"

namespace kiln::bench {
namespace {

using nlohmann::json;

json to_json(const ConfigResult& config) {
  return {{"name", config.name},     {"heuristic", config.heuristic}, {"outcome", config.outcome},
          {"detail", config.detail}, {"seconds", config.seconds},     {"workspace_bytes", config.workspace_bytes}};
}

ConfigResult config_from(const json& from) {
  return {from.at("name"),   from.at("heuristic"), from.at("outcome"),
          from.at("detail"), from.at("seconds"),   from.at("workspace_bytes")};
}

// Infinity and NaN have no JSON form: they are written as null and read as infinity, which no limit accepts.
double number(const json& from) {
  return from.is_null() ? std::numeric_limits<double>::infinity() : from.get<double>();
}

RowResult row_from(const json& from) {
  RowResult row;
  row.request = from.at("request");
  row.status = from.at("status");
  row.reason = from.at("reason");
  row.kiln_variant = from.at("kiln").at("variant");
  row.kiln_source = from.at("kiln").at("source");
  row.kiln_workspace_bytes = from.at("kiln").at("workspace_bytes");
  row.kiln_seconds = from.at("kiln").at("seconds").get<std::vector<double>>();
  row.kiln_error = number(from.at("kiln").at("error"));
  row.cudnn_config = from.at("cudnn").at("config");
  row.cudnn_workspace_bytes = from.at("cudnn").at("workspace_bytes");
  row.cudnn_seconds = from.at("cudnn").at("seconds").get<std::vector<double>>();
  row.cudnn_error = number(from.at("cudnn").at("error"));
  row.difference = number(from.at("difference"));
  row.start = from.at("start");
  row.sets = from.at("sets");
  row.roofline_seconds = from.at("roofline_seconds");
  row.wall_seconds = from.at("wall_seconds");
  for (const json& config : from.at("configs")) row.configs.push_back(config_from(config));
  return row;
}

// Counts of the configurations' outcomes: "12 timed, 3 unequal arithmetic".
std::string counted(const std::vector<ConfigResult>& configs) {
  std::map<std::string, int> counts;
  for (const ConfigResult& config : configs) ++counts[config.outcome];
  std::string text;
  for (const auto& [outcome, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, outcome);
  return text;
}

double median_of(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// Empty for a file that is not there.
std::string text_of(const std::string& path) {
  std::ifstream stream(path, std::ios::binary);
  return std::string((std::istreambuf_iterator<char>(stream)), {});
}

std::vector<std::pair<Conditions, RowResult>> rows_in(const std::string& text) {
  std::vector<std::pair<Conditions, RowResult>> rows;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (auto read = from_line(text.substr(at, end - at))) rows.push_back(std::move(*read));
    at = end + 1;
  }
  return rows;
}

}  // namespace

std::string to_line(const Conditions& conditions, const RowResult& row) {
  json line = {{"device", conditions.device},
               {"driver", conditions.driver},
               {"cudnn_version", conditions.cudnn},
               {"kiln_version", conditions.kiln},
               {"request", row.request},
               {"status", row.status},
               {"reason", row.reason},
               {"kiln",
                {{"variant", row.kiln_variant},
                 {"source", row.kiln_source},
                 {"workspace_bytes", row.kiln_workspace_bytes},
                 {"seconds", row.kiln_seconds},
                 {"error", row.kiln_error}}},
               {"cudnn",
                {{"config", row.cudnn_config},
                 {"workspace_bytes", row.cudnn_workspace_bytes},
                 {"seconds", row.cudnn_seconds},
                 {"error", row.cudnn_error}}},
               {"difference", row.difference},
               {"start", row.start},
               {"sets", row.sets},
               {"roofline_seconds", row.roofline_seconds},
               {"wall_seconds", row.wall_seconds},
               {"configs", json::array()}};
  for (const ConfigResult& config : row.configs) line["configs"].push_back(to_json(config));
  const PairedRatio ratio = row.ratio();
  line["ratio"] = {{"median", ratio.median}, {"low", ratio.low}, {"high", ratio.high}, {"pairs", ratio.pairs}};
  return line.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<std::pair<Conditions, RowResult>> from_line(const std::string& line) {
  const json from = json::parse(line, nullptr, false);
  if (!from.is_object()) return std::nullopt;
  try {
    const Conditions conditions{from.at("device"), from.at("driver"), from.at("cudnn_version"),
                                from.at("kiln_version")};
    return std::pair(conditions, row_from(from));
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::vector<Conditions> conditions_in(const std::string& path) {
  if (!std::ifstream(path)) throw Error(ErrorCode::io_error, fmt::format("cannot read {}", path));
  std::vector<Conditions> found;
  for (const auto& [conditions, row] : rows_in(text_of(path))) {
    if (std::find(found.begin(), found.end(), conditions) == found.end()) found.push_back(conditions);
  }
  return found;
}

ResultFile::ResultFile(std::string path, Conditions conditions)
    : path_(std::move(path)), conditions_(std::move(conditions)) {
  const std::string text = text_of(path_);
  for (auto& [of_row, row] : rows_in(text)) {
    if (of_row == conditions_) rows_.push_back(std::move(row));
  }
  // A line that a killed run left without its end must not be continued.
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  if (!text.empty() && text.back() != '\n') out << '\n';
  if (!out.flush()) throw Error(ErrorCode::io_error, fmt::format("cannot write {}", path_));
}

const RowResult* ResultFile::find(const std::string& request) const {
  const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const auto& row) { return row.request == request; });
  return found == rows_.end() ? nullptr : &*found;
}

void ResultFile::add(const RowResult& row) {
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  out << to_line(conditions_, row) << '\n';
  if (!out.flush()) throw Error(ErrorCode::io_error, fmt::format("cannot write {}", path_));
  rows_.push_back(row);
}

std::string print_table(const ResultFile& results, const std::vector<std::string>& requests) {
  cli::Table table({"layer", ">Kiln", ">cuDNN", ">ratio", "95% interval", "Kiln is", "start", "cuDNN configurations"});
  std::vector<double> ratios;
  size_t missing = 0;
  for (const std::string& request : requests) {
    const RowResult* row = results.find(request);
    const std::string layer = cli::summary(Request::parse(request));
    if (row == nullptr) {
      ++missing;
      table.add({layer, "-", "-", "-", "-", "not run yet", "-", "-"});
      continue;
    }
    if (row->status != "compared") {
      table.add({layer, "-", "-", "-", "-", row->status + ": " + row->reason, "-", counted(row->configs)});
      continue;
    }
    const PairedRatio ratio = row->ratio();
    ratios.push_back(ratio.median);
    table.add({layer, cli::time_text(median_of(row->kiln_seconds)), cli::time_text(median_of(row->cudnn_seconds)),
               cli::ratio_text(ratio.median), fmt::format("{:.3f} to {:.3f}", ratio.low, ratio.high), ratio.verdict(),
               row->start, counted(row->configs)});
  }
  std::string text = table.print();
  if (const Interval mean = geometric_mean(ratios); !ratios.empty()) {
    text += fmt::format("\ncuDNN's time over Kiln's, geometric mean of {} layers: {:.3f} (95%: {:.3f} to {:.3f})\n",
                        ratios.size(), mean.value, mean.low, mean.high);
  }
  if (missing > 0) text += fmt::format("{} layers are still to be run: the same command goes on\n", missing);
  return text;
}

}  // namespace kiln::bench
