#include "schema.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "record_rows.h"

namespace kiln::cache {
namespace {

// Version 1. docs/cache-format.md explains each table; keep them in step.
constexpr const char* version_1 = R"sql(
CREATE TABLE devices(
  id INTEGER PRIMARY KEY,
  device TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  cc_major INTEGER NOT NULL,
  cc_minor INTEGER NOT NULL,
  sms INTEGER NOT NULL,
  emulated INTEGER NOT NULL CHECK(emulated IN (0, 1))
) STRICT;

CREATE TABLE requests(
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE algorithms(
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  digest TEXT NOT NULL,
  UNIQUE(name, digest)
) STRICT;

CREATE TABLE records(
  id INTEGER PRIMARY KEY,
  device_id INTEGER NOT NULL REFERENCES devices(id),
  request_id INTEGER NOT NULL REFERENCES requests(id),
  algorithm_id INTEGER NOT NULL REFERENCES algorithms(id),
  config TEXT NOT NULL,
  outcome TEXT NOT NULL,
  kind TEXT NOT NULL CHECK(kind IN ('measured', 'modelled', 'predicted')),
  seconds REAL NOT NULL CHECK(seconds >= 0),
  spread REAL NOT NULL CHECK(spread >= 0),
  samples BLOB NOT NULL,
  verdict TEXT NOT NULL,
  workspace INTEGER NOT NULL CHECK(workspace >= 0),
  deterministic INTEGER NOT NULL CHECK(deterministic IN (0, 1)),
  registers INTEGER NOT NULL,
  spill INTEGER NOT NULL,
  shared INTEGER NOT NULL,
  driver TEXT NOT NULL,
  nvrtc TEXT NOT NULL,
  kiln TEXT NOT NULL,
  source_digest TEXT NOT NULL,
  error TEXT NOT NULL,
  session TEXT NOT NULL,
  created INTEGER NOT NULL,
  usable INTEGER NOT NULL CHECK(usable IN (0, 1)),
  UNIQUE(device_id, request_id, algorithm_id, config)
) STRICT;
CREATE INDEX records_by_session ON records(session) WHERE session <> '';

CREATE TABLE sessions(
  id TEXT PRIMARY KEY NOT NULL,
  device TEXT NOT NULL,
  plan TEXT NOT NULL,
  kiln TEXT NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER
) STRICT;

CREATE TABLE quarantine(
  source_digest TEXT NOT NULL,
  device TEXT NOT NULL,
  driver TEXT NOT NULL,
  nvrtc TEXT NOT NULL,
  reason TEXT NOT NULL,
  created INTEGER NOT NULL,
  PRIMARY KEY(source_digest, device, driver, nvrtc)
) STRICT, WITHOUT ROWID;

CREATE TABLE fronts(
  device_id INTEGER NOT NULL REFERENCES devices(id),
  request_id INTEGER NOT NULL REFERENCES requests(id),
  entries BLOB NOT NULL,
  PRIMARY KEY(device_id, request_id)
) STRICT, WITHOUT ROWID;

CREATE VIEW candidates AS
  SELECT devices.device, requests.key AS request, algorithms.name AS algorithm, records.config, records.outcome,
         records.kind, records.seconds * 1e6 AS microseconds, records.spread * 1e6 AS spread_microseconds,
         records.workspace, records.deterministic, records.usable, records.verdict, records.error,
         algorithms.digest AS algorithm_digest,
         strftime('%Y-%m-%dT%H:%M:%SZ', records.created / 1000, 'unixepoch') AS created
  FROM records
  JOIN devices ON devices.id = records.device_id
  JOIN requests ON requests.id = records.request_id
  JOIN algorithms ON algorithms.id = records.algorithm_id;
)sql";

// Version 3: what devices were measured to reach.
constexpr const char* version_3 = R"sql(
CREATE TABLE calibrations(
  device TEXT PRIMARY KEY NOT NULL,
  figures TEXT NOT NULL,
  created INTEGER NOT NULL,
  checksum INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
)sql";

// Version 4: what must not be used is found without reading every record.
void index_barred(Connection& db) {
  db.execute(fmt::format("CREATE INDEX records_that_bar ON records(device_id, request_id) WHERE {}", records_that_bar));
}

// Version 5: what tuning runs were asked to do and how far they are.
constexpr const char* version_5 = R"sql(
CREATE TABLE runs(
  session TEXT PRIMARY KEY NOT NULL,
  workload TEXT NOT NULL,
  part TEXT NOT NULL,
  host TEXT NOT NULL,
  seen INTEGER NOT NULL,
  seconds_left REAL
) STRICT, WITHOUT ROWID;

CREATE TABLE run_layers(
  session TEXT NOT NULL,
  request TEXT NOT NULL,
  state TEXT NOT NULL CHECK(state IN ('waiting', 'running', 'done', 'failed', 'left')),
  error TEXT NOT NULL,
  PRIMARY KEY(session, request)
) STRICT, WITHOUT ROWID;
)sql";

constexpr std::array<Migration, 5> all_migrations = {
    Migration{1, [](Connection& db) { db.execute(version_1); }}, Migration{2, seal},  // checksums
    Migration{3, [](Connection& db) { db.execute(version_3); }}, Migration{4, index_barred},
    Migration{5, [](Connection& db) { db.execute(version_5); }},
};

// A row of sqlite_schema.
struct SchemaObject {
  std::string type, name, table, sql;

  auto place() const { return std::tie(type, name); }
  friend bool operator==(const SchemaObject&, const SchemaObject&) = default;
};
using Schema = std::vector<SchemaObject>;  // in the order of their places

// Migrations of several versions of SQLite leave other blanks.
std::string without_blanks(std::string_view sql) {
  const auto is_blank = [](char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; };
  const auto is_mark = [](char c) { return c == '(' || c == ')' || c == ','; };
  std::string out;
  for (std::size_t i = 0; i < sql.size(); ++i) {
    if (!is_blank(sql[i])) {
      out += sql[i];
      continue;
    }
    while (i + 1 < sql.size() && is_blank(sql[i + 1])) ++i;
    const bool beside_mark = out.empty() || is_mark(out.back()) || i + 1 == sql.size() || is_mark(sql[i + 1]);
    if (!beside_mark) out += ' ';
  }
  return out;
}

Schema schema_in(Connection& db) {
  Schema schema;
  Query query = db.query("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name");
  while (query.step()) {
    schema.push_back({std::string(query.text(0)), std::string(query.text(1)), std::string(query.text(2)),
                      without_blanks(query.text(3))});
  }
  return schema;
}

// The schema of each version, made by the migrations: nothing is written down twice.
std::vector<Schema> make_schemas() {
  Connection db =
      Connection::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, std::chrono::milliseconds(0));
  std::vector<Schema> schemas(1);
  for (const Migration& step : migrations()) {
    step.apply(db);
    schemas.push_back(schema_in(db));
  }
  return schemas;
}

}  // namespace

std::optional<std::string> foreign_part(Connection& db, std::int64_t version) {
  static const std::vector<Schema> schemas = make_schemas();
  if (version < 0) return fmt::format("there is no schema {}", version);
  const Schema found = schema_in(db);
  const Schema& wanted = schemas.at(static_cast<std::size_t>(version));
  const auto of = [](const SchemaObject& object) { return fmt::format("the {} {}", object.type, object.name); };
  const auto [theirs, ours] = std::mismatch(found.begin(), found.end(), wanted.begin(), wanted.end());
  if (theirs == found.end() && ours == wanted.end()) return std::nullopt;
  if (theirs == found.end() || (ours != wanted.end() && ours->place() < theirs->place())) {
    return of(*ours) + " is missing";
  }
  if (ours == wanted.end() || theirs->place() < ours->place()) return of(*theirs) + " is not Kiln's";
  return of(*theirs) + " is not defined as Kiln defines it";
}

std::span<const Migration> migrations() {
  return all_migrations;
}

int schema_version() {
  return all_migrations.back().to;
}

void migrate(Connection& db, std::span<const Migration> steps) {
  if (db.integer_of("PRAGMA user_version") >= steps.back().to) return;
  Transaction transaction(db, Access::write);
  const std::int64_t version = db.integer_of("PRAGMA user_version");  // another process may have been first
  for (const Migration& step : steps) {
    if (step.to > version) step.apply(db);
  }
  if (version < steps.back().to) {
    db.execute(fmt::format("PRAGMA application_id = {}", application_id));
    db.execute(fmt::format("PRAGMA user_version = {}", steps.back().to));
  }
  transaction.commit();
}

}  // namespace kiln::cache
