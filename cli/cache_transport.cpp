// kiln cache list, export, import, merge.
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cache_commands.h"
#include "command_line.h"
#include "commands.h"
#include "input.h"
#include "json.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/base/printable.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "kiln/version.h"
#include "modelled_times.h"
#include "output.h"
#include "short_forms.h"
#include "table.h"

namespace kiln::cli {
namespace {

struct TransferOptions {
  std::string database;
  std::string file;
  std::vector<std::string> files;
  std::vector<std::string> expressions;
  bool winners = false;
  bool own = false;
  bool no_samples = false;
  Output output;
};

Json json_of(const cache::RequestSummary& request) {
  Json best = nullptr;
  if (request.best) {
    best = {{"algorithm", request.best->algorithm},
            {"config", request.best->config},
            {"seconds", request.best->seconds},
            {"time", to_string(request.best->kind)}};
  }
  return {{"request", request.request}, {"candidates", request.records}, {"stale", request.stale}, {"best", best}};
}

void print_requests(const cache::DeviceEntry& device, const std::vector<cache::RequestSummary>& requests,
                    const Output& output) {
  Table table({"request", ">candidates", ">stale", "best", ">time"});
  for (const cache::RequestSummary& request : requests) {
    const std::string best = request.best ? request.best->algorithm + " " + request.best->config : "-";
    table.add(
        {request.request, std::to_string(request.records), std::to_string(request.stale), best,
         request.best ? fmt::format("{} {}", time_text(request.best->seconds), to_string(request.best->kind)) : "-"});
  }
  fmt::print("{}\n", device.id);
  if (device.emulated) fmt::print("{}\n", modelled_text(device.name));
  fmt::print("{}\n", output.print(table));
}

int list(const TransferOptions& options) {
  const Environment environment = read_environment();
  const cache::Database database = open_to_read(options.database, environment);
  const Catalogue catalogue = catalogue_of(environment);
  Json devices = Json::array();
  for (const cache::DeviceEntry& device : database.devices()) {
    const std::vector<cache::RequestSummary> requests = database.requests(device.id, is_current(catalogue));
    if (!options.output.json) {
      print_requests(device, requests, options.output);
      continue;
    }
    Json listed = Json::array();
    for (const cache::RequestSummary& request : requests) listed.push_back(json_of(request));
    devices.push_back({{"device", device.id}, {"modelled_by", modelled_json(device.name)}, {"requests", listed}});
  }
  if (options.output.json) print_json({{"database", database.path()}, {"devices", devices}});
  return success;
}

int export_pack(const TransferOptions& options) {
  require_replaceable("the pack", options.file);
  const Environment environment = read_environment();
  const cache::Database database = open_to_read(options.database, environment);
  const Catalogue catalogue = catalogue_of(environment);
  cache::ExportOptions what;
  what.winners_only = options.winners;
  what.samples = !options.no_samples;
  if (options.winners) what.is_current = is_not_replaced(catalogue);
  cache::Pack pack = cache::export_pack(database, what);
  mark_predictions(pack);
  cache::write_pack_file(options.file, pack, version());
  if (options.output.json)
    print_json({{"pack", options.file}, {"records", pack.records.size()}, {"devices", pack.devices.size()}});
  else
    fmt::print("{}: {} of {}\n", options.file, count_text(pack.records.size(), "record"),
               count_text(pack.devices.size(), "device"));
  return success;
}

size_t count_stale(const cache::Pack& pack, const cache::IsCurrent& current) {
  size_t stale = 0;
  for (const cache::Record& record : pack.records) stale += !current(record.algorithm, record.algorithm_digest);
  return stale;
}

// Outcome of taking in one file.
struct TakenIn {
  std::string file;
  bool is_pack = false;  // else a database
  cache::MergeResult merged;
  size_t refused = 0;  // lines of a pack, records of a database
  std::vector<std::string> remarks;
};

// Reads a pack into the database, checking every line.
TakenIn import_pack(cache::Database& database, const std::string& path, const Catalogue& catalogue,
                    const Expressions& expressions) {
  const cache::ParsedPack parsed = cache::read_pack_file(path, pack_validator(catalogue, expressions));
  for (const cache::PackRefusal& refusal : parsed.refused) {
    fmt::print(stderr, "{}: refused: {}\n", path, printable(refusal.text()));
  }
  if (parsed.refused_lines > parsed.refused.size()) {
    fmt::print(stderr, "{}: refused: {} more lines\n", path, parsed.refused_lines - parsed.refused.size());
  }
  TakenIn result{path, true, database.merge(parsed.pack), parsed.refused_lines, {}};
  if (const size_t stale = count_stale(parsed.pack, is_current(catalogue)); stale > 0) {
    result.remarks.push_back(fmt::format(
        "{}: {} records are stale: their algorithms have changed since, they are kept and not used", path, stale));
  }
  for (std::string& remark : remarks_not_at_hand(path, parsed.pack, catalogue, expressions)) {
    result.remarks.push_back(std::move(remark));
  }
  return result;
}

// Requests are found by their text alone. Throws Error if this library writes none of them as the database does: it is
// of a Kiln with other keys.
void require_keys(const cache::Database& database, const Catalogue& catalogue, const Expressions& expressions) {
  const cache::PackValidator validator = pack_validator(catalogue, expressions);
  std::optional<std::string> reason;
  for (const cache::DeviceEntry& device : database.devices()) {
    for (const std::string& request : database.request_keys(device.id)) {
      const std::optional<std::string> refusal = validator.request(request);
      if (!refusal) return;
      if (!reason) reason = refusal;
    }
  }
  if (!reason) return;
  throw Error(ErrorCode::io_error,
              fmt::format("{} was written by a Kiln with other requests: {}", database.path(), printable_name(*reason)),
              "merge it with the Kiln that wrote it, or tune again");
}

TakenIn merge_database(cache::Database& database, const std::string& path, const Catalogue& catalogue,
                       const Expressions& expressions, bool own) {
  const cache::Database from = open_or_fail(path, cache::OpenMode::read_only);
  require_keys(from, catalogue, expressions);
  const cache::MergeResult merged =
      database.merge(from, {.validator = pack_validator(catalogue, expressions), .own = own});
  for (const std::string& refusal : merged.refused) fmt::print(stderr, "{}: refused: {}\n", path, printable(refusal));
  const auto refused = static_cast<size_t>(merged.refused_records);
  if (refused > merged.refused.size()) {
    fmt::print(stderr, "{}: refused: {} more records\n", path, refused - merged.refused.size());
  }
  TakenIn result{path, false, merged, refused, {}};
  if (from.storage() == cache::Storage::memory) {
    throw Error(ErrorCode::io_error,
                fmt::format("{} is damaged: only {} records of it could be read", path,
                            result.merged.added + result.merged.replaced + result.merged.kept),
                "tune the missing layers again");
  }
  return result;
}

void print(const TakenIn& taken) {
  const std::string refused = taken.refused > 0 || taken.is_pack
                                  ? fmt::format(", {} {} refused", taken.refused, taken.is_pack ? "lines" : "records")
                                  : "";
  fmt::print("{}: {} records added, {} replaced, {} kept as they were{}\n", taken.file, taken.merged.added,
             taken.merged.replaced, taken.merged.kept, refused);
  for (const std::string& remark : taken.remarks) fmt::print("{}\n", remark);
}

Json json_of(const TakenIn& taken) {
  return {{"file", taken.file},        {"added", taken.merged.added},    {"replaced", taken.merged.replaced},
          {"kept", taken.merged.kept}, {"refused_lines", taken.refused}, {"remarks", taken.remarks}};
}

// Import and merge: one takes packs, the other also databases, and folders of either.
int take_in(const TransferOptions& options, bool databases_too) {
  const Environment environment = read_environment();
  const std::string target = database_path(options.database, environment);
  const std::vector<std::string> paths =
      databases_too ? gather(options.files, FilesOf::databases_and_packs, target) : options.files;
  if (!databases_too) {
    for (const std::string& path : paths) require_file(path);
  }
  cache::Database database = open_or_fail(target, cache::OpenMode::read_write);
  const Catalogue catalogue = catalogue_of(environment);
  const Expressions expressions = read_expressions(options.expressions);
  size_t refused = 0;
  Json files = Json::array();
  Json left_out = Json::array();
  std::optional<Error> failed;  // the last: one file that cannot be read keeps no other out
  for (const std::string& path : paths) {
    try {
      const TakenIn taken = databases_too && !is_pack(path)
                                ? merge_database(database, path, catalogue, expressions, options.own)
                                : import_pack(database, path, catalogue, expressions);
      refused += taken.refused;
      if (options.output.json)
        files.push_back(json_of(taken));
      else
        print(taken);
    } catch (const Error& error) {
      if (failed) fmt::print(stderr, "kiln: left out: {}\n      {}\n", failed->message(), failed->hint());
      failed = error;
      left_out.push_back({{"file", path}, {"reason", error.message()}});
    }
  }
  if (options.output.json) print_json({{"database", database.path()}, {"files", files}, {"left_out", left_out}});
  if (failed) throw Error(*failed);
  return refused == 0 ? success : failed_check;
}

int import_packs(const TransferOptions& options) {
  return take_in(options, false);
}

int merge(const TransferOptions& options) {
  return take_in(options, true);
}

Command add(Command parent, const char* name, const char* summary, const char* example,
            const std::shared_ptr<TransferOptions>& options, int (*run)(const TransferOptions&), int& exit_code) {
  const Command command = parent.add_command(name, summary);
  command.footer(fmt::format("Example: {}", example));
  add_database_option(command, options->database);
  command.on_chosen([options, run, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace

void add_cache_transport(Command cache, int& exit_code) {
  auto options = std::make_shared<TransferOptions>();
  options->output.add_to(add(cache, "list", "list every request with its best variant", "kiln cache list --db all.db",
                             options, list, exit_code));
  const Command exporting = add(cache, "export", "write a pack: text, to ship and to review",
                                "kiln cache export --winners tuned.pack", options, export_pack, exit_code);
  options->output.add_json_to(exporting);
  exporting.add_option("pack", options->file, "the file to write").required();
  exporting.add_flag("--winners", options->winners, "only records that can win, and records that bar a variant");
  exporting.add_flag("--no-samples", options->no_samples, "leave the single samples out");
  const Command importing = add(cache, "import", "read packs into the database, checking every line",
                                "kiln cache import shipped.pack", options, import_packs, exit_code);
  importing.add_option("packs", options->files, "the files to read").required();
  add_expressions_to(importing, options->expressions);
  options->output.add_json_to(importing);
  const Command merging = add(cache, "merge", "merge other databases and packs into the database (--db)",
                              "kiln cache merge --db all.db a.pack b.db", options, merge, exit_code);
  merging
      .add_option("files", options->files,
                  "databases and packs to read, and folders of them; of packs, every line is checked")
      .required();
  merging.add_flag("--own", options->own,
                   "the databases are yours: checks and faults that their runs found count as your own");
  add_expressions_to(merging, options->expressions);
  options->output.add_json_to(merging);
}

}  // namespace kiln::cli
