// Store: taking records out.
#include <algorithm>

#include "record_rows.h"
#include "store.h"

namespace kiln::cache {
namespace {

// The records of one request on one device that go.
std::vector<Record> condemned(std::vector<Record> records, const PruneOptions& options) {
  std::vector<bool> kept(records.size(), true);
  if (options.losers) {
    std::fill(kept.begin(), kept.end(), false);
    const RecordFront front = front_of(records, options.is_current);
    for (const FrontEntry& entry : front.entries) kept[static_cast<std::size_t>(entry.algorithm->row)] = true;
    for (std::size_t i = 0; i < records.size(); ++i) kept[i] = kept[i] || bars(records[i].outcome);
  }
  std::vector<Record> result;
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Record& r = records[i];
    const bool stale = options.is_current && !options.is_current(r.algorithm, r.algorithm_digest);
    const bool old = r.created_ms < options.before_ms && !bars(r.outcome);  // age mends no kernel
    if (!kept[i] || stale || old) result.push_back(std::move(records[i]));
  }
  return result;
}

}  // namespace

std::int64_t Store::delete_where(const char* sql) {
  db_.query(sql).run();
  return db_.changes();
}

std::int64_t Store::prune_request(const DeviceEntry& device, const std::string& request, const PruneOptions& options) {
  const std::vector<Record> doomed = condemned(records(request, device.id), options);
  if (doomed.empty()) return 0;
  std::int64_t device_row = 0, request_row = 0;
  {
    Query rows = db_.query("SELECT devices.id, requests.id FROM devices, requests WHERE device = ?1 AND key = ?2",
                           device.id, request);
    if (!rows.step()) throw_damaged();
    device_row = rows.integer(0);
    request_row = rows.integer(1);
  }
  for (const Record& r : doomed) {
    db_.query(
           "DELETE FROM records WHERE device_id = ?1 AND request_id = ?2 AND config = ?3 AND algorithm_id = (SELECT id "
           "FROM algorithms WHERE name = ?4 AND digest = ?5)",
           device_row, request_row, r.config, r.algorithm, r.algorithm_digest)
        .run();
  }
  write_front(db_, device_row, request_row, {device.id, request});
  return static_cast<std::int64_t>(doomed.size());
}

PruneResult Store::prune(const PruneOptions& options) {
  Transaction transaction(db_, Access::write);
  PruneResult result;
  for (const DeviceEntry& device : devices()) {
    const auto& wanted = options.devices;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), device.id) == wanted.end()) continue;
    for (const std::string& request : request_keys(device.id)) {
      result.records += prune_request(device, request, options);
    }
  }
  result.requests = delete_where("DELETE FROM requests WHERE id NOT IN (SELECT request_id FROM records)");
  delete_where("DELETE FROM algorithms WHERE id NOT IN (SELECT algorithm_id FROM records)");
  result.sessions =
      delete_where("DELETE FROM sessions WHERE ended IS NOT NULL AND id NOT IN (SELECT session FROM records)");
  delete_where("DELETE FROM runs WHERE session NOT IN (SELECT id FROM sessions)");
  delete_where("DELETE FROM run_layers WHERE session NOT IN (SELECT session FROM runs)");
  db_.query("DELETE FROM quarantine WHERE created < ?1", options.before_ms).run();
  result.quarantine = db_.changes();
  if (!options.dry_run) transaction.commit();
  return result;
}

void Store::compact() {
  db_.execute("VACUUM");
}

}  // namespace kiln::cache
