// kiln cache list, export, import, merge.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <memory>
#include <string>
#include <vector>

#include "cache_commands.h"
#include "commands.h"
#include "input.h"
#include "kiln/base/environment.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"
#include "kiln/version.h"
#include "table.h"
#include "words.h"

namespace kiln::cli {
namespace {

struct Options {
  std::string database;
  std::string file;
  std::vector<std::string> files;
  std::vector<std::string> expressions;
  bool winners = false;
  bool no_samples = false;
};

int list(const Options& options) {
  const cache::Database database = open_or_fail(database_path(options.database), cache::OpenMode::read_only);
  const Catalogue catalogue = catalogue_of(Environment::read());
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

int export_pack(const Options& options) {
  const cache::Database database = open_or_fail(database_path(options.database), cache::OpenMode::read_only);
  const Catalogue catalogue = catalogue_of(Environment::read());
  cache::ExportOptions what;
  what.winners_only = options.winners;
  what.samples = !options.no_samples;
  if (options.winners) what.is_current = is_current(catalogue);
  const cache::Pack pack = cache::export_pack(database, what);
  cache::write_pack_file(options.file, pack, version());
  fmt::print("{}: {} records of {} devices\n", options.file, pack.records.size(), pack.devices.size());
  return success;
}

size_t count_stale(const cache::Pack& pack, const cache::IsCurrent& current) {
  size_t stale = 0;
  for (const cache::Record& record : pack.records) stale += !current(record.algorithm, record.algorithm_digest);
  return stale;
}

// Reads a pack into the database, checking every line; the number of those that were refused.
size_t import_pack(cache::Database& database, const std::string& path, const Catalogue& catalogue,
                   const Expressions& expressions) {
  const cache::ParsedPack parsed = cache::read_pack_file(path, pack_validator(catalogue, expressions));
  for (const cache::PackRefusal& refusal : parsed.refused) {
    fmt::print(stderr, "{}: refused: {}\n", path, refusal.text());
  }
  if (parsed.refused_lines > parsed.refused.size()) {
    fmt::print(stderr, "{}: refused: {} more lines\n", path, parsed.refused_lines - parsed.refused.size());
  }
  const cache::MergeResult merged = database.merge(parsed.pack);
  fmt::print("{}: {} records added, {} replaced, {} kept as they were, {} lines refused\n", path, merged.added,
             merged.replaced, merged.kept, parsed.refused_lines);
  if (const size_t stale = count_stale(parsed.pack, is_current(catalogue)); stale > 0) {
    fmt::print("{}: {} records are stale: their algorithms have changed since, they are kept and not used\n", path,
               stale);
  }
  print_not_at_hand(path, parsed.pack, catalogue, expressions);
  return parsed.refused_lines;
}

void merge_database(cache::Database& database, const std::string& path) {
  const cache::MergeResult merged = database.merge(open_or_fail(path, cache::OpenMode::read_only));
  fmt::print("{}: {} records added, {} replaced, {} kept as they were\n", path, merged.added, merged.replaced,
             merged.kept);
}

int import_packs(const Options& options) {
  cache::Database database = open_or_fail(database_path(options.database), cache::OpenMode::read_write);
  const Catalogue catalogue = catalogue_of(Environment::read());
  const Expressions expressions = read_expressions(options.expressions);
  size_t refused = 0;
  for (const std::string& path : options.files) refused += import_pack(database, path, catalogue, expressions);
  return refused == 0 ? success : failed_check;
}

int merge(const Options& options) {
  cache::Database database = open_or_fail(database_path(options.database), cache::OpenMode::read_write);
  const Catalogue catalogue = catalogue_of(Environment::read());
  const Expressions expressions = read_expressions(options.expressions);
  size_t refused = 0;
  for (const std::string& path : options.files) {
    if (is_pack(path)) {
      refused += import_pack(database, path, catalogue, expressions);
    } else {
      merge_database(database, path);
    }
  }
  return refused == 0 ? success : failed_check;
}

CLI::App* add(CLI::App& parent, const char* name, const char* summary, const std::shared_ptr<Options>& options,
              int (*run)(const Options&), int& exit_code) {
  CLI::App* command = parent.add_subcommand(name, summary);
  add_database_option(*command, options->database);
  command->callback([options, run, &exit_code] { exit_code = run(*options); });
  return command;
}

}  // namespace

void add_cache_transport(CLI::App& cache, int& exit_code) {
  auto options = std::make_shared<Options>();
  add(cache, "list", "every request with its best variant", options, list, exit_code);
  CLI::App* exporting =
      add(cache, "export", "write a pack: text, to ship and to review", options, export_pack, exit_code);
  exporting->add_option("pack", options->file, "the file to write")->required();
  exporting->add_flag("--winners", options->winners, "only what can be chosen, not every candidate");
  exporting->add_flag("--no-samples", options->no_samples, "leave the single samples out");
  CLI::App* importing =
      add(cache, "import", "read packs into the database, checking every line", options, import_packs, exit_code);
  importing->add_option("packs", options->files, "the files to read")->required();
  add_expressions_to(*importing, options->expressions);
  CLI::App* merging = add(cache, "merge", "take over into the database (--db) what other databases and packs hold",
                          options, merge, exit_code);
  merging->add_option("files", options->files, "databases and packs to read; of packs, every line is checked")
      ->required();
  add_expressions_to(*merging, options->expressions);
}

}  // namespace kiln::cli
