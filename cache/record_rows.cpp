#include "record_rows.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "checksum.h"
#include "kiln/base/error.h"

namespace kiln::cache {
namespace {

std::vector<double> samples_of(std::string_view bytes) {
  std::vector<double> samples(bytes.size() / sizeof(double));
  if (!samples.empty()) std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(double));
  return samples;
}

// The columns of select_records() after the record's own.
constexpr int checksum_column = 23;
constexpr int algorithm_row_column = 24;

Record read_record(const Query& row) {
  int column = 0;
  const auto text = [&] { return std::string(row.text(column++)); };
  const auto integer = [&] { return row.integer(column++); };
  Record r;
  r.request = text();
  r.device = text();
  r.algorithm = text();
  r.algorithm_digest = text();
  r.config = text();
  r.outcome = text();
  r.kind = parse_time_kind(text()).value_or(TimeKind::predicted);  // the table's CHECK admits no other names
  r.seconds = row.real(column++);
  r.spread = row.real(column++);
  r.samples = samples_of(row.blob(column++));
  r.check = text();
  r.workspace_bytes = integer();
  r.deterministic = integer() != 0;
  r.resources = {integer(), integer(), integer()};
  r.driver_version = text();
  r.nvrtc_version = text();
  r.kiln_version = text();
  r.source_digest = text();
  r.error = text();
  r.session = text();
  r.created_ms = integer();
  return r;
}

DeviceEntry read_device(const Query& row) {
  return {std::string(row.text(0)),         std::string(row.text(1)),         static_cast<int>(row.integer(2)),
          static_cast<int>(row.integer(3)), static_cast<int>(row.integer(4)), row.integer(5) != 0};
}

// A checksum proves no origin: whoever writes a row can write one.
template <class Value>
bool is_valid(const Value& value) {
  try {
    validate(value);
    return true;
  } catch (const Error&) {
    return false;
  }
}

struct FrontRow {
  std::int64_t device = 0;
  std::int64_t request = 0;
  FrontOwner owner;
};

void seal_devices(Connection& db) {
  std::vector<std::pair<std::int64_t, std::int64_t>> checksums;
  {
    Query query = db.query("SELECT device, name, cc_major, cc_minor, sms, emulated, id FROM devices");
    while (query.step()) checksums.emplace_back(query.integer(6), checksum_of(read_device(query)));
  }
  for (const auto& [row, checksum] : checksums) {
    db.query("UPDATE devices SET checksum = ?2 WHERE id = ?1", row, checksum).run();
  }
}

void seal_records(Connection& db) {
  std::vector<std::int64_t> rows;
  {
    Query query = db.query("SELECT id FROM records");
    while (query.step()) rows.push_back(query.integer(0));
  }
  const std::string one = select_records("records.id = ?1");
  for (const std::int64_t row : rows) {
    std::int64_t checksum = 0;
    {
      Query query = db.query(one.c_str(), row);
      if (!query.step()) throw_damaged();
      checksum = checksum_of(read_record(query));
    }
    db.query("UPDATE records SET checksum = ?2 WHERE id = ?1", row, checksum).run();
  }
}

void remake_fronts(Connection& db) {
  std::vector<FrontRow> fronts;
  {
    Query query = db.query(
        "SELECT DISTINCT device_id, request_id, device, key FROM records JOIN devices ON devices.id = device_id JOIN "
        "requests ON requests.id = request_id");
    while (query.step()) {
      fronts.push_back({query.integer(0), query.integer(1), {std::string(query.text(2)), std::string(query.text(3))}});
    }
  }
  for (const FrontRow& front : fronts) write_front(db, front.device, front.request, front.owner);
}

}  // namespace

void throw_damaged() {
  throw SqliteFault(SQLITE_CORRUPT, "rows are missing, or are not as they were written");
}

std::string select_records(std::string_view where) {
  return fmt::format(
      "SELECT requests.key, devices.device, algorithms.name, algorithms.digest, config, outcome, kind, seconds, "
      "spread, "
      "samples, verdict, workspace, deterministic, registers, spill, shared, driver, nvrtc, kiln, source_digest, "
      "error, "
      "session, created, records.checksum, algorithm_id FROM records JOIN devices ON devices.id = device_id JOIN "
      "requests ON requests.id = request_id "
      "JOIN algorithms ON algorithms.id = algorithm_id WHERE {}",
      where);
}

std::string_view bytes_of(const std::vector<double>& samples) {
  static_assert(std::endian::native == std::endian::little, "samples are stored little-endian");
  return {reinterpret_cast<const char*>(samples.data()), samples.size() * sizeof(double)};
}

std::optional<Record> record_of(const Query& row) {
  Record record = read_record(row);
  if (checksum_of(record) != row.integer(checksum_column) || !is_valid(record)) return std::nullopt;
  return record;
}

std::optional<DeviceEntry> device_of(const Query& row) {
  DeviceEntry device = read_device(row);
  if (checksum_of(device) != row.integer(6) || !is_valid(device)) return std::nullopt;
  return device;
}

AlgorithmRows read_algorithms(Connection& db) {
  AlgorithmRows rows;
  Query query = db.query("SELECT id, name, digest FROM algorithms");
  while (query.step()) {
    const std::int64_t row = query.integer(0);
    rows[row] = {row, std::string(query.text(1)), std::string(query.text(2))};
  }
  return rows;
}

void write_front(Connection& db, std::int64_t device_row, std::int64_t request_row, const FrontOwner& owner) {
  AlgorithmRows algorithms;
  std::vector<std::pair<Record, const AlgorithmVersion*>> candidates;
  {
    const std::string sql = select_records("device_id = ?1 AND request_id = ?2 AND usable");
    Query query = db.query(sql.c_str(), device_row, request_row);
    while (query.step()) {
      std::optional<Record> record = record_of(query);
      if (!record) continue;  // whoever reads it says so
      const std::int64_t row = query.integer(algorithm_row_column);
      const auto [algorithm, fresh] = algorithms.try_emplace(row);
      if (fresh) algorithm->second = {row, record->algorithm, record->algorithm_digest};
      candidates.emplace_back(std::move(*record), &algorithm->second);
    }
  }
  std::vector<FrontEntry> entries;
  for (const auto& [record, algorithm] : candidates) entries.push_back(entry_of(record, *algorithm));
  store_front(db, device_row, request_row, owner, std::move(entries));
}

void store_front(Connection& db, std::int64_t device_row, std::int64_t request_row, const FrontOwner& owner,
                 std::vector<FrontEntry> entries) {
  reduce_to_front(entries);
  if (entries.empty()) {
    db.query("DELETE FROM fronts WHERE device_id = ?1 AND request_id = ?2", device_row, request_row).run();
    return;
  }
  Query write = db.query("INSERT OR REPLACE INTO fronts(device_id, request_id, entries) VALUES (?1, ?2, ?3)",
                         device_row, request_row);
  write.bind_blob(3, encode_front(hash_key(owner.request), owner.device, entries));
  write.run();
}

void seal(Connection& db) {
  db.execute(
      "ALTER TABLE devices ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0; "
      "ALTER TABLE records ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0");
  seal_devices(db);
  seal_records(db);
  remake_fronts(db);
}

}  // namespace kiln::cache
