#include "open_file.h"

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "file_system.h"
#include "kiln/base/output_file.h"
#include "schema.h"

namespace kiln::cache {
namespace {

// Thrown inside this file for what Kiln itself finds wrong with a file.
struct Unsuitable {
  Problem problem;
};

// `path` as a URI, for parameters that only URIs carry.
std::string uri_of(const std::string& path, std::string_view parameters) {
  std::string uri = path.starts_with('/') ? "file://" : "file:";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '/' ||
                       c == '.' || c == '_' || c == '-';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
  }
  return uri + "?" + std::string(parameters);
}

// Refuses files that SQLite itself would overlook: it takes a file that is shorter than a page for an empty one and
// writes over it, and fills up a last page that was cut. Header fields: https://www.sqlite.org/fileformat.html, section
// 1.3. Read by SQLite's own handle: closing another one would take all locks of this process off the file.
void refuse_cut_file(Connection& db, const std::string& path) {
  constexpr std::string_view magic("SQLite format 3\0", 16);
  constexpr std::size_t smallest_page = 512;
  const std::string start = db.first_bytes(smallest_page);
  if (start.empty() && file_size(path) != 1) return;  // SQLite calls a file of one byte empty
  if (!start.starts_with(magic)) throw SqliteFault(SQLITE_NOTADB, "it does not start as a SQLite file does");
  if (start.size() < smallest_page) throw SqliteFault(SQLITE_CORRUPT, "it is cut off within its first page");
  const auto number = [&](std::size_t at, std::size_t bytes) {
    long long value = 0;
    for (std::size_t i = 0; i < bytes; ++i) value = value * 256 + static_cast<unsigned char>(start[at + i]);
    return value;
  };
  const long long page = number(16, 2) == 1 ? 65536 : number(16, 2);
  const bool count_is_valid = number(24, 4) == number(92, 4);
  const bool unfinished_write = file_size(path + "-wal") > 0 || file_size(path + "-journal") > 0;
  if (count_is_valid && !unfinished_write && number(28, 4) * page > file_size(path)) {
    throw SqliteFault(SQLITE_CORRUPT, "it is shorter than its header says");
  }
}

// Reads the header and the schema; true if the file is empty, so that the schema is still to be made. Throws Unsuitable
// for a file that is not for this library, SqliteFault for one that is damaged, locked or not to be read this way.
bool inspect(Connection& db, const std::string& path) {
  const Transaction snapshot(db, Access::read);  // another process may be creating the tables right now
  const std::int64_t version = db.integer_of("PRAGMA user_version");
  const std::int64_t application = db.integer_of("PRAGMA application_id");
  const std::int64_t objects = db.integer_of("SELECT COUNT(*) FROM sqlite_schema");
  if (objects == 0 && version == 0) return true;
  if (application != application_id) {
    throw Unsuitable{
        {Trouble::not_a_database,
         fmt::format("{} is a SQLite database of another application (application_id {})", path, application),
         "name another file; this one was not touched"}};
  }
  if (version > schema_version()) {
    throw Unsuitable{{Trouble::newer_schema,
                      fmt::format("{} was written by a newer Kiln (schema {}, this library knows up to {})", path,
                                  version, schema_version()),
                      "update Kiln, or use a database of its own for this version; this one was not touched"}};
  }
  // A view may compute for ever, a trigger or a generated column do what nobody asked for.
  if (const std::optional<std::string> foreign = foreign_part(db, version)) {
    throw Unsuitable{{Trouble::not_a_database,
                      fmt::format("{} is no tuning database that Kiln made: {}", path, *foreign),
                      "name another file, or take that out if it is yours; this one was not touched"}};
  }
  return false;
}

// Whether the file's header asks for a write-ahead log. Read without it: SQLite would open the log.
bool asks_for_log(Connection& db) {
  constexpr std::size_t read_version = 19;
  const std::string start = db.first_bytes(read_version + 1);
  return start.size() > read_version && start[read_version] == 2;
}

bool shared_by_machines(const std::string& path, Journal journal) {
  return journal == Journal::rollback || (journal == Journal::automatic && on_network_file_system(path));
}

// Sets the journal mode of a file that has another one. A write-ahead log only works among the processes of one
// machine: a new file gets one where other machines cannot write it, and a file without is left without, because a
// machine that has the folder on a disk of its own does not see who else uses it over the network. Where they can, a
// log is given up, or nothing is written.
void set_journal(Connection& db, const std::string& path, Journal journal, bool is_new) {
  const bool shared = shared_by_machines(path, journal);
  const bool wants_log = !shared && (is_new || journal == Journal::wal);
  constexpr int attempts = 50;  // SQLite does not wait by itself here
  std::string mode;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    try {
      mode = db.text_of("PRAGMA journal_mode");
      if (mode == (shared ? "delete" : "wal") || (!shared && !wants_log)) break;
      mode = db.text_of(shared ? "PRAGMA journal_mode = delete" : "PRAGMA journal_mode = wal");
    } catch (const SqliteFault& fault) {
      if (fault.primary() != SQLITE_BUSY && fault.primary() != SQLITE_LOCKED) throw;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  if (shared && mode != "delete") {
    throw Unsuitable{
        {Trouble::locked,
         fmt::format("{} has a write-ahead log, which only works among the processes of one machine, and lies where "
                     "several may write; another process has it open, so that the log cannot be given up",
                     path),
         "end that process, or give each machine its own database and merge them"}};
  }
  // FULL: a WAL commit is flushed before it is acknowledged. EXTRA adds the folder's entry of a removed rollback
  // journal.
  db.execute(mode == "wal" ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = EXTRA");
}

void check_pages(Connection& db) {
  db.execute("PRAGMA cell_size_check = ON");  // finds damage in the pages it reads, at no cost that shows
}

// Takes away a file that could not be filled, under a lock of readers: while it is held nobody else commits, and one of
// writers would itself write to a disk that is full. Who commits after it has opened a file that is gone, and looks for
// that.
void remove_unfilled(Connection& db, const std::string& path) {
  try {
    db.wait_for_locks(std::chrono::milliseconds(0));
    const Transaction reading(db, Access::read);
    const bool is_empty = db.integer_of("SELECT COUNT(*) FROM sqlite_schema") == 0 && file_size(path) == 0;
    std::error_code failure;  // then it stays: the fault that brought us here is on its way to the caller
    if (is_empty && !db.has_moved()) std::filesystem::remove(path, failure);
  } catch (const SqliteFault&) {
    return;  // another process has it, or the disk fails: likewise
  }
}

// Makes the tables first, in one transaction: a disk that has no room for them gets an empty file, which is taken away,
// and no write-ahead log.
void fill_new_file(Connection& db, const std::string& path, bool is_own) {
  try {
    db.execute("PRAGMA synchronous = EXTRA");
    migrate(db, migrations());
  } catch (const SqliteFault&) {
    if (is_own) remove_unfilled(db, path);
    throw;
  }
  if (db.has_moved()) throw SqliteFault(SQLITE_READONLY, "opening: another process has removed the file");
}

// Has the last connection fold the log in and take its files away, where there was no log before: there is nothing to
// fold in, and the file stays as it is. A log that held something is another's, and stays as it is.
void take_log_away_on_close(Connection& db, const std::string& path) {
  db.checkpoint_on_close(file_size(path + "-wal") <= 0);
}

Connection open_writable(const std::string& path, const OpenOptions& options) {
  create_parents(path);
  std::error_code unknown;
  const bool is_own = std::filesystem::symlink_status(path, unknown).type() == std::filesystem::file_type::not_found;
  Connection db = Connection::open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, options.busy_timeout);
  take_log_away_on_close(db, path);
  refuse_cut_file(db, path);
  check_pages(db);
  const bool is_new = db.within_time([&] { return inspect(db, path); });
  if (db.read_only()) throw SqliteFault(SQLITE_READONLY, "opening: the file cannot be written");
  if (is_new) fill_new_file(db, path, is_own);
  set_journal(db, path, options.journal, is_new);
  migrate(db, migrations());
  db.checkpoint_on_close(true);
  return db;
}

// For reading: first as a live database, which needs the WAL's shared memory, else as an unchanging file.
//
// A live one is opened so that it could be written, though nothing is: a connection that may only read makes the -wal
// and -shm files where there are none, and leaves them behind. This one removes them when it closes, by SQLite's own
// protocol, hence not under a writer beside it.
//
// Where several machines may write, a log is never opened: its shared memory is of one machine.
Connection open_readable(const std::string& path, const OpenOptions& options) {
  const auto opened = [&](const char* parameters, int access) {
    Connection db = Connection::open(uri_of(path, parameters), access | SQLITE_OPEN_URI, options.busy_timeout);
    refuse_cut_file(db, path);
    if ((access & SQLITE_OPEN_READWRITE) != 0 && asks_for_log(db) && shared_by_machines(path, options.journal)) {
      throw SqliteFault(SQLITE_CANTOPEN, "its write-ahead log is of another machine");
    }
    db.execute("PRAGMA query_only = ON");
    check_pages(db);
    take_log_away_on_close(db, path);
    const bool is_empty = db.within_time([&] { return inspect(db, path); });
    if (is_empty || db.integer_of("PRAGMA user_version") < oldest_readable_version) {
      throw Unsuitable{{Trouble::read_only,
                        fmt::format("{} is empty or of an older Kiln, and cannot be brought up to date", path),
                        "`kiln tune --db FILE` brings it up to date, where the file can be written"}};
    }
    return db;
  };
  try {
    return opened("mode=rw", SQLITE_OPEN_READWRITE);
  } catch (const SqliteFault& fault) {
    const int code = fault.primary();
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY && code != SQLITE_IOERR) throw;
  }
  if (file_size(path + "-wal") > 0) {
    throw Unsuitable{{Trouble::read_only, fmt::format("{} has a write-ahead log that cannot be read here", path),
                      "open the database once where it can be written, which folds the log into it"}};
  }
  return opened("mode=ro&immutable=1", SQLITE_OPEN_READONLY);
}

// Whether a file that a write failed on may still be read.
bool readable_after(const SqliteFault& fault) {
  switch (fault.primary()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
    case SQLITE_FULL:
      return true;
    case SQLITE_IOERR:
      return fault.code() != SQLITE_IOERR_READ && fault.code() != SQLITE_IOERR_SHORT_READ &&
             fault.code() != SQLITE_IOERR_CORRUPTFS;
    default:
      return false;
  }
}

}  // namespace

Problem problem_of(const SqliteFault& fault, const std::string& path) {
  const auto problem = [&](Trouble trouble, const char* state, const char* hint) {
    return Problem{trouble, fmt::format("{} {}: {}", path, state, fault.what()), hint, readable_after(fault)};
  };
  switch (fault.primary()) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return problem(Trouble::locked, "is locked by another process",
                     "end that process, or give each its own database");
    case SQLITE_FULL:
      return problem(Trouble::full, "cannot grow", "free space on its disk, or move it");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return problem(Trouble::read_only, "cannot be written", "make file and folder writable, or name another file");
    case SQLITE_CORRUPT:
      return problem(Trouble::corrupt, "is damaged", "restore or remove it; it was left as it is");
    case SQLITE_INTERRUPT:
      return problem(Trouble::corrupt, "takes longer to read than its size explains",
                     "restore or remove it; it was left as it is");
    case SQLITE_NOTADB:
      return problem(Trouble::not_a_database, "is not a database", "name another file; this one was left as it is");
    case SQLITE_IOERR:
      return problem(Trouble::unreachable, "cannot be read or written", "check the disk and its quota");
    default:
      return problem(
          Trouble::unreachable, "cannot be opened",
          "check that the path names a file that you can read, or one that is to be made in a folder you can write");
  }
}

OpenedFile open_file(const std::string& path, const OpenOptions& options) {
  OpenedFile result;
  std::error_code unreadable;
  const auto found = std::filesystem::status(path, unreadable).type();
  if (const std::string_view kind = kind_of_no_file(found); !kind.empty()) {
    result.problem = Problem{Trouble::unreachable, fmt::format("{} is {}, not a database", path, kind),
                             "name a file, or one that is to be made", false};
    return result;
  }
  // Nobody has tuned yet: there is nothing to read, and nothing is wrong.
  if (found == std::filesystem::file_type::not_found && options.mode == OpenMode::read_only) return result;
  try {
    if (options.mode == OpenMode::read_write) {
      try {
        result.db = open_writable(path, options);
        result.writable = true;
        return result;
      } catch (const SqliteFault& fault) {
        result.problem = problem_of(fault, path);
        if (!result.problem->readable || result.problem->trouble == Trouble::locked) return result;
      }
    }
    result.db = open_readable(path, options);
  } catch (const SqliteFault& fault) {
    // If writing failed already, that is the better explanation.
    if (!result.problem) result.problem = problem_of(fault, path);
  } catch (const Unsuitable& unsuitable) {
    // A file that is empty because the disk is full is not said to be of an older Kiln.
    const bool failed_to_make =
        result.problem && (result.problem->trouble == Trouble::full || result.problem->trouble == Trouble::unreachable);
    if (!failed_to_make || unsuitable.problem.trouble != Trouble::read_only) result.problem = unsuitable.problem;
  }
  if (result.db && result.problem && result.problem->trouble == Trouble::unreachable) {
    result.problem = problem_of(SqliteFault(SQLITE_READONLY, "its folder cannot be written"), path);
  }
  return result;
}

}  // namespace kiln::cache
