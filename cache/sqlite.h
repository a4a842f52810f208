// SQLite in RAII: connections, cached statements, transactions. Every failing call throws SqliteFault.
#pragma once

#include <sqlite3.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>

namespace kiln::cache {

/// The longest text or blob that is read or written: a front of as many entries as a request may have is below it.
inline constexpr int max_value_bytes = 64 << 20;

/// SQLite's result code (extended) and text. Never leaves the room: Database turns it into an Announcement.
class SqliteFault : public std::runtime_error {
 public:
  SqliteFault(int code, const std::string& what) : std::runtime_error(what), code_(code) {}
  int code() const { return code_; }
  int primary() const { return code_ & 0xff; }

 private:
  int code_;
};

class Connection;

/// A running statement. Rows are read between step() calls; destruction makes the statement ready for its next use.
class Query {
 public:
  /// Binds `values` to ?1, ?2, ...
  template <class... Values>
  Query(Connection& connection, sqlite3* db, sqlite3_stmt* statement, const Values&... values)
      : connection_(connection), db_(db), statement_(statement) {
    int index = 0;
    (bind(++index, values), ...);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
  ~Query();

  /// True: a row is there. False: done. SqliteFault(SQLITE_CORRUPT) beyond as many rows as the file has room for.
  bool step();
  /// For statements without rows.
  void run() {
    while (step()) {
    }
  }

  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_, column); }
  double real(int column) const { return sqlite3_column_double(statement_, column); }
  bool null(int column) const { return sqlite3_column_type(statement_, column) == SQLITE_NULL; }
  /// Valid until the next step().
  std::string_view text(int column) const;
  std::string_view blob(int column) const;

  void bind(int index, std::int64_t value);
  void bind(int index, int value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, bool value) { bind(index, static_cast<std::int64_t>(value)); }
  void bind(int index, double value);
  void bind(int index, std::string_view value);
  void bind(int index, const std::string& value) { bind(index, std::string_view(value)); }
  void bind(int index, const char* value) { bind(index, std::string_view(value)); }
  void bind_blob(int index, std::string_view value);
  void bind_null(int index);

 private:
  void refuse_endless();

  Connection& connection_;
  sqlite3* db_;
  sqlite3_stmt* statement_;
  std::int64_t rows_ = 0;
  std::int64_t most_rows_ = 4096;  // before the file's size is asked for
};

/// One connection. Not thread-safe: its owner holds a lock. The file's content is not trusted: its schema can call
/// nothing, no value is longer than max_value_bytes, and views and triggers do not run.
class Connection {
 public:
  /// `flags`: SQLITE_OPEN_*. Without a mutex of its own, with extended result codes.
  static Connection open(const std::string& name, int flags, std::chrono::milliseconds busy_timeout);

  /// Runs statements that have no parameters and whose rows do not matter.
  void execute(const std::string& sql);

  /// A statement, prepared once per text, with `values` bound to ?1, ?2, ...
  template <class... Values>
  Query query(const char* sql, const Values&... values) {
    return Query(*this, handle_.get(), prepared(sql), values...);
  }

  /// Reads as `body` does, for as long as an honest file of this size takes at the most; beyond that a statement ends
  /// with SqliteFault(SQLITE_INTERRUPT).
  template <class Body>
  auto within_time(const Body& body) {
    const Deadline deadline(*this);
    return body();
  }

  /// First column of the first row; the statement must give one.
  std::int64_t integer_of(const char* sql);
  std::string text_of(const char* sql);

  /// How long to wait for other connections from now on.
  void wait_for_locks(std::chrono::milliseconds wait);
  /// Bytes of all pages, as the file stands for this connection.
  std::int64_t size();
  /// The first bytes of the file, at most `limit`.
  std::string first_bytes(std::size_t limit);
  /// Whether the file is no longer at the path that it was opened at.
  bool has_moved();
  bool read_only() const { return sqlite3_db_readonly(handle_.get(), "main") == 1; }
  /// Whether the last connection to close folds the WAL into the file and removes it with its shared memory.
  void checkpoint_on_close(bool on);
  std::int64_t last_insert_id() const { return sqlite3_last_insert_rowid(handle_.get()); }
  /// Rows that the last INSERT, UPDATE or DELETE changed.
  std::int64_t changes() const { return sqlite3_changes(handle_.get()); }
  bool in_transaction() const { return sqlite3_get_autocommit(handle_.get()) == 0; }

 private:
  class Deadline {
   public:
    explicit Deadline(Connection& connection);
    Deadline(const Deadline&) = delete;
    Deadline& operator=(const Deadline&) = delete;
    ~Deadline();

   private:
    Connection& connection_;
    std::chrono::steady_clock::time_point end_;
  };
  struct Close {
    void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
  };
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  explicit Connection(sqlite3* handle) : handle_(handle) {}
  sqlite3_stmt* prepared(const char* sql);

  std::unique_ptr<sqlite3, Close> handle_;
  std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Finalize>> statements_;  // finalized before the close
};

/// Use of a Transaction.
enum class Access {
  read,   ///< BEGIN: all reads see one state of the file.
  write,  ///< BEGIN IMMEDIATE: the wait for other writers happens here and not in the middle.
};

/// Rolls back unless committed.
class Transaction {
 public:
  Transaction(Connection& db, Access access);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection& db_;
};

}  // namespace kiln::cache
