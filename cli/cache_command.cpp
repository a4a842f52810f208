// kiln cache: look into the tuning database, and carry it.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>

#include "cache_commands.h"
#include "commands.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/runtime/pack_check.h"

namespace kiln::cli {

bool is_pack(const std::string& path) {
  constexpr std::string_view start_of_a_pack = "kiln-pack\t";
  std::array<char, start_of_a_pack.size()> start{};
  std::ifstream(path, std::ios::binary).read(start.data(), start.size());
  return std::string_view(start.data(), start.size()) == start_of_a_pack;
}

cache::Pack read_contents(const std::string& path) {
  require_file(path, "give a pack or a tuning database");
  if (!is_pack(path)) return cache::export_pack(open_or_fail(path, cache::OpenMode::read_only));
  cache::ParsedPack parsed = cache::read_pack_file(path);
  for (const cache::PackRefusal& refusal : parsed.refused) {
    fmt::print(stderr, "{}: refused: {}\n", path, refusal.text());
  }
  return std::move(parsed.pack);
}

std::vector<std::string> databases_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (std::filesystem::recursive_directory_iterator entry(folder, error), end; entry != end; entry.increment(error)) {
    if (entry->is_regular_file() && entry->path().extension() == ".db") files.push_back(entry->path());
  }
  if (error) throw Error(ErrorCode::io_error, fmt::format("{} cannot be read: {}", folder, error.message()));
  if (files.empty()) {
    throw Error(ErrorCode::io_error, fmt::format("{} holds no database", folder),
                "give a folder of files .db, such as that of `kiln tune --db-dir`");
  }
  std::sort(files.begin(), files.end());
  return files;
}

Source read_source(const std::string& file, const std::string& database, const Environment& environment) {
  if (!file.empty()) return {file, read_contents(file)};
  return {database_path(database, environment), cache::export_pack(open_to_read(database, environment))};
}

std::vector<std::string> remarks_not_at_hand(const std::string& path, const cache::Pack& contents,
                                             const Catalogue& catalogue, const Expressions& expressions) {
  const NotAtHand missing = not_at_hand(contents, catalogue, expressions);
  std::vector<std::string> remarks;
  for (const auto& [digest, records] : missing.user_code) {
    remarks.push_back(fmt::format(
        "{}: {} records are of user:{}, whose text is not known here: they are kept; --expression FILE gives it", path,
        records, digest));
  }
  for (const auto& [name, records] : missing.algorithms) {
    remarks.push_back(
        fmt::format("{}: {} records are of {}, which is not here: KILN_USER_TEMPLATES names folders of user templates",
                    path, records, name));
  }
  return remarks;
}

void add_cache(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("cache", "look into the tuning database, and carry it");
  command->require_subcommand(1);
  add_cache_transport(*command, exit_code);
  add_cache_review(*command, exit_code);
  add_cache_upkeep(*command, exit_code);
  add_cache_fleet(*command, exit_code);
}

}  // namespace kiln::cli
