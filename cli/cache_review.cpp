// kiln cache diff, stats: what a cache holds, and what changed between two.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "cache_commands.h"
#include "command_line.h"
#include "commands.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/cache/diff.h"
#include "kiln/cache/statistics.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "modelled_times.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

using cache::Change;
// --- diff ---

std::string variant(const std::optional<cache::Record>& record) {
  return record ? record->algorithm + " " + record->config : "nothing that can win";
}

std::string time_of(const std::optional<cache::Record>& record) {
  return record ? fmt::format("{} {}", time_text(record->seconds), to_string(record->kind)) : "";
}

// "1.22x faster", "1.05x slower".
std::string change_of_speed(const cache::RequestChange& change) {
  const std::optional<double> speedup = change.speedup();
  if (!speedup) return "";
  return *speedup >= 1 ? ratio_text(*speedup) + " faster" : ratio_text(1 / *speedup) + " slower";
}

std::string counts_of(const cache::RequestChange& change) {
  std::vector<std::string> parts;
  if (change.records_added > 0) parts.push_back(fmt::format("{} added", change.records_added));
  if (change.records_removed > 0) parts.push_back(fmt::format("{} removed", change.records_removed));
  if (change.records_changed > 0) parts.push_back(fmt::format("{} changed", change.records_changed));
  return fmt::format("candidates: {}", fmt::join(parts, ", "));
}

void print_line(char sign, const std::optional<cache::Record>& record, const std::string& remark) {
  std::string line = fmt::format("{}   {:<48}  {:>18}", sign, variant(record), time_of(record));
  if (!remark.empty()) line += "  " + remark;
  line.erase(line.find_last_not_of(' ') + 1);
  fmt::print("{}\n", line);
}

void print_change(const cache::RequestChange& change) {
  switch (change.change) {
    case Change::added:
      fmt::print("+ {}\n", change.request);
      print_line('+', change.after, "new");
      return;
    case Change::removed:
      fmt::print("- {}\n", change.request);
      print_line('-', change.before, "gone");
      return;
    case Change::records:
      fmt::print("  {}\n", change.request);
      fmt::print("    the winner stays; {}\n", counts_of(change));
      return;
    case Change::winner:
    case Change::time:
      fmt::print("  {}\n", change.request);
      print_line('-', change.before, "");
      print_line('+', change.after, change_of_speed(change));
  }
}

// Winners of equal algorithm and configuration whose algorithm itself was edited look the same: say why they differ.
bool only_the_digest(const cache::RequestChange& change) {
  return change.change == Change::winner && change.before && change.after &&
         variant(change.before) == variant(change.after);
}

struct ReviewTally {
  int64_t faster = 0, slower = 0, other = 0;

  void add(const cache::RequestChange& change) {
    const std::optional<double> speedup = change.speedup();
    ++(!speedup ? other : *speedup >= 1 ? faster : slower);
  }
  int64_t sum() const { return faster + slower + other; }
  std::string text() const { return fmt::format("{} ({} faster, {} slower)", sum(), faster, slower); }
};

void print_summary(const cache::Diff& difference) {
  std::array<int64_t, 5> count{};
  ReviewTally winners, times;
  for (const cache::RequestChange& change : difference.changes) {
    ++count[static_cast<size_t>(change.change)];
    if (change.change == Change::winner) winners.add(change);
    if (change.change == Change::time) times.add(change);
  }
  fmt::print(
      "winners changed: {}; times of the same winner: {}; requests added: {}, removed: {}; other candidates only: {}; "
      "the same: {}\n",
      winners.text(), times.text(), count[static_cast<size_t>(Change::added)],
      count[static_cast<size_t>(Change::removed)], count[static_cast<size_t>(Change::records)], difference.unchanged);
}

Json json_of(const std::optional<cache::Record>& winner) {
  if (!winner) return nullptr;
  return {{"algorithm", winner->algorithm},
          {"config", winner->config},
          {"seconds", winner->seconds},
          {"time", to_string(winner->kind)}};
}

Json json_of(const cache::RequestChange& change) {
  const std::optional<double> speedup = change.speedup();
  return {{"device", change.device},
          {"request", change.request},
          {"change", to_string(change.change)},
          {"before", json_of(change.before)},
          {"after", json_of(change.after)},
          {"speedup", speedup ? Json(*speedup) : Json(nullptr)},
          {"algorithm_changed", only_the_digest(change)},
          {"candidates_added", change.records_added},
          {"candidates_removed", change.records_removed},
          {"candidates_changed", change.records_changed}};
}

Json ids_of(const std::vector<cache::DeviceEntry>& devices) {
  Json ids = Json::array();
  for (const cache::DeviceEntry& device : devices) ids.push_back(device.id);
  return ids;
}

Json json_of(const cache::Diff& difference) {
  Json changes = Json::array();
  for (const cache::RequestChange& change : difference.changes) changes.push_back(json_of(change));
  return {{"devices_added", ids_of(difference.devices_added)},
          {"devices_removed", ids_of(difference.devices_removed)},
          {"devices_changed", ids_of(difference.devices_changed)},
          {"changes", changes},
          {"unchanged", difference.unchanged}};
}

struct DiffOptions {
  std::string before, after;
  Output output;
  bool all = false;
  bool current = false;
};

int diff(const DiffOptions& options) {
  const Catalogue catalogue = catalogue_of(read_environment());
  const cache::Pack before = read_contents(options.before), after = read_contents(options.after);
  const cache::Diff difference =
      cache::diff(before, after, options.current ? is_current(catalogue) : cache::IsCurrent());
  if (options.output.json) {
    print_json(json_of(difference));
    return success;
  }
  fmt::print("--- {}\n+++ {}\n", options.before, options.after);
  for (const cache::DeviceEntry& device : difference.devices_added) fmt::print("+ device {}\n", device.id);
  for (const cache::DeviceEntry& device : difference.devices_removed) fmt::print("- device {}\n", device.id);
  for (const cache::DeviceEntry& device : difference.devices_changed) {
    fmt::print("  device {} is described in another way\n", device.id);
  }
  std::string device;
  for (const cache::RequestChange& change : difference.changes) {
    if (change.change == Change::records && !options.all) continue;
    if (change.device != device) fmt::print("\n@@ {} @@\n", change.device);
    device = change.device;
    print_change(change);
    if (only_the_digest(change)) fmt::print("    the algorithm itself has changed\n");
  }
  fmt::print("\n");
  print_summary(difference);
  return success;
}

// --- stats ---

struct StatsOptions {
  std::string file;
  std::string database;
  Output output;
};

std::string day_of(int64_t ms) {
  return cache::format_utc(ms).substr(0, 10);
}

// `accuracy`: what a pack says of the device's clock.
void print_statistics(const cache::DeviceStatistics& here, const std::string& accuracy, const Output& output) {
  fmt::print("{}\n", here.device.id);
  if (here.device.emulated) fmt::print("  {}\n", modelled_text(here.device.name));
  if (!accuracy.empty()) fmt::print("  the pack says of that clock: {}\n", accuracy);
  fmt::print("  {} requests, {} of them with nothing to use; {} records, {} of them stale\n", here.requests,
             here.without_winner, here.records, here.stale);
  if (here.records == 0) return;
  fmt::print("  made {} to {} with driver {}, NVRTC {}, Kiln {}\n", day_of(here.oldest_ms), day_of(here.newest_ms),
             fmt::join(here.driver_versions, " "), fmt::join(here.nvrtc_versions, " "),
             fmt::join(here.kiln_versions, " "));
  std::vector<std::string> outcomes;
  for (const auto& [outcome, count] : here.outcomes) outcomes.push_back(fmt::format("{} {}", count, outcome));
  fmt::print("  outcomes: {}\n\n", fmt::join(outcomes, ", "));
  Table table({"  algorithm", ">candidates", ">wins", ">failed", ">stale"});
  for (const auto& [name, algorithm] : here.algorithms) {
    table.add({"  " + name, std::to_string(algorithm.candidates), std::to_string(algorithm.wins),
               std::to_string(algorithm.failed), std::to_string(algorithm.stale)});
  }
  fmt::print("{}\n", output.print(table));
}

Json json_of(const cache::DeviceStatistics& here, const std::string& accuracy) {
  Json algorithms = Json::object();
  for (const auto& [name, algorithm] : here.algorithms) {
    algorithms.set(name, {{"candidates", algorithm.candidates},
                          {"wins", algorithm.wins},
                          {"failed", algorithm.failed},
                          {"stale", algorithm.stale}});
  }
  const bool any = here.records > 0;
  return {{"device", here.device.id},
          {"modelled_by", modelled_json(here.device.name)},
          {"accuracy_in_pack", accuracy.empty() ? Json(nullptr) : Json(accuracy)},
          {"requests", here.requests},
          {"without_winner", here.without_winner},
          {"records", here.records},
          {"stale", here.stale},
          {"oldest", any ? Json(cache::format_utc(here.oldest_ms)) : Json(nullptr)},
          {"newest", any ? Json(cache::format_utc(here.newest_ms)) : Json(nullptr)},
          {"driver_versions", here.driver_versions},
          {"nvrtc_versions", here.nvrtc_versions},
          {"kiln_versions", here.kiln_versions},
          {"outcomes", here.outcomes},
          {"algorithms", algorithms}};
}

int stats(const StatsOptions& options) {
  const Environment environment = read_environment();
  const Source source = read_source(options.file, options.database, environment);
  const Catalogue catalogue = catalogue_of(environment);
  const std::vector<cache::DeviceStatistics> statistics = cache::statistics(source.contents, is_current(catalogue));
  const auto accuracy_of = [&](const cache::DeviceStatistics& here) {
    const auto found = source.contents.accuracies.find(here.device.id);
    return found == source.contents.accuracies.end() ? std::string() : found->second;
  };
  std::error_code missing;
  const std::uintmax_t bytes = std::filesystem::file_size(source.path, missing);
  if (options.output.json) {
    Json devices = Json::array();
    for (const cache::DeviceStatistics& here : statistics) devices.push_back(json_of(here, accuracy_of(here)));
    print_json({{"file", source.path}, {"bytes", missing ? 0 : bytes}, {"devices", devices}});
    return success;
  }
  fmt::print("{}: {:.1f} KiB\n\n", source.path, missing ? 0 : static_cast<double>(bytes) / 1024);
  for (const cache::DeviceStatistics& here : statistics) print_statistics(here, accuracy_of(here), options.output);
  return success;
}

}  // namespace

void add_cache_review(Command cache, int& exit_code) {
  auto diff_options = std::make_shared<DiffOptions>();
  const Command diffing = cache.add_command("diff", "compare two packs or databases, request by request");
  diffing.add_option("before", diff_options->before, "a pack or a database").required();
  diffing.add_option("after", diff_options->after, "a pack or a database").required();
  diffing.add_flag("--all", diff_options->all, "also list requests in which only other candidates changed");
  diffing.add_flag("--current", diff_options->current, "consider only records that this library's algorithms can use");
  diff_options->output.add_to(diffing);
  diffing.footer("Example: kiln cache diff shipped.pack ~/.cache/kiln/tuning.db");
  diffing.on_chosen([diff_options, &exit_code] { exit_code = diff(*diff_options); });

  auto stats_options = std::make_shared<StatsOptions>();
  const Command counting = cache.add_command("stats", "print the contents of a database or a pack in numbers");
  counting.add_option("file", stats_options->file, "a pack or a database (default: as --db)");
  add_database_option(counting, stats_options->database);
  stats_options->output.add_to(counting);
  counting.footer("Example: kiln cache stats tuned.pack");
  counting.on_chosen([stats_options, &exit_code] { exit_code = stats(*stats_options); });
}

}  // namespace kiln::cli
