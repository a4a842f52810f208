// Store: records, and the fronts that follow from them.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "checksum.h"
#include "kiln/cache/pack.h"
#include "record_rows.h"
#include "store.h"

namespace kiln::cache {
namespace {

// Whether an entry may be counted on now; predictions apart, since a taken time always comes first.
std::vector<FrontEntry> current_entries(std::span<const FrontEntry> entries, const IsCurrent& is_current,
                                        bool predicted) {
  std::vector<FrontEntry> result;
  for (const FrontEntry& entry : entries) {
    if ((entry.kind == TimeKind::predicted) != predicted) continue;
    if (!is_current || is_current(entry.algorithm->name, entry.algorithm->digest)) result.push_back(entry);
  }
  return result;
}

// The records at the beginning that are of one request on one device.
std::span<const Record> first_group(std::span<const Record> records) {
  const Record& first = records.front();
  const auto end = std::find_if(records.begin(), records.end(), [&](const Record& r) {
    return r.request != first.request || r.device != first.device;
  });
  return records.first(static_cast<std::size_t>(end - records.begin()));
}

// A prediction against what was tried; and against what bars its variant, all that is no time and no new bar, for which
// a machine short of memory is enough.
bool says_less(const Record& now, const Record& stored) {
  if (stored.kind != TimeKind::predicted && now.kind == TimeKind::predicted) return true;
  return bars(stored.outcome) && !bars(now.outcome) && !usable(now);
}

}  // namespace

// --- Writing
// ---------------------------------------------------------------------------------------------------------------

struct Store::Rows {
  explicit Rows(Connection& connection) : db(connection) {}

  std::int64_t device(const std::string& id) {
    std::int64_t& row = devices[id];
    if (row == 0) {
      Query query = db.query("SELECT id FROM devices WHERE device = ?1", id);
      if (!query.step()) throw_damaged();  // the caller made sure that it was stored
      row = query.integer(0);
    }
    return row;
  }

  std::int64_t request(const std::string& key) {
    std::int64_t& row = requests[key];
    if (row == 0) {
      db.query("INSERT INTO requests(key) VALUES (?1) ON CONFLICT DO NOTHING", key).run();
      Query query = db.query("SELECT id FROM requests WHERE key = ?1", key);
      query.step();
      row = query.integer(0);
    }
    return row;
  }

  std::int64_t algorithm(const std::string& name, const std::string& digest) {
    std::int64_t& row = algorithms[{name, digest}];
    if (row == 0) {
      db.query("INSERT INTO algorithms(name, digest) VALUES (?1, ?2) ON CONFLICT DO NOTHING", name, digest).run();
      Query query = db.query("SELECT id FROM algorithms WHERE name = ?1 AND digest = ?2", name, digest);
      query.step();
      row = query.integer(0);
    }
    return row;
  }

  Connection& db;
  std::unordered_map<std::string, std::int64_t> devices;
  std::unordered_map<std::string, std::int64_t> requests;
  std::map<std::pair<std::string, std::string>, std::int64_t> algorithms;
  std::map<std::pair<std::int64_t, std::int64_t>, FrontOwner> touched;  // by the rows of device and request
};

PutCounts Store::put(std::span<const DeviceEntry> devices, std::span<const Record> records, OnConflict on_conflict) {
  Transaction transaction(db_, Access::write);
  PutCounts counts;
  Rows rows(db_);
  for (const DeviceEntry& device : devices) merge_device(device);
  for (std::size_t i = 0; i < records.size();) {
    const std::span<const Record> group = first_group(records.subspan(i));
    if (!put_new(group, rows, counts)) {
      for (const Record& record : group) put_one(record, on_conflict, rows, counts);
    }
    i += group.size();
  }
  for (const auto& [pair, owner] : rows.touched) write_front(db_, pair.first, pair.second, owner);
  transaction.commit();
  return counts;
}

// Most of what is merged is of requests that are not stored yet: then there is nothing to find, and the front follows
// from the records at hand. False if anything is stored of their device and request, or they do not come in order.
bool Store::put_new(std::span<const Record> group, Rows& rows, PutCounts& counts) {
  const std::int64_t device = rows.device(group.front().device), request = rows.request(group.front().request);
  if (std::adjacent_find(group.begin(), group.end(), std::not_fn(listed_before)) != group.end()) return false;
  {
    Query stored = db_.query("SELECT 1 FROM records WHERE device_id = ?1 AND request_id = ?2", device, request);
    if (stored.step()) return false;
  }
  AlgorithmRows algorithms;
  std::vector<FrontEntry> entries;
  for (const Record& record : group) {
    write_record(record, rows);
    const std::int64_t row = rows.algorithm(record.algorithm, record.algorithm_digest);
    AlgorithmVersion& version = algorithms[row];
    version = {row, record.algorithm, record.algorithm_digest};
    if (usable(record)) entries.push_back(entry_of(record, version));
  }
  store_front(db_, device, request, {group.front().device, group.front().request}, std::move(entries));
  counts.added += static_cast<std::int64_t>(group.size());
  return true;
}

void Store::put_one(const Record& record, OnConflict on_conflict, Rows& rows, PutCounts& counts) {
  const std::optional<Record> stored = find(record);
  if (stored) {
    const bool stays = on_conflict == OnConflict::merge ? *stored == record || supersedes(*stored, record)
                                                        : says_less(record, *stored);
    if (stays) {
      ++counts.kept;
      return;
    }
  }
  write_record(record, rows);
  rows.touched.try_emplace({rows.device(record.device), rows.request(record.request)},
                           FrontOwner{record.device, record.request});
  ++(stored ? counts.replaced : counts.added);
}

void Store::write_record(const Record& r, Rows& rows) {
  const std::int64_t device = rows.device(r.device);
  const std::int64_t request = rows.request(r.request);
  Query query = db_.query(
      "INSERT OR REPLACE INTO records(device_id, request_id, algorithm_id, config, outcome, kind, seconds, spread, "
      "verdict, "
      "workspace, deterministic, registers, spill, shared, driver, nvrtc, kiln, source_digest, error, session, "
      "created, "
      "usable, samples, checksum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, "
      "?18, ?19, "
      "?20, ?21, ?22, ?23, ?24)",
      device, request, rows.algorithm(r.algorithm, r.algorithm_digest), r.config, r.outcome, to_string(r.kind),
      r.seconds, r.spread, r.check, r.workspace_bytes, r.deterministic, r.resources.registers, r.resources.spill_bytes,
      r.resources.shared_bytes, r.driver_version, r.nvrtc_version, r.kiln_version, r.source_digest, r.error, r.session,
      r.created_ms, usable(r));
  query.bind_blob(23, bytes_of(r.samples));
  query.bind(24, checksum_of(r));
  query.run();
}

// --- Reading
// ---------------------------------------------------------------------------------------------------------------

std::vector<Record> Store::all_rows(Query query) {
  std::vector<Record> records;
  while (query.step()) {
    if (std::optional<Record> record = record_of(query)) {
      records.push_back(std::move(*record));
    } else {
      leave_out("a record");
    }
  }
  std::sort(records.begin(), records.end(), listed_before);
  return records;
}

std::optional<Record> Store::find(const Record& identity) {
  const std::string sql = select_records(
      "requests.key = ?1 AND devices.device = ?2 AND algorithms.name = ?3 AND algorithms.digest = ?4 AND config = ?5");
  Query query = db_.query(sql.c_str(), identity.request, identity.device, identity.algorithm, identity.algorithm_digest,
                          identity.config);
  if (!query.step()) return std::nullopt;
  std::optional<Record> record = record_of(query);
  if (!record) leave_out("a record");
  return record;
}

std::vector<Record> Store::records(std::string_view request, std::string_view device) {
  const std::string sql = select_records("requests.key = ?1 AND devices.device = ?2");
  std::vector<Record> result = all_rows(db_.query(sql.c_str(), request, device));
  // An index may be damaged, too, and name rows of others.
  const auto others =
      std::erase_if(result, [&](const Record& r) { return r.request != request || r.device != device; });
  if (others > 0) leave_out("an index");
  return result;
}

std::vector<Record> Store::records_of_session(std::string_view session) {
  const std::string sql = select_records("session = ?1 AND session <> ''");
  return all_rows(db_.query(sql.c_str(), session));
}

std::vector<OwnTime> Store::own_times(std::string_view request, std::string_view algorithm) {
  const Transaction snapshot(db_, Access::read);
  static const std::string sql =
      select_records("requests.key = ?1 AND devices.device = ?2 AND algorithms.name = ?3 AND usable AND session <> ''");
  std::vector<OwnTime> result;
  for (const DeviceEntry& device : devices()) {
    for (Record& r : all_rows(db_.query(sql.c_str(), request, device.id, algorithm))) {
      if (r.kind == TimeKind::predicted || !usable(r)) continue;
      result.push_back({device, std::move(r.algorithm_digest), std::move(r.config)});
    }
  }
  return result;
}

std::vector<std::string> Store::request_keys(std::string_view device) {
  Query query = db_.query(
      "SELECT key FROM requests WHERE id IN (SELECT DISTINCT request_id FROM records JOIN devices ON devices.id = "
      "device_id "
      "WHERE device = ?1) ORDER BY key",
      device);
  std::vector<std::string> keys;
  while (query.step()) keys.emplace_back(query.text(0));
  return keys;
}

std::vector<RequestSummary> Store::requests(std::string_view device, const IsCurrent& is_current) {
  const Transaction snapshot(db_, Access::read);
  const AlgorithmRows versions = read_algorithms(db_);
  std::vector<RequestSummary> result;
  Query query = db_.query(
      "SELECT requests.key, algorithm_id, COUNT(*), SUM(usable) FROM records JOIN devices ON devices.id = device_id "
      "JOIN "
      "requests ON requests.id = request_id WHERE device = ?1 GROUP BY requests.key, algorithm_id ORDER BY "
      "requests.key",
      device);
  while (query.step()) {
    if (result.empty() || result.back().request != query.text(0)) result.emplace_back().request = query.text(0);
    RequestSummary& summary = result.back();
    summary.records += query.integer(2);
    summary.usable += query.integer(3);
    const auto version = versions.find(query.integer(1));
    if (version == versions.end()) {
      leave_out("an algorithm");
      continue;
    }
    if (is_current && !is_current(version->second.name, version->second.digest)) summary.stale += query.integer(2);
  }
  for (RequestSummary& summary : result) summary.best = best_record(summary.request, device, is_current, versions);
  return result;
}

std::optional<Record> Store::best_record(const std::string& request, std::string_view device,
                                         const IsCurrent& is_current, const AlgorithmRows& versions) {
  Record identity;
  {
    Query query = db_.query(
        "SELECT entries FROM fronts JOIN devices ON devices.id = device_id JOIN requests ON requests.id = request_id "
        "WHERE "
        "requests.key = ?1 AND devices.device = ?2",
        request, device);
    if (!query.step()) return std::nullopt;
    KeyHash key;
    std::vector<FrontEntry> entries;
    if (!decode_front(query.blob(0), device, versions, key, entries)) {
      leave_out("a front");
      const std::vector<Record> all = records(request, device);
      const Record* const best = winner_among(all, is_current);
      return best == nullptr ? std::nullopt : std::optional(*best);
    }
    std::vector<FrontEntry> eligible = current_entries(entries, is_current, false);
    if (eligible.empty()) eligible = current_entries(entries, is_current, true);
    const FrontEntry* best = choose(eligible, Filter{});
    if (best == nullptr) return std::nullopt;
    identity.request = request;
    identity.device = device;
    identity.algorithm = best->algorithm->name;
    identity.algorithm_digest = best->algorithm->digest;
    identity.config = best->config;
  }
  return find(identity);
}

void Store::visit_fronts(FrontVisitor& visitor, std::string_view request, const Keep& keep) {
  const Transaction snapshot(db_, Access::read);
  RowIds rows;
  {
    Query query = db_.query("SELECT id FROM requests WHERE key = ?1", request);
    if (!query.step()) return;
    rows.request = query.integer(0);
  }
  const KeyHash key = hash_key(request);
  for (const auto& [row, device] : devices_by_row()) {
    rows.device = row;
    if (!visitor.wants(device) || !keep(device, key)) continue;
    visit_front(visitor, device, key, rows);
    visit_barred(visitor, device, key, rows);
  }
}

void Store::visit_front(FrontVisitor& visitor, const DeviceEntry& device, KeyHash key, const RowIds& rows) {
  if (visitor.wants_all()) {
    const std::vector<Record> all = records_of_rows(rows, device, key);
    const RecordFront front = entries_of(all, {});
    if (!front.entries.empty()) visitor.front(device, key, front.entries);
    return;
  }
  Query query =
      db_.query("SELECT entries FROM fronts WHERE device_id = ?1 AND request_id = ?2", rows.device, rows.request);
  if (!query.step()) return;
  KeyHash stored;
  std::vector<FrontEntry> entries;
  // The algorithms are as they were when they were read last: another process may have added to them since.
  if (!decode_front(query.blob(0), device.id, algorithms_, stored, entries)) {
    algorithms_ = read_algorithms(db_);
    if (!decode_front(query.blob(0), device.id, algorithms_, stored, entries)) stored = {};
  }
  if (stored == key) {
    visitor.front(device, key, entries);
    return;
  }
  leave_out("a front");  // it holds nothing that the records do not hold
  const std::vector<Record> all = records_of_rows(rows, device, key);
  const RecordFront front = front_of(all, {});
  if (!front.entries.empty()) visitor.front(device, key, front.entries);
}

std::vector<Record> Store::records_of_rows(const RowIds& rows, const DeviceEntry& device, KeyHash key) {
  static const std::string sql =
      select_records(fmt::format("device_id = ?1 AND request_id = ?2 LIMIT {}", max_request_records));
  std::vector<Record> all = all_rows(db_.query(sql.c_str(), rows.device, rows.request));
  std::erase_if(all, [&](const Record& r) { return hash_key(r.request) != key || r.device != device.id; });
  return all;
}

void Store::visit_barred(FrontVisitor& visitor, const DeviceEntry& device, KeyHash key, const RowIds& rows) {
  const std::string sql = select_records(
      fmt::format("{} AND device_id = ?1 AND request_id = ?2 LIMIT {}", records_that_bar, max_request_records));
  Query query = db_.query(sql.c_str(), rows.device, rows.request);
  while (query.step()) {
    const std::optional<Record> record = record_of(query);
    if (!record || hash_key(record->request) != key || record->device != device.id) {
      leave_out("a record");
      continue;
    }
    const AlgorithmVersion version{0, record->algorithm, record->algorithm_digest};
    visitor.barred(device, key, {&version, record->config, record->outcome, record->source_digest, is_own(*record)});
  }
}

}  // namespace kiln::cache
