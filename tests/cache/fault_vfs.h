// A disk that fails on purpose: a SQLite VFS between the library and the real one.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace kiln::cache::test {

/// While it lives, every SQLite file of this process that is opened goes through it. Operations that change a file
/// (write, truncate, sync, delete), reads and requests for locks are counted from 0, each for itself; at number `at` of
/// them the fault sets in.
/// For one thread. Files must be closed before it goes.
class FaultVfs {
 public:
  enum class Fault {
    none,
    killed,      ///< SIGKILL, in the middle of the write if it is one.
    power_cut,   ///< Writes that were not flushed since are lost from some point on, then SIGKILL.
    full,        ///< Every write from there on fails with SQLITE_FULL, after half of it.
    error,       ///< Every change from there on fails with SQLITE_IOERR.
    one_error,   ///< Only that one does.
    unreadable,  ///< Every read from there on fails.
    no_locks,    ///< Every lock from there on fails, as on a network file system whose lock service is gone.
    one_lock,    ///< Only that one does.
  };
  struct Plan {
    Fault fault = Fault::none;
    std::int64_t at = std::numeric_limits<std::int64_t>::max();
    std::uint64_t seed = 0;  ///< Seed of how much a power cut takes.
  };

  explicit FaultVfs(const Plan& plan);
  ~FaultVfs();
  FaultVfs(const FaultVfs&) = delete;
  FaultVfs& operator=(const FaultVfs&) = delete;

  std::int64_t changes() const { return changes_; }
  std::int64_t reads() const { return reads_; }
  std::int64_t locks() const { return locks_; }

 private:
  friend struct FaultFile;

  struct Undo {
    std::int64_t offset = 0;
    std::string bytes;      // what was there
    std::int64_t size = 0;  // of the file before
  };

  // Answer to an operation; kills the process where that is the plan.
  int change(sqlite3_file* real, const std::string& path, bool is_write, const void* data, int bytes,
             std::int64_t offset);
  int read();
  int lock(int failure);
  void remember(sqlite3_file* real, const std::string& path, int bytes, std::int64_t offset);
  [[noreturn]] void cut_power() const;

  Plan plan_;
  sqlite3_vfs* below_;
  sqlite3_vfs vfs_;
  std::int64_t changes_ = 0;
  std::int64_t reads_ = 0;
  std::int64_t locks_ = 0;
  std::map<std::string, std::vector<Undo>> unflushed_;
};

}  // namespace kiln::cache::test
