#include "database.h"

#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"

namespace kiln::cli {

namespace fs = std::filesystem;

Environment read_environment() {
  Environment environment = Environment::read();
  if (!environment.unknown.empty()) throw unknown_variable(environment.unknown.front());
  for (const Error& error : environment.not_trusted) fmt::print(stderr, "kiln: {}\n", error.what());
  return environment;
}

void add_database_option(CLI::App& command, std::string& database) {
  command.add_option("--db", database, "tuning database (default: KILN_CACHE, else the user's cache folder)")
      ->type_name("FILE");
}

std::string database_path(const std::string& option, const Environment& environment) {
  const auto path = cache_path(option.empty() ? std::nullopt : std::optional(option), environment);
  if (path) return *path;
  throw Error(ErrorCode::invalid_argument, "there is no tuning database", "give --db FILE or set KILN_CACHE");
}

void require_file(const std::string& path, std::string_view hint) {
  std::error_code unreadable;  // then it is there, and what reads it says more
  const fs::file_status status = fs::status(path, unreadable);
  if (status.type() == fs::file_type::not_found)
    throw Error(ErrorCode::io_error, fmt::format("there is no file {}", path), std::string(hint));
  const std::string_view kind = kind_of_no_file(status.type());
  if (!kind.empty() && status.type() != fs::file_type::fifo)  // whose other end may be a program that writes a file
    throw Error(ErrorCode::io_error, fmt::format("{} is {}, not a file", path, kind), std::string(hint));
}

void require_regular_file(const std::string& path, std::string_view hint) {
  std::error_code unreadable;
  const fs::file_type type = fs::status(path, unreadable).type();
  if (type == fs::file_type::not_found && fs::is_symlink(fs::symlink_status(path, unreadable))) {
    throw Error(
        ErrorCode::io_error,
        fmt::format("{} is a link to {}, which is not there", path, fs::read_symlink(path, unreadable).string()),
        std::string(hint));
  }
  if (type == fs::file_type::fifo)
    throw Error(ErrorCode::io_error, fmt::format("{} is {}, not a file", path, kind_of_no_file(type)),
                std::string(hint));
  require_file(path, hint);
}

OpenedDatabase open_announced(const std::string& path, cache::OpenMode mode) {
  struct Opening {
    bool done = false;
    std::optional<cache::Announcement> trouble;
  };
  const auto opening = std::make_shared<Opening>();  // the database keeps the function below
  cache::Database database = cache::Database::open(path, {.mode = mode}, [opening](const cache::Announcement& trouble) {
    if (opening->done)
      fmt::print(stderr, "kiln: {}\n", trouble.text());
    else
      opening->trouble = trouble;
  });
  opening->done = true;
  return {std::move(database), std::move(opening->trouble)};
}

cache::Database open_or_fail(const std::string& path, cache::OpenMode mode) {
  if (mode == cache::OpenMode::read_only) require_regular_file(path, "`kiln tune` makes a tuning database");
  OpenedDatabase opened = open_announced(path, mode);
  if (opened.trouble) {
    // Damaged rows are left out; the others are there to be listed.
    const bool is_used =
        opened.trouble->trouble == cache::Trouble::corrupt && opened.database.storage() != cache::Storage::memory;
    if (!is_used) throw Error(ErrorCode::io_error, opened.trouble->cause, opened.trouble->hint);
    fmt::print(stderr, "kiln: {}\n", opened.trouble->text());
  }
  return std::move(opened.database);
}

cache::Database open_to_read(const std::string& option, const Environment& environment) {
  const std::string path = database_path(option, environment);
  std::error_code unreadable;
  if (!option.empty() || fs::status(path, unreadable).type() != fs::file_type::not_found)
    return open_or_fail(path, cache::OpenMode::read_only);
  fmt::print(stderr, "kiln: nothing has been tuned yet: there is no {}\n", path);
  return cache::Database::in_memory();
}

size_t store_trials(const std::vector<tuner::Trial>& trials, const std::string& path,
                    const device::DeviceInfo& device) {
  if (trials.empty()) return 0;
  cache::Database database = open_or_fail(path, cache::OpenMode::read_write);
  database.put_device(device_entry(device));
  return static_cast<size_t>(std::count_if(trials.begin(), trials.end(),
                                           [&](const tuner::Trial& trial) { return store_trial(database, trial); }));
}

}  // namespace kiln::cli
