// kiln cache: look into the tuning database, and carry it.
#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "commands.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "kiln/cache/pack.h"
#include "kiln/runtime/settings.h"
#include "kiln/templates/catalogue.h"
#include "kiln/version.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

struct CacheOptions {
  std::string database;
  std::string file;
  std::vector<std::string> files;
  bool winners = false;
  bool no_samples = false;
};

std::string database_path(const CacheOptions& options) {
  const auto path =
      cache_path(options.database.empty() ? std::nullopt : std::optional(options.database), Environment::read());
  if (path) return *path;
  throw Error(ErrorCode::invalid_argument, "there is no tuning database", "give --db FILE or set KILN_CACHE");
}

// A command about the database is of no use without it: here trouble is an error, not an announcement.
cache::Database open_or_fail(const std::string& path, cache::OpenMode mode) {
  std::optional<std::string> trouble;
  cache::Database database = cache::Database::open(
      path, {.mode = mode}, [&](const cache::Announcement& announced) { trouble = announced.text(); });
  if (trouble) throw Error(ErrorCode::io_error, *trouble);
  return database;
}

cache::IsCurrent is_current(const Catalogue& catalogue) {
  return [&catalogue](std::string_view algorithm, std::string_view digest) {
    return catalogue.digest(algorithm) == digest;
  };
}

int list(const CacheOptions& options) {
  const cache::Database database = open_or_fail(database_path(options), cache::OpenMode::read_only);
  const Catalogue catalogue = make_catalogue(embedded_sources());
  for (const cache::DeviceEntry& device : database.devices()) {
    Table table({"request", ">candidates", ">stale", "best", ">time"});
    for (const cache::RequestSummary& request : database.requests(device.id, is_current(catalogue))) {
      const std::string best = request.best ? request.best->algorithm + " " + request.best->config : "-";
      table.add(
          {request.request, std::to_string(request.records), std::to_string(request.stale), best,
           request.best ? fmt::format("{} {}", time_text(request.best->seconds), to_string(request.best->kind)) : "-"});
    }
    fmt::print("{}\n{}\n", device.id, table.print());
  }
  return success;
}

int export_pack(const CacheOptions& options) {
  const cache::Database database = open_or_fail(database_path(options), cache::OpenMode::read_only);
  const Catalogue catalogue = make_catalogue(embedded_sources());
  cache::ExportOptions what;
  what.winners_only = options.winners;
  what.samples = !options.no_samples;
  if (options.winners) what.is_current = is_current(catalogue);
  const cache::Pack pack = cache::export_pack(database, what);
  cache::write_pack_file(options.file, pack, version());
  fmt::print("{}: {} records of {} devices\n", options.file, pack.records.size(), pack.devices.size());
  return success;
}

// What the generator says of a pack: its requests must be canonical, its choices ones that it can make. A record whose
// algorithm has changed since is let in: it is kept, reported and not used.
cache::PackValidator validator_for(const Catalogue& catalogue, const std::vector<cache::DeviceEntry>& devices) {
  std::map<std::string, Target> targets;
  for (const cache::DeviceEntry& device : devices) {
    targets.emplace(device.id, Target{Arch::of(device.cc_major, device.cc_minor), 13, 0});
  }
  cache::PackValidator validator;
  validator.request = [](std::string_view line) -> std::optional<std::string> {
    try {
      const std::string key = Request::parse(line).key();
      return key == line ? std::nullopt : std::optional("the request is not canonical, expected: " + key);
    } catch (const Error& error) {
      return error.what();
    }
  };
  validator.record = [&catalogue, targets](const cache::Record& record) -> std::optional<std::string> {
    try {
      const Choice choice{record.algorithm, Config::parse(record.config)};
      if (catalogue.digest(record.algorithm) != record.algorithm_digest) return std::nullopt;
      return catalogue.refusal(Request::parse(record.request), targets.at(record.device), choice);
    } catch (const Error& error) {
      return error.what();
    }
  };
  return validator;
}

cache::ParsedPack read_checked(const std::string& path) {
  const Catalogue catalogue = make_catalogue(embedded_sources());
  const cache::ParsedPack unchecked = cache::read_pack_file(path);  // for its devices
  cache::ParsedPack parsed = cache::read_pack_file(path, validator_for(catalogue, unchecked.pack.devices));
  for (const cache::PackRefusal& refusal : parsed.refused)
    fmt::print(stderr, "{}: refused: {}\n", path, refusal.text());
  return parsed;
}

int import_packs(const CacheOptions& options) {
  cache::Database database = open_or_fail(database_path(options), cache::OpenMode::read_write);
  size_t refused = 0;
  for (const std::string& path : options.files) {
    const cache::ParsedPack parsed = read_checked(path);
    const cache::MergeResult merged = database.merge(parsed.pack);
    fmt::print("{}: {} records added, {} replaced, {} kept as they were, {} lines refused\n", path, merged.added,
               merged.replaced, merged.kept, parsed.refused.size());
    refused += parsed.refused.size();
  }
  return refused == 0 ? success : failed_check;
}

int merge(const CacheOptions& options) {
  cache::Database database = open_or_fail(database_path(options), cache::OpenMode::read_write);
  for (const std::string& path : options.files) {
    const cache::MergeResult merged = database.merge(open_or_fail(path, cache::OpenMode::read_only));
    fmt::print("{}: {} records added, {} replaced, {} kept as they were\n", path, merged.added, merged.replaced,
               merged.kept);
  }
  return success;
}

CLI::App* add(CLI::App& parent, const char* name, const char* summary, const std::shared_ptr<CacheOptions>& options,
              int (*run)(const CacheOptions&), int& exit_code) {
  CLI::App* command = parent.add_subcommand(name, summary);
  command->add_option("--db", options->database, "tuning database (default: KILN_CACHE, else the user's cache folder)");
  command->callback([options, run, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace

void add_cache(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CacheOptions>();
  CLI::App* command = app.add_subcommand("cache", "look into the tuning database, and carry it");
  command->require_subcommand(1);
  add(*command, "list", "every request with its best variant", options, list, exit_code);
  CLI::App* exporting =
      add(*command, "export", "write a pack: text, to ship and to review", options, export_pack, exit_code);
  exporting->add_option("pack", options->file, "the file to write")->required();
  exporting->add_flag("--winners", options->winners, "only what can be chosen, not every candidate");
  exporting->add_flag("--no-samples", options->no_samples, "leave the single samples out");
  CLI::App* importing =
      add(*command, "import", "read packs into the database, checking every line", options, import_packs, exit_code);
  importing->add_option("packs", options->files, "the files to read")->required();
  CLI::App* merging = add(*command, "merge", "take over what other databases hold", options, merge, exit_code);
  merging->add_option("databases", options->files, "the databases to read")->required();
}

}  // namespace kiln::cli
