#include "sqlite.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <system_error>
#include <utility>

namespace kiln::cache {
namespace {

void check(sqlite3* db, int code, std::string_view action) {
  if (code == SQLITE_OK || code == SQLITE_ROW || code == SQLITE_DONE) return;
  const int extended = db != nullptr ? sqlite3_extended_errcode(db) : code;
  std::string text = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  const int error = db != nullptr && (extended & 0xff) == SQLITE_CANTOPEN ? sqlite3_system_errno(db) : 0;
  if (error != 0) text += ": " + std::system_category().message(error);
  throw SqliteFault(extended, fmt::format("{}: {} (SQLite code {})", action, text, extended));
}

// SQLite binds a null pointer as NULL, where an empty text or blob is meant.
const char* not_null(std::string_view value) {
  return value.data() != nullptr ? value.data() : "";
}

// A file may come from anybody.
void distrust(sqlite3* db) {
  constexpr std::pair<int, int> switches[] = {{SQLITE_DBCONFIG_DEFENSIVE, 1},   {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
                                              {SQLITE_DBCONFIG_ENABLE_VIEW, 0}, {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
                                              {SQLITE_DBCONFIG_DQS_DDL, 0},     {SQLITE_DBCONFIG_DQS_DML, 0}};
  for (const auto& [name, value] : switches) {
    check(db, sqlite3_db_config(db, name, value, nullptr), "configuring");
  }
  constexpr std::pair<int, int> limits[] = {{SQLITE_LIMIT_LENGTH, max_value_bytes}, {SQLITE_LIMIT_SQL_LENGTH, 1 << 20},
                                            {SQLITE_LIMIT_VDBE_OP, 25'000},         {SQLITE_LIMIT_COLUMN, 100},
                                            {SQLITE_LIMIT_EXPR_DEPTH, 100},         {SQLITE_LIMIT_TRIGGER_DEPTH, 1}};
  for (const auto& [name, value] : limits) sqlite3_limit(db, name, value);
}

// The size that the connection knows: asking for it would read the file.
std::chrono::milliseconds patience(sqlite3* db) {
  constexpr std::int64_t bytes_per_ms = 2000;
  sqlite3_file* file = nullptr;
  sqlite3_int64 size = 0;
  if (sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK || file->pMethods == nullptr ||
      file->pMethods->xFileSize(file, &size) != SQLITE_OK) {
    size = 0;
  }
  return std::chrono::seconds(5) + std::chrono::milliseconds(size / bytes_per_ms);
}

}  // namespace

Query::~Query() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

bool Query::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    if (++rows_ > most_rows_) refuse_endless();
    return true;
  }
  check(db_, code, "running a statement");
  return false;
}

// Pages that refer to each other in a circle give rows for ever. Each row of a table takes some bytes of the file.
void Query::refuse_endless() {
  constexpr std::int64_t least_row = 4;
  most_rows_ = std::max(most_rows_, connection_.size() / least_row);
  if (rows_ > most_rows_) throw SqliteFault(SQLITE_CORRUPT, "it gives more rows than it has room for");
}

std::string_view Query::text(int column) const {
  const unsigned char* data = sqlite3_column_text(statement_, column);
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

std::string_view Query::blob(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Query::bind(int index, std::int64_t value) {
  check(db_, sqlite3_bind_int64(statement_, index, value), "binding an integer");
}

void Query::bind(int index, double value) {
  check(db_, sqlite3_bind_double(statement_, index, value), "binding a number");
}

void Query::bind(int index, std::string_view value) {
  const int code = sqlite3_bind_text64(statement_, index, not_null(value), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  check(db_, code, "binding a text");
}

void Query::bind_blob(int index, std::string_view value) {
  check(db_, sqlite3_bind_blob64(statement_, index, not_null(value), value.size(), SQLITE_TRANSIENT), "binding a blob");
}

void Query::bind_null(int index) {
  check(db_, sqlite3_bind_null(statement_, index), "binding a null");
}

Connection Connection::open(const std::string& name, int flags, std::chrono::milliseconds busy_timeout) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(name.c_str(), &handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  Connection result(handle);  // SQLite hands out a handle even when it fails, and wants it closed
  check(handle, code, "opening");
  result.wait_for_locks(busy_timeout);
  distrust(handle);
  return result;
}

void Connection::wait_for_locks(std::chrono::milliseconds wait) {
  sqlite3_busy_timeout(handle_.get(), static_cast<int>(wait.count()));
}

std::int64_t Connection::size() {
  return integer_of("PRAGMA page_count") * integer_of("PRAGMA page_size");
}

// A file may be made to be read for ever. An honest one is read at some MB a second at the least, over any network.
Connection::Deadline::Deadline(Connection& connection)
    : connection_(connection), end_(std::chrono::steady_clock::now() + patience(connection.handle_.get())) {
  constexpr int steps_between = 20000;  // of SQLite's virtual machine: some 100 us
  const auto is_over = [](void* end) {
    return std::chrono::steady_clock::now() > *static_cast<const std::chrono::steady_clock::time_point*>(end) ? 1 : 0;
  };
  sqlite3_progress_handler(connection.handle_.get(), steps_between, is_over, &end_);
}

Connection::Deadline::~Deadline() {
  sqlite3_progress_handler(connection_.handle_.get(), 0, nullptr, nullptr);
}

void Connection::execute(const std::string& sql) {
  check(handle_.get(), sqlite3_exec(handle_.get(), sql.c_str(), nullptr, nullptr, nullptr), sql.substr(0, 40));
}

sqlite3_stmt* Connection::prepared(const char* sql) {
  auto& slot = statements_[sql];
  if (!slot) {
    sqlite3_stmt* statement = nullptr;
    const int code = sqlite3_prepare_v3(handle_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr);
    check(handle_.get(), code, "preparing a statement");
    slot.reset(statement);
  }
  return slot.get();
}

std::int64_t Connection::integer_of(const char* sql) {
  Query row = query(sql);
  row.step();
  return row.integer(0);
}

std::string Connection::text_of(const char* sql) {
  Query row = query(sql);
  row.step();
  return std::string(row.text(0));
}

std::string Connection::first_bytes(std::size_t limit) {
  sqlite3_file* file = nullptr;
  check(handle_.get(), sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_FILE_POINTER, &file), "reading");
  sqlite3_int64 size = 0;
  check(nullptr, file->pMethods->xFileSize(file, &size), "reading");
  std::string bytes(std::min(limit, static_cast<std::size_t>(size)), '\0');
  check(nullptr, file->pMethods->xRead(file, bytes.data(), static_cast<int>(bytes.size()), 0), "reading");
  return bytes;
}

bool Connection::has_moved() {
  int moved = 0;
  check(handle_.get(), sqlite3_file_control(handle_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved), "opening");
  return moved != 0;
}

void Connection::checkpoint_on_close(bool on) {
  const int off = on ? 0 : 1;
  check(handle_.get(), sqlite3_db_config(handle_.get(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, off, nullptr), "configuring");
}

Transaction::Transaction(Connection& db, Access access) : db_(db) {
  db_.execute(access == Access::write ? "BEGIN IMMEDIATE" : "BEGIN");
}

Transaction::~Transaction() {
  if (!db_.in_transaction()) return;  // committed, or rolled back by SQLite itself (disk full)
  try {
    db_.execute("ROLLBACK");
  } catch (const SqliteFault&) {
    // The fault that brought us here is on its way to the caller; the journal undoes the rest when the file is opened
    // next.
  }
}

void Transaction::commit() {
  db_.execute("COMMIT");
}

}  // namespace kiln::cache
