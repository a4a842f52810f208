#include "database.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <system_error>
#include <utility>

#include "cache_commands.h"
#include "command_line.h"
#include "kiln/base/error.h"
#include "kiln/base/output_file.h"
#include "kiln/cache/record.h"
#include "kiln/cache/winners.h"
#include "kiln/execution/bundle.h"
#include "kiln/runtime/records.h"
#include "kiln/runtime/settings.h"

namespace kiln::cli {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr std::string_view no_database_hint = "`kiln tune` makes a tuning database";
constexpr const char* lost_at_the_end = "memory only, lost at the end";

// The folder that a database at `path` lacks; empty where it is there, or is Kiln's own to make.
std::string missing_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  std::error_code unknown;
  if (folder.empty() || fs::status(folder, unknown).type() != fs::file_type::not_found) return {};
  const std::string& home = Environment::read().cache_home;
  return !home.empty() && folder == fs::path(home) / "kiln" ? "" : folder.string();
}

}  // namespace

Environment read_environment() {
  Environment environment = Environment::read();
  if (!environment.unknown.empty()) throw unknown_variable(environment.unknown.front());
  static std::once_flag said;  // a command may read the environment again
  std::call_once(said, [&] {
    for (const Error& error : environment.not_trusted) fmt::print(stderr, "kiln: {}\n", error.what());
  });
  environment.not_trusted.clear();  // a context would say it once more
  return environment;
}

Option add_database_option(Command command, std::string& database) {
  return command.add_option("--db", database, "tuning database (default: KILN_CACHE, else the user's cache folder)")
      .type_name("FILE");
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

void require_database(const std::string& option, const std::vector<std::string>& requests) {
  if (option.empty() || option == "off") return;
  require_regular_file(option, no_database_hint);
  std::optional<cache::Announcement> trouble;  // the last: after what ends the use of the file nothing is told
  const cache::Database database = cache::Database::open(option, {.mode = cache::OpenMode::read_only},
                                                         [&](const cache::Announcement& told) { trouble = told; });
  for (const cache::DeviceEntry& device : database.devices()) {
    for (const std::string& request : requests) (void)database.records(request, device.id);
  }
  if (trouble && database.storage() == cache::Storage::memory)
    throw Error(ErrorCode::io_error, trouble->cause, trouble->hint);
}

void require_packs(const std::vector<std::string>& packs) {
  for (const std::string& pack : packs) {
    if (!is_pack(pack)) {
      throw Error(ErrorCode::io_error, fmt::format("{} is not a pack: it does not begin with kiln-pack", pack),
                  "`kiln cache export` writes packs; a tuning database is named by --db");
    }
    cache::Winners opened({.id = "any", .name = {}});  // whatever device it is for: its first line is read
    opened.load_pack(pack);
    if (const std::vector<std::string> problems = opened.problems(); !problems.empty())
      throw Error(ErrorCode::parse_error, problems.front());
  }
}

void require_bundles(const std::vector<std::string>& bundles) {
  for (const std::string& bundle : bundles) {
    require_file(bundle, "`kiln bundle` makes bundles");
    (void)execution::Bundle::open(bundle);
  }
}

OpenedDatabase open_announced(const std::string& path, cache::OpenMode mode) {
  if (const std::string missing = mode == cache::OpenMode::read_write ? missing_folder(path) : ""; !missing.empty()) {
    const std::string cause = fmt::format("there is no folder {}", missing);
    return {cache::Database::in_memory(),
            cache::Announcement{cache::Trouble::unreachable, path, cause,
                                fmt::format("{} for {}; results are kept in memory", cause, path),
                                "make it, or correct the path"}};
  }
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
  if (mode == cache::OpenMode::read_only) require_regular_file(path, no_database_hint);
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

std::string keep_results(cache::Database& database, std::chrono::milliseconds limit,
                         const std::function<bool()>& is_stopped) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds slice = 1s;           // between two looks at `is_stopped`
  constexpr std::chrono::milliseconds limit_stopped = 10s;  // job systems kill some 30 s after their signal
  const Clock::time_point begin = Clock::now();
  bool is_told = false;
  while (database.keep(std::min(slice, limit)) == cache::Kept::in_memory && database.waits_for_lock()) {
    if (Clock::now() - begin >= (is_stopped() ? std::min(limit, limit_stopped) : limit)) break;
    if (std::exchange(is_told, true)) continue;
    fmt::print(stderr,
               "kiln: waiting for another process that keeps {} locked, {} s at the most, to store the results\n",
               database.path(), std::chrono::duration_cast<std::chrono::seconds>(limit).count());
  }
  if (database.storage() == cache::Storage::file) return database.path();
  if (database.path().empty()) return lost_at_the_end;
  const std::string beside = fmt::format("{}.unkept-{}-{}.db", database.path(), cache::utc_now_ms(), ::getpid());
  {
    cache::Database file = cache::Database::open(beside);
    if (file.storage() != cache::Storage::file || !database.write_unkept(file)) return lost_at_the_end;
  }
  fmt::print(stderr,
             "kiln: {} cannot be written: the results are in {}; once it can: kiln cache merge --db '{}' --own '{}'\n",
             database.path(), beside, database.path(), beside);
  return fmt::format("{}, to be merged into {}", beside, database.path());
}

size_t store_trials(const std::vector<tuner::Trial>& trials, const std::string& path,
                    const device::DeviceInfo& device) {
  if (trials.empty()) return 0;
  try {
    cache::Database database = open_or_fail(path, cache::OpenMode::read_write);
    database.put_device(device_entry(device));
    const auto stored = std::count_if(trials.begin(), trials.end(),
                                      [&](const tuner::Trial& trial) { return store_trial(database, trial); });
    return database.storage() == cache::Storage::file ? static_cast<size_t>(stored) : 0;
  } catch (const Error& error) {
    fmt::print(stderr, "kiln: the findings are not stored: {}\n", error.what());
    return 0;
  }
}

}  // namespace kiln::cli
