// kiln cache: show, check, export and import the tuning database.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "cache_commands.h"
#include "command_line.h"
#include "commands.h"
#include "kiln/base/environment.h"
#include "kiln/base/error.h"
#include "kiln/base/file_start.h"
#include "kiln/base/printable.h"
#include "kiln/runtime/pack_check.h"

namespace kiln::cli {

bool is_pack(const std::string& path) {
  require_regular_file(path, "give a pack or a tuning database");
  constexpr std::string_view start_of_a_pack = "kiln-pack\t", start_of_a_database = "SQLite format 3";
  const std::optional<std::string> start =
      file_start(path, std::max(start_of_a_pack.size(), start_of_a_database.size()));
  if (!start) return false;
  if (start->starts_with(start_of_a_pack)) return true;
  if (path.ends_with(".pack") && !start->starts_with(start_of_a_database)) {
    throw Error(ErrorCode::io_error,
                start->empty() ? fmt::format("{} is empty, no pack", path)
                               : fmt::format("{} is not a pack: it does not begin with kiln-pack", path),
                "`kiln cache export` writes packs");
  }
  return false;
}

cache::Pack read_contents(const std::string& path) {
  if (!is_pack(path)) return cache::export_pack(open_or_fail(path, cache::OpenMode::read_only));
  cache::ParsedPack parsed = cache::read_pack_file(path);
  for (const cache::PackRefusal& refusal : parsed.refused) {
    fmt::print(stderr, "{}: refused: {}\n", path, printable(refusal.text()));
  }
  return std::move(parsed.pack);
}

namespace {

std::vector<std::string> files_in(const std::string& folder, FilesOf kinds, const std::string& excluded) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const fs::path& path = entry->path();
    const bool is_listed =
        path.extension() == ".db" || (kinds == FilesOf::databases_and_packs && path.extension() == ".pack");
    std::error_code unknown;
    if (is_listed && !entry->is_directory(unknown) && !fs::equivalent(path, excluded, unknown)) files.push_back(path);
  }
  if (error) throw Error(ErrorCode::io_error, fmt::format("{} cannot be read: {}", folder, error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

std::vector<std::string> gather(const std::vector<std::string>& given, FilesOf kinds, const std::string& excluded) {
  const bool packs = kinds == FilesOf::databases_and_packs;
  std::vector<std::string> files;
  for (const std::string& path : given) {
    std::error_code unknown;
    if (!std::filesystem::is_directory(path, unknown)) {
      require_regular_file(path, packs ? "give a database, a pack, or a folder of them" : "give a folder of databases");
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> inside = files_in(path, kinds, excluded);
    if (inside.empty()) {
      throw Error(
          ErrorCode::io_error, fmt::format("{} holds no database{}", path, packs ? " and no pack" : ""),
          fmt::format("give a folder of files .db{}, such as that of `kiln tune --db-dir`", packs ? " and .pack" : ""));
    }
    files.insert(files.end(), inside.begin(), inside.end());
  }
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

void add_cache(Command app, int& exit_code) {
  const Command command = app.add_command("cache", "show, check, export and import the tuning database");
  command.require_command();
  add_cache_transport(command, exit_code);
  add_cache_review(command, exit_code);
  add_cache_upkeep(command, exit_code);
  add_cache_fleet(command, exit_code);
}

}  // namespace kiln::cli
