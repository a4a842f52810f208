// Store: devices, sessions, quarantine and calibrations. store_runs.cpp and store_records.cpp have the rest.
#include "store.h"

#include "checksum.h"
#include "record_rows.h"
#include "schema.h"

namespace kiln::cache {

Store Store::in_memory() {
  Connection db =
      Connection::open(":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, std::chrono::milliseconds(0));
  migrate(db, migrations());
  return Store(std::move(db));
}

void Store::leave_out(std::string_view what) {
  if (damage_.empty()) damage_ = what;
}

void Store::put_device(const DeviceEntry& d) {
  db_.query(
         "INSERT INTO devices(device, name, cc_major, cc_minor, sms, emulated, checksum) VALUES (?1, ?2, ?3, ?4, ?5, "
         "?6, ?7) ON CONFLICT(device) DO UPDATE SET name = ?2, cc_major = ?3, cc_minor = ?4, sms = ?5, emulated = ?6, "
         "checksum = ?7",
         d.id, d.name, d.cc_major, d.cc_minor, d.sms, d.emulated, checksum_of(d))
      .run();
}

void Store::merge_device(const DeviceEntry& device) {
  for (const DeviceEntry& known : devices()) {
    if (known.id == device.id && !supersedes(device, known)) return;
  }
  put_device(device);
}

std::vector<std::pair<std::int64_t, DeviceEntry>> Store::devices_by_row() {
  std::vector<std::pair<std::int64_t, DeviceEntry>> result;
  Query query =
      db_.query("SELECT device, name, cc_major, cc_minor, sms, emulated, checksum, id FROM devices ORDER BY device");
  while (query.step()) {
    if (std::optional<DeviceEntry> device = device_of(query)) {
      result.emplace_back(query.integer(7), std::move(*device));
    } else {
      leave_out("a device");
    }
  }
  return result;
}

std::vector<DeviceEntry> Store::devices() {
  std::vector<DeviceEntry> result;
  for (auto& [row, device] : devices_by_row()) result.push_back(std::move(device));
  return result;
}

void Store::put_session(const Session& s) {
  Query query = db_.query(
      "INSERT INTO sessions(id, device, plan, kiln, started, ended) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT(id) DO "
      "UPDATE SET device = ?2, plan = ?3, kiln = ?4, started = ?5, ended = ?6",
      s.id, s.device, s.plan, s.kiln_version, s.started_ms);
  if (s.ended_ms) {
    query.bind(6, *s.ended_ms);
  } else {
    query.bind_null(6);
  }
  query.run();
}

void Store::end_session(std::string_view id, std::int64_t ended_ms) {
  db_.query("UPDATE sessions SET ended = ?2 WHERE id = ?1", id, ended_ms).run();
}

std::vector<Session> Store::sessions() {
  std::vector<Session> result;
  Query query = db_.query("SELECT id, device, plan, kiln, started, ended FROM sessions ORDER BY started, id");
  while (query.step()) {
    Session s = {std::string(query.text(0)), std::string(query.text(1)), std::string(query.text(2)),
                 std::string(query.text(3)), query.integer(4),           std::nullopt};
    if (!query.null(5)) s.ended_ms = query.integer(5);
    result.push_back(std::move(s));
  }
  return result;
}

void Store::put_quarantine(const Quarantine& q) {
  db_.query(
         "INSERT OR REPLACE INTO quarantine(source_digest, device, driver, nvrtc, reason, created) VALUES (?1, ?2, ?3, "
         "?4, "
         "?5, ?6)",
         q.source_digest, q.device, q.driver_version, q.nvrtc_version, q.reason, q.created_ms)
      .run();
}

void Store::delete_quarantine(const Quarantine& q) {
  db_.query("DELETE FROM quarantine WHERE source_digest = ?1 AND device = ?2 AND driver = ?3 AND nvrtc = ?4",
            q.source_digest, q.device, q.driver_version, q.nvrtc_version)
      .run();
}

std::optional<Quarantine> Store::find_quarantine(std::string_view source_digest, std::string_view device,
                                                 std::string_view driver_version, std::string_view nvrtc_version) {
  Query query = db_.query(
      "SELECT reason, created FROM quarantine WHERE source_digest = ?1 AND device = ?2 AND driver = ?3 AND nvrtc = ?4",
      source_digest, device, driver_version, nvrtc_version);
  if (!query.step()) return std::nullopt;
  return Quarantine{std::string(source_digest), std::string(device),        std::string(driver_version),
                    std::string(nvrtc_version), std::string(query.text(0)), query.integer(1)};
}

void Store::put_calibration(const DeviceCalibration& c) {
  db_.query("INSERT OR REPLACE INTO calibrations(device, figures, created, checksum) VALUES (?1, ?2, ?3, ?4)", c.device,
            c.figures, c.created_ms, checksum_of(c))
      .run();
}

std::vector<DeviceCalibration> Store::calibrations() {
  std::vector<DeviceCalibration> result;
  Query query = db_.query("SELECT device, figures, created, checksum FROM calibrations ORDER BY device");
  while (query.step()) {
    result.push_back({std::string(query.text(0)), std::string(query.text(1)), query.integer(2)});
    if (checksum_of(result.back()) == query.integer(3)) continue;
    leave_out("a calibration");
    result.pop_back();
  }
  return result;
}

std::vector<Quarantine> Store::quarantine() {
  std::vector<Quarantine> result;
  Query query = db_.query(
      "SELECT source_digest, device, driver, nvrtc, reason, created FROM quarantine ORDER BY source_digest, device, "
      "driver, "
      "nvrtc");
  while (query.step()) {
    result.push_back({std::string(query.text(0)), std::string(query.text(1)), std::string(query.text(2)),
                      std::string(query.text(3)), std::string(query.text(4)), query.integer(5)});
  }
  return result;
}

}  // namespace kiln::cache
