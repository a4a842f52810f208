// kiln cache verify, prune, quarantine: does what is stored still hold, what of it can go, what must not run.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>

#include "cache_commands.h"
#include "checks.h"
#include "command_line.h"
#include "commands.h"
#include "device_choice.h"
#include "input.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/recheck.h"
#include "kiln/runtime/settings.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

// --- verify ---

struct UpkeepOptions {
  std::string file;
  std::string database;
  std::string sample = "10";
  DeviceChoice device;
  double tolerance = 5;  // percent
  uint64_t seed = 1;
  std::vector<std::string> expressions;
  Output output;
};

size_t parse_sample_size(const std::string& text) {
  if (text == "all") return 0;
  size_t count = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error == std::errc() && stop == text.data() + text.size() && count > 0) return count;
  throw Error(ErrorCode::invalid_argument, fmt::format("--sample {} is neither a number from 1 up nor all", text));
}

std::string difference_text(const Rechecked& result) {
  if (result.finding == Rechecked::Finding::failed) return "";
  return fmt::format("{:+.1f}%", 100 * (result.seconds / result.stored.seconds - 1));
}

Json json_of(const Rechecked& one) {
  const bool failed = one.finding == Rechecked::Finding::failed;
  return {{"request", one.stored.request},
          {"algorithm", one.stored.algorithm},
          {"config", one.stored.config},
          {"stored_seconds", one.stored.seconds},
          {"seconds", failed ? Json(nullptr) : Json(one.seconds)},
          {"finding", to_string(one.finding)},
          {"error", one.error}};
}

void print_findings(const RecheckResult& result, const Output& output) {
  Table table({"request", "variant", ">stored", ">now", ">difference", "finding"});
  for (const Rechecked& one : result.checked) {
    const bool failed = one.finding == Rechecked::Finding::failed;
    table.add({one.stored.request, one.stored.algorithm + " " + one.stored.config, time_text(one.stored.seconds),
               failed ? "-" : time_text(one.seconds), difference_text(one),
               failed ? "FAILED: " + one.error : std::string(to_string(one.finding))});
  }
  if (!result.checked.empty()) fmt::print("{}\n", output.print(table));
}

// Stores the bars of records that were found wrong in the database itself, so that they serve nobody from then on.
// Returns how many records are stored.
size_t store_bars(const RecheckResult& result, const std::string& path, const device::DeviceInfo& device) {
  std::vector<tuner::Trial> bars;
  for (const Rechecked& one : result.checked) {
    if (one.bar) bars.push_back(*one.bar);
  }
  return store_trials(bars, path, device);
}

int verify_database(const UpkeepOptions& options) {
  const Environment environment = options.device.environment();
  RecheckOptions how;
  how.sample = parse_sample_size(options.sample);
  how.seed = options.seed;
  how.tolerance = options.tolerance / 100;
  how.expressions = read_expressions(options.expressions);
  const Source source = read_source(options.file, options.database, environment);
  const Catalogue catalogue = catalogue_of(environment);
  const std::unique_ptr<tuner::Laboratory> laboratory = options.device.laboratory({}, {}, {});
  const RecheckResult result = recheck(source.contents, catalogue, *laboratory, how);
  const std::vector<std::string> remarks =
      remarks_not_at_hand(source.path, source.contents, catalogue, how.expressions);
  size_t failed = 0, moved = 0;
  for (const Rechecked& one : result.checked) {
    failed += one.finding == Rechecked::Finding::failed;
    moved += one.finding == Rechecked::Finding::faster || one.finding == Rechecked::Finding::slower;
  }
  const int exit_code = failed + moved == 0 ? success : failed_check;
  const size_t barred = options.file.empty() ? store_bars(result, source.path, laboratory->apparatus().device) : 0;
  if (options.output.json) {
    Json checked = Json::array();
    for (const Rechecked& one : result.checked) checked.push_back(json_of(one));
    print_json({{"device", laboratory->apparatus().device.id()},
                {"candidates", result.candidates},
                {"tolerance_percent", options.tolerance},
                {"checked", checked},
                {"barred", barred},
                {"stale", result.stale},
                {"without_text", result.without_text},
                {"other_devices", result.other_devices},
                {"remarks", remarks}});
    return exit_code;
  }
  print_findings(result, options.output);
  fmt::print("{} of {} candidates of {} tried again: {} agree, {} differ by more than {}%, {} failed\n",
             result.checked.size(), result.candidates, laboratory->apparatus().device.id(),
             result.checked.size() - failed - moved, moved, options.tolerance, failed);
  if (barred > 0) fmt::print("{} are not used any more: {} holds the findings\n", barred, source.path);
  if (result.stale > 0) fmt::print("{} more are stale: their algorithms have changed since\n", result.stale);
  if (result.without_text > 0) fmt::print("{} more are of user code whose text is not known\n", result.without_text);
  if (result.other_devices > 0) fmt::print("{} more are of other devices\n", result.other_devices);
  for (const std::string& remark : remarks) fmt::print("{}\n", remark);
  return exit_code;
}

// --- prune ---

struct PruneOptions {
  std::string database;
  bool stale = false;
  bool losers = false;
  double days = 0;
  std::vector<std::string> devices;
  bool dry_run = false;
  Output output;
};

int prune(const PruneOptions& options) {
  if (!options.stale && !options.losers && options.days == 0) {
    throw Error(ErrorCode::invalid_argument, "no option says what to prune",
                "give --stale, --losers or --older-than DAYS, and --dry-run to see the numbers");
  }
  const Environment environment = read_environment();
  if (!options.database.empty()) require_file(options.database);
  cache::Database database = open_or_fail(database_path(options.database, environment), cache::OpenMode::read_write);
  const Catalogue catalogue = catalogue_of(environment);
  cache::PruneOptions what;
  if (options.stale) what.is_current = is_not_replaced(catalogue);
  what.losers = options.losers;
  constexpr double ms_per_day = 86'400e3;
  if (options.days > 0) what.before_ms = cache::utc_now_ms() - static_cast<int64_t>(options.days * ms_per_day);
  what.devices = options.devices;
  what.dry_run = options.dry_run;
  const cache::PruneResult gone = database.prune(what);
  if (gone.storage != cache::Kept::durably) {
    throw Error(ErrorCode::io_error, fmt::format("{} could not be written; nothing was pruned", database.path()));
  }
  if (options.output.json) {
    print_json({{"dry_run", options.dry_run},
                {"records", gone.records},
                {"requests", gone.requests},
                {"sessions", gone.sessions},
                {"quarantine", gone.quarantine}});
    return success;
  }
  fmt::print("{}{} records, {} requests, {} sessions and {} quarantine entries\n",
             options.dry_run ? "would go: " : "gone: ", gone.records, gone.requests, gone.sessions, gone.quarantine);
  return success;
}

// --- quarantine ---

struct QuarantineOptions {
  std::string database;
  std::string source;  // the first characters of a digest; empty: any
  std::string device;  // its id; empty: any
  bool clear = false;
  Output output;
};

std::vector<cache::Quarantine> matching(const cache::Database& database, const QuarantineOptions& options) {
  std::vector<cache::Quarantine> entries = database.quarantine();
  std::erase_if(entries, [&](const cache::Quarantine& entry) {
    return !entry.source_digest.starts_with(options.source) ||
           (!options.device.empty() && entry.device != options.device);
  });
  return entries;
}

void clear(cache::Database& database, const std::vector<cache::Quarantine>& entries) {
  for (const cache::Quarantine& entry : entries) {
    if (database.end_quarantine(entry) == cache::Kept::durably) continue;
    throw Error(ErrorCode::io_error, fmt::format("{} could not be written; the listed entries stay", database.path()),
                "see that the file and its folder are writable and that no other program holds it");
  }
}

Json json_of(const cache::Quarantine& entry) {
  return {{"source", entry.source_digest}, {"device", entry.device}, {"driver", entry.driver_version},
          {"nvrtc", entry.nvrtc_version},  {"reason", entry.reason}, {"created", cache::format_utc(entry.created_ms)}};
}

int quarantine(const QuarantineOptions& options) {
  const Environment environment = read_environment();
  if (!options.database.empty()) require_file(options.database);
  cache::Database database =
      options.clear ? open_or_fail(database_path(options.database, environment), cache::OpenMode::read_write)
                    : open_to_read(options.database, environment);
  const std::vector<cache::Quarantine> entries = matching(database, options);
  if (entries.empty() && !(options.source.empty() && options.device.empty())) {
    throw Error(ErrorCode::invalid_argument, "no source in quarantine has that digest and device",
                "kiln cache quarantine without arguments lists all");
  }
  if (options.output.json) {
    Json listed = Json::array();
    for (const cache::Quarantine& entry : entries) listed.push_back(json_of(entry));
    if (options.clear) clear(database, entries);
    print_json({{"cleared", options.clear}, {"quarantine", listed}});
    return success;
  }
  Table table({"source", "device", "driver", "NVRTC", "reason"});
  for (const cache::Quarantine& entry : entries) {
    table.add({entry.source_digest, entry.device, entry.driver_version, entry.nvrtc_version, entry.reason});
  }
  if (!entries.empty()) fmt::print("{}\n", options.output.print(table));
  if (options.clear) clear(database, entries);
  fmt::print("{}: {}\n", options.clear ? "may run again" : "in quarantine", entries.size());
  return success;
}

}  // namespace

void add_cache_upkeep(Command cache, int& exit_code) {
  auto verify_options = std::make_shared<UpkeepOptions>();
  const Command verifying =
      cache.add_command("verify", "check and time a sample of the stored candidates again on this device, and compare");
  verifying.add_option("file", verify_options->file, "a pack or a database (default: as --db)");
  add_database_option(verifying, verify_options->database);
  verify_options->device.add_to(verifying);
  verifying.add_option("--sample", verify_options->sample, "number of candidates, winners first (default 10), or all");
  verifying.add_option("--tolerance", verify_options->tolerance, "percent by which times may differ (default 5)")
      .check(number_above_zero());
  verifying.add_option("--seed", verify_options->seed, "seed of the sample")
      .check(whole_number(0, std::numeric_limits<int64_t>::max()));
  verify_options->output.add_to(verifying);
  add_expressions_to(verifying, verify_options->expressions);
  verifying.footer("Example: kiln cache verify shipped.pack --sample 20");
  verifying.on_chosen([verify_options, &exit_code] { exit_code = verify_database(*verify_options); });

  auto prune_options = std::make_shared<PruneOptions>();
  const Command pruning = cache.add_command("prune", "delete records of no more use from the database");
  add_database_option(pruning, prune_options->database);
  pruning.add_flag("--stale", prune_options->stale, "records whose algorithm has changed since");
  pruning.add_flag("--losers", prune_options->losers, "records that cannot win under any limit and bar nothing");
  pruning.add_option("--older-than", prune_options->days, "records made more than so many days ago that bar nothing")
      .check(number_above_zero());
  prune_options->output.add_json_to(pruning);
  pruning.add_option("--of-device", prune_options->devices, "only records of these devices, by id");
  pruning.add_flag("--dry-run", prune_options->dry_run, "only print what would be deleted");
  pruning.footer("Example: kiln cache prune --stale --older-than 180 --dry-run");
  pruning.on_chosen([prune_options, &exit_code] { exit_code = prune(*prune_options); });

  auto quarantine_options = std::make_shared<QuarantineOptions>();
  const Command barring = cache.add_command(
      "quarantine", "list or clear sources that are not tried again because they crashed or hung twice");
  barring.add_option("source", quarantine_options->source, "only sources whose digest begins like this");
  add_database_option(barring, quarantine_options->database);
  barring.add_option("--of-device", quarantine_options->device, "only entries of this device, by id");
  barring.add_flag("--clear", quarantine_options->clear, "let the listed sources run again");
  quarantine_options->output.add_to(barring);
  barring.footer("Example: kiln cache quarantine --clear, after the cause is fixed");
  barring.on_chosen([quarantine_options, &exit_code] { exit_code = quarantine(*quarantine_options); });
}

}  // namespace kiln::cli
