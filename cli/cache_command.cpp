// kiln cache: look into the tuning database, and carry it.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <array>
#include <fstream>
#include <memory>
#include <optional>

#include "cache_commands.h"
#include "commands.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/runtime/pack_check.h"
#include "kiln/runtime/settings.h"

namespace kiln::cli {

void add_database_option(CLI::App& command, std::string& database) {
  command.add_option("--db", database, "tuning database (default: KILN_CACHE, else the user's cache folder)");
}

std::string database_path(const std::string& option) {
  const auto path = cache_path(option.empty() ? std::nullopt : std::optional(option), Environment::read());
  if (path) return *path;
  throw Error(ErrorCode::invalid_argument, "there is no tuning database", "give --db FILE or set KILN_CACHE");
}

cache::Database open_or_fail(const std::string& path, cache::OpenMode mode) {
  std::optional<std::string> trouble;
  cache::Database database = cache::Database::open(
      path, {.mode = mode}, [&](const cache::Announcement& announced) { trouble = announced.text(); });
  if (trouble) throw Error(ErrorCode::io_error, *trouble);
  return database;
}

bool is_pack(const std::string& path) {
  constexpr std::string_view start_of_a_pack = "kiln-pack\t";
  std::array<char, start_of_a_pack.size()> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == start_of_a_pack;
}

cache::Pack read_contents(const std::string& path) {
  if (!is_pack(path)) return cache::export_pack(open_or_fail(path, cache::OpenMode::read_only));
  cache::ParsedPack parsed = cache::read_pack_file(path);
  for (const cache::PackRefusal& refusal : parsed.refused) {
    fmt::print(stderr, "{}: refused: {}\n", path, refusal.text());
  }
  return std::move(parsed.pack);
}

void print_not_at_hand(const std::string& path, const cache::Pack& contents, const Catalogue& catalogue,
                       const Expressions& expressions) {
  const NotAtHand missing = not_at_hand(contents, catalogue, expressions);
  for (const auto& [digest, records] : missing.user_code) {
    fmt::print(
        "{}: {} records are of user:{}, whose text is not known here: they are kept; --expression FILE gives it\n",
        path, records, digest);
  }
  for (const auto& [name, records] : missing.algorithms) {
    fmt::print("{}: {} records are of {}, which is not here: KILN_USER_TEMPLATES names folders of user templates\n",
               path, records, name);
  }
}

void add_cache(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("cache", "look into the tuning database, and carry it");
  command->require_subcommand(1);
  add_cache_transport(*command, exit_code);
  add_cache_review(*command, exit_code);
  add_cache_upkeep(*command, exit_code);
}

}  // namespace kiln::cli
