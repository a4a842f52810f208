// --db, and the files that commands are given.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "command_line.h"
#include "kiln/base/environment.h"
#include "kiln/cache/database.h"
#include "kiln/device/device.h"
#include "kiln/tuner/trial.h"

namespace kiln::cli {

/// The settings of the process. Throws Error(invalid_argument) for a value that a variable does not accept, and for a
/// variable KILN_... that nothing reads.
Environment read_environment();

/// Adds --db to a command.
Option add_database_option(Command command, std::string& database);

/// The database that --db or the environment names. Throws Error(invalid_argument) if there is none.
std::string database_path(const std::string& option, const Environment& environment);

/// For commands that make a Context, which goes on without what it cannot use: throws Error(io_error) unless the
/// database of --db is there and can be read, also for `requests`, which are keys. Nothing for "off" and without --db:
/// the database that the environment names need not be there, and the Context says what is wrong with it.
void require_database(const std::string& option, const std::vector<std::string>& requests = {});
/// The same for packs that a command line names.
void require_packs(const std::vector<std::string>& packs);
/// The same for bundles; throws Error(parse_error) for one that is damaged.
void require_bundles(const std::vector<std::string>& bundles);

/// Throws Error(io_error) that says so if `path` is a folder, device or socket, or there is nothing.
void require_file(const std::string& path, std::string_view hint = {});

/// As require_file(), and for a named pipe: it cannot be looked into before it is read. A link to nothing is named as
/// one.
void require_regular_file(const std::string& path, std::string_view hint = {});

struct OpenedDatabase {
  cache::Database database;
  std::optional<cache::Announcement> trouble;  ///< Trouble with opening it. Later trouble is told on standard error.
};
/// To write, the folder of the file has to be there: it is made in the user's cache folder alone, where Kiln's own
/// place is, so that a mistyped path makes no folders.
OpenedDatabase open_announced(const std::string& path, cache::OpenMode mode);

/// A command about a database is of no use without it: here trouble is an Error(io_error), not an announcement. So is,
/// for reading, that there is no file.
cache::Database open_or_fail(const std::string& path, cache::OpenMode mode);

/// As open_or_fail() of database_path(), for reading. Where nobody has tuned yet the usual database is not there, which
/// is no error: an empty one, and a note on standard error.
cache::Database open_to_read(const std::string& option, const Environment& environment);

/// For the end of a command whose results are in `database`: says in words where they are. Results that another
/// process' lock has kept in memory are stored once that is gone; after `limit`, or soon after `is_stopped`, they are
/// written to a file beside the database, to be merged, and so are results that could not be kept for another reason.
/// Remarks on standard error.
std::string keep_results(cache::Database& database, std::chrono::milliseconds limit,
                         const std::function<bool()>& is_stopped);

/// Stores what became of `trials`, of `device`, in the database at `path`: store_trial(). Returns how many say
/// something there. For commands that have yet to print what they found: where the database cannot be used, that is a
/// line on standard error, and nothing is stored.
size_t store_trials(const std::vector<tuner::Trial>& trials, const std::string& path, const device::DeviceInfo& device);

}  // namespace kiln::cli
