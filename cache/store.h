// The tables of one SQLite connection as Kiln's values. Throws SqliteFault for SQLite's faults and Error for wrong
// arguments; Database decides what a fault means.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "front.h"
#include "kiln/cache/database.h"
#include "kiln/cache/record.h"
#include "sqlite.h"

namespace kiln::cache {

/// Behaviour of put() towards a record whose identity is taken.
enum class OnConflict {
  replace,  ///< The new one stays, unless it is a prediction against what was tried, or says less than one that bars.
  merge,    ///< `supersedes` decides.
};

struct PutCounts {
  std::int64_t added = 0;
  std::int64_t replaced = 0;
  std::int64_t kept = 0;
};

class Store {
 public:
  /// `db` has the current schema.
  explicit Store(Connection db) : db_(std::move(db)) {}
  static Store in_memory();

  Connection& connection() { return db_; }

  /// Damage that was met and left out since the last call, in words: rows that are damaged, or that Kiln does not
  /// write.
  std::string take_damage() { return std::exchange(damage_, {}); }

  void put_device(const DeviceEntry& device);
  /// Stores `devices` (merge_device) and `records` in one transaction; on any exception nothing has changed.
  /// Every record is valid, of a device that has been stored, and of a kind that the device gives.
  PutCounts put(std::span<const DeviceEntry> devices, std::span<const Record> records, OnConflict on_conflict);

  /// In one transaction, which is rolled back for a dry run.
  PruneResult prune(const PruneOptions& options);
  /// Rewrites the file without its free pages.
  void compact();

  void put_session(const Session& session);
  void end_session(std::string_view id, std::int64_t ended_ms);
  std::vector<Session> sessions();

  void begin_run(const Run& run, std::span<const std::string> requests);
  void report_run(std::string_view session, std::int64_t seen_ms, std::optional<double> seconds_left,
                  std::span<const RunLayer> changed);
  std::vector<RunProgress> runs();

  void put_quarantine(const Quarantine& entry);
  std::optional<Quarantine> find_quarantine(std::string_view source_digest, std::string_view device,
                                            std::string_view driver_version, std::string_view nvrtc_version);
  std::vector<Quarantine> quarantine();
  void delete_quarantine(const Quarantine& entry);

  void put_calibration(const DeviceCalibration& calibration);
  std::vector<DeviceCalibration> calibrations();

  std::vector<DeviceEntry> devices();
  std::vector<Record> records(std::string_view request, std::string_view device);
  std::vector<Record> records_of_session(std::string_view session);
  std::vector<std::string> request_keys(std::string_view device);
  std::vector<RequestSummary> requests(std::string_view device, const IsCurrent& is_current);

  std::vector<OwnTime> own_times(std::string_view request, std::string_view algorithm);
  /// `keep`: false skips a front and what is barred, by device and key.
  using Keep = std::function<bool(const DeviceEntry&, KeyHash)>;
  void visit_fronts(FrontVisitor& visitor, std::string_view request, const Keep& keep);

 private:
  struct Rows;  // row ids known within one transaction
  struct RowIds {
    std::int64_t device = 0;
    std::int64_t request = 0;
  };

  std::vector<std::pair<std::int64_t, DeviceEntry>> devices_by_row();  ///< By id.
  /// Stores the device's entry; of two entries with one id the greater stays, so that merging is commutative.
  void merge_device(const DeviceEntry& device);
  void visit_front(FrontVisitor& visitor, const DeviceEntry& device, KeyHash key, const RowIds& rows);
  void visit_barred(FrontVisitor& visitor, const DeviceEntry& device, KeyHash key, const RowIds& rows);
  bool put_new(std::span<const Record> group, Rows& rows, PutCounts& counts);
  void put_one(const Record& record, OnConflict on_conflict, Rows& rows, PutCounts& counts);
  std::int64_t prune_request(const DeviceEntry& device, const std::string& request, const PruneOptions& options);
  std::int64_t delete_where(const char* sql);
  std::optional<Record> find(const Record& identity);
  void write_record(const Record& record, Rows& rows);
  std::optional<Record> best_record(const std::string& request, std::string_view device, const IsCurrent& is_current,
                                    const AlgorithmRows& algorithms);

  /// Goes on without a row, and keeps the first one's name for take_damage().
  void leave_out(std::string_view what);
  std::vector<Record> all_rows(Query query);
  std::vector<Record> records_of_rows(const RowIds& rows, const DeviceEntry& device, KeyHash key);

  Connection db_;
  std::string damage_;
  AlgorithmRows algorithms_;  // as far as visit_fronts() has needed them
};

}  // namespace kiln::cache
