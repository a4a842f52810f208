// The tuning database: one SQLite file that can never fail the application.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kiln/cache/record.h"

namespace kiln::cache {

class FrontVisitor;
struct Pack;

enum class OpenMode {
  read_write,  ///< Creates the file and its missing parent folders.
  read_only,   ///< Never writes the file; what is inserted lives in memory for this process. No file counts as empty.
};

/// How SQLite journals. See docs/cache-format.md, "Durability".
enum class Journal {
  automatic,  ///< WAL on a local file system, rollback journal on a network file system.
  wal,
  rollback,
};

/// Why a database does not do what was asked of it.
enum class Trouble {
  locked,          ///< Another process held the lock beyond the busy timeout.
  full,            ///< No space, or a size limit, met by a write.
  read_only,       ///< File, folder or medium cannot be written.
  corrupt,         ///< SQLite found damage; or rows are not as Kiln writes them, and only those are left out.
  not_a_database,  ///< The file is not SQLite's, or SQLite's but not Kiln's, also in a part of its schema.
  newer_schema,    ///< Written by a newer Kiln.
  unreachable,     ///< It cannot be opened, read or written for another reason; `what` says which.
};

std::string_view to_string(Trouble trouble);

/// Told once per Database when it stops being what was asked for, and once when it is found to have damaged rows.
struct Announcement {
  Trouble trouble = Trouble::unreachable;
  std::string path;
  std::string cause;  ///< The fault.
  std::string what;   ///< The fault, and how Kiln goes on.
  std::string hint;   ///< Advice to the user.

  /// "<what> (<hint>)".
  std::string text() const;
};

/// Called from the thread that met the trouble, with no lock held. Must not throw.
using Announce = std::function<void(const Announcement&)>;

struct OpenOptions {
  OpenMode mode = OpenMode::read_write;
  std::chrono::milliseconds busy_timeout{10'000};  ///< How long to wait for other processes' writes.
  Journal journal = Journal::automatic;
};

/// Where records live now.
enum class Storage {
  file,             ///< Reads and writes go to the file.
  file_and_memory,  ///< The file is read; writes of this process live in memory (read-only, full, or locked).
  memory,           ///< Nothing is read from or written to a file.
};

/// Whether an acknowledged write outlives the process.
enum class Kept { durably, in_memory };

/// True if `digest` is the library's digest of `algorithm` now. An empty function means: all are current.
using IsCurrent = std::function<bool(std::string_view algorithm, std::string_view digest)>;

/// One tuning run. A session that was killed has no end and can be resumed.
struct Session {
  std::string id;      ///< Unique text, made by the caller.
  std::string device;  ///< DeviceEntry::id.
  std::string plan;    ///< Digest of its requests and options: equal plans can resume each other.
  std::string kiln_version;
  std::int64_t started_ms = 0;
  std::optional<std::int64_t> ended_ms;

  friend bool operator==(const Session&, const Session&) = default;
};

/// Task of a tuning run, and the time of its last sign of life: for whoever looks at the database meanwhile.
struct Run {
  std::string session;                 ///< Session::id.
  std::string workload;                ///< The tuned requests, as the user named them.
  std::string part;                    ///< "2/8"; empty: all of it.
  std::string host;                    ///< The machine and process: "node7:1234".
  std::int64_t seen_ms = 0;            ///< When it last said that it is at work, by that machine's clock.
  std::optional<double> seconds_left;  ///< As it estimated then.

  friend bool operator==(const Run&, const Run&) = default;
};

enum class LayerState {
  waiting,
  running,  ///< Begun.
  done,
  failed,  ///< Nothing of it can be used.
  left,    ///< The run ended before.
};

/// "waiting", "running", "done", "failed", "left".
std::string_view to_string(LayerState state);

struct RunLayer {
  std::string request;
  LayerState state = LayerState::waiting;
  std::string error;  ///< Why it failed.

  friend bool operator==(const RunLayer&, const RunLayer&) = default;
};

/// How far a run is.
struct RunProgress {
  Session session;
  Run run;
  std::map<LayerState, std::int64_t> layers;  ///< How many are in each state.
  std::vector<RunLayer> failed;               ///< By request.
};

/// A time that a run on a database took of a variant: is_own().
struct OwnTime {
  DeviceEntry device;
  std::string algorithm_digest;
  std::string config;
};

/// A source that must not run again on this device with these versions.
struct Quarantine {
  std::string source_digest;
  std::string device;
  std::string driver_version;
  std::string nvrtc_version;
  std::string reason;
  std::int64_t created_ms = 0;

  friend bool operator==(const Quarantine&, const Quarantine&) = default;
};

/// Rates that a device was measured to reach, for predictions: a line of text that Kiln's generator reads and writes.
struct DeviceCalibration {
  std::string device;  ///< DeviceEntry::id.
  std::string figures;
  std::int64_t created_ms = 0;

  friend bool operator==(const DeviceCalibration&, const DeviceCalibration&) = default;
};

/// Stored records of one request on one device, in numbers.
struct RequestSummary {
  std::string request;
  std::int64_t records = 0;    ///< All candidates, failed ones too.
  std::int64_t usable = 0;     ///< Records that could win, stale ones included.
  std::int64_t stale = 0;      ///< Records whose algorithm digest is not current.
  std::optional<Record> best;  ///< The winner without a workspace limit, current, by the rule of winners.h.
};

/// Counts of a merge.
struct MergeResult {
  std::int64_t added = 0;
  std::int64_t replaced = 0;  ///< The incoming record supersedes the stored one.
  std::int64_t kept = 0;      ///< The stored record is equal or supersedes the incoming one.
  std::int64_t refused_records = 0;
  std::vector<std::string> refused;  ///< Refused records of a database, "REQUEST: ALGORITHM CONFIG: reason": the first
                                     ///< 1000.
  Kept storage = Kept::durably;
};

/// The generator's opinion of what a pack or another database says: a reason to refuse, or nullopt.
struct PackValidator {
  /// Called once per request line, of a database once per device and request.
  std::function<std::optional<std::string>(std::string_view request)> request;
  /// Called once per record whose device and request were accepted, after request() of its request.
  std::function<std::optional<std::string>(const DeviceEntry& device, const Record& record)> record;
};

struct MergeOptions {
  PackValidator validator;
  /// The other database is the user's as well: its runs count as runs on this one (is_own()), and its quarantine comes
  /// along. Else what it says is another's word, as a pack's is.
  bool own = false;
};

/// Selection of the records that prune() takes out. Each condition on records is enough by itself.
struct PruneOptions {
  IsCurrent is_current;  ///< Where given, records that it denies go: stale ones.
  /// For each request on a device, all records go that Winners could choose under no Filter, but for those that bar
  /// their variant.
  bool losers = false;
  /// Records and quarantine entries made before this (UTC, ms since 1970) go, but for those that bar their variant.
  std::int64_t before_ms = 0;
  std::vector<std::string> devices;  ///< Ids: only their records are looked at; empty means all devices.
  bool dry_run = false;              ///< Only counts.
};

struct PruneResult {
  std::int64_t records = 0;
  std::int64_t requests = 0;  ///< Requests that nothing is known of any more.
  std::int64_t sessions = 0;  ///< Ended sessions without records.
  std::int64_t quarantine = 0;
  Kept storage = Kept::durably;
};

/// The database. Every member may be called from any thread; calls take turns. Several processes may use one file.
///
/// Faults of the file never throw: the first is announced, and the object goes on in memory (class Storage), where the
/// fault is another process' lock until that is gone. A wrong argument throws Error(invalid_argument), before anything
/// is written. The file of a corrupt, foreign or newer database is left as it is. Both processes may go on with it
/// after fork(): SQLite does not permit to carry a connection across, so the file is closed before and opened again by
/// whoever uses it next. A fork() waits for calls under way.
class Database {
 public:
  /// Opens `path`; never throws for anything that the file or the file system does. An empty path is an error of the
  /// caller: use in_memory().
  static Database open(const std::string& path, const OpenOptions& options = {}, Announce announce = {});
  /// A database without a file.
  static Database in_memory();

  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;
  ~Database();

  /// Another handle to the same open database; it is closed with the last one.
  Database share() const { return Database(impl_); }

  const std::string& path() const;  ///< Empty if in memory from the start.
  Storage storage() const;

  /// Where another process' lock has kept writes in memory: waits up to `wait` for it, and stores them in the file, in
  /// their order. Every later write tries that as well, once the busy timeout has passed, and so does the end of the
  /// last handle. Returns durably if writes go to the file now.
  Kept keep(std::chrono::milliseconds wait);
  /// Whether writes are kept in memory because of such a lock, and not for a reason that stays.
  bool waits_for_lock() const;
  /// Stores in `other`, a file, what this process wrote and could not keep, whatever the reason. False if `other`
  /// cannot keep it either.
  bool write_unkept(Database& other);

  // --- Writing -------------------------------------------------------------------------------------------------------

  /// Makes the device known, or corrects what is known of it. Records refer to it by id.
  Kept put_device(const DeviceEntry& device);

  /// Stores `records` in one transaction: all or none. On return with Kept::durably they survive the death of this
  /// process and, if the disk honours flushes, a power failure. A record takes the place of an older one of the same
  /// identity; only a prediction never displaces what was tried, and only a time or another bar one that bars(). Every
  /// record's device must be known; kind and device must agree (measured: real, modelled: emulated).
  Kept insert(std::span<const Record> records);

  /// As insert(), but `supersedes` decides what stays, so that merging is commutative, associative and idempotent.
  MergeResult merge(const Pack& pack);
  /// Merges all devices and records of `other` that may stand in a pack and that `options` accept; its sessions stay
  /// there.
  MergeResult merge(const Database& other, const MergeOptions& options = {});

  /// Takes records out, in one transaction, then gives the space that they took back to the file system. Records that
  /// live in a file which cannot be written stay.
  PruneResult prune(const PruneOptions& options);

  Kept begin_session(const Session& session);
  Kept end_session(std::string_view id, std::int64_t ended_ms);
  /// The latest session of this device and plan that never ended.
  std::optional<Session> unfinished_session(std::string_view device, std::string_view plan) const;
  std::vector<Session> sessions() const;  ///< By start, then id.

  /// Notes what a session was asked to do; all of `requests` wait. Removes the notes of an earlier run of the same
  /// workload and part on the same device, unless it is of the same process: one may drive several equal devices.
  Kept begin_run(const Run& run, std::span<const std::string> requests);
  /// Notes that the run was at work at `seen_ms`, what it estimates, and the layers that have changed since.
  Kept report_run(std::string_view session, std::int64_t seen_ms, std::optional<double> seconds_left,
                  std::span<const RunLayer> changed);
  /// Runs in the file itself, by start of the session; nothing in a file of an older schema.
  std::vector<RunProgress> runs() const;

  Kept add_quarantine(const Quarantine& entry);
  std::optional<Quarantine> find_quarantine(std::string_view source_digest, std::string_view device,
                                            std::string_view driver_version, std::string_view nvrtc_version) const;
  std::vector<Quarantine> quarantine() const;
  /// Lets the source of `entry` run again on its device with its driver and NVRTC; nothing if it is not in quarantine.
  Kept end_quarantine(const Quarantine& entry);

  /// In place of an earlier one of the device. Stays with this database: neither packs nor merges carry it.
  Kept put_calibration(const DeviceCalibration& calibration);
  std::optional<DeviceCalibration> calibration(std::string_view device) const;

  // --- Reading -------------------------------------------------------------------------------------------------------

  std::vector<DeviceEntry> devices() const;  ///< By id.
  /// Requests with anything stored on a device, in their order.
  std::vector<std::string> request_keys(std::string_view device) const;
  /// All candidates of a request on a device, by algorithm, config, digest (listed_before).
  std::vector<Record> records(std::string_view request, std::string_view device) const;
  /// Records that a session has stored, in the same order: a resumed session skips these.
  std::vector<Record> records_of_session(std::string_view session) const;
  /// The requests of a device, by key.
  std::vector<RequestSummary> requests(std::string_view device, const IsCurrent& is_current = {}) const;

  /// For Winners: what could win for `request`, from the index that insert() maintains, and what is barred, as of one
  /// moment. Nothing stays locked when it returns. An announcement that it causes waits for deliver_announcement(), so
  /// that the caller may hold a lock.
  void visit_fronts(FrontVisitor& visitor, std::string_view request) const;
  /// Likewise: what runs on this database have timed of one algorithm, so that it has passed their check.
  std::vector<OwnTime> own_times(std::string_view request, std::string_view algorithm) const;
  /// Likewise: the digests of the sources in quarantine on a device, with any driver and NVRTC.
  std::set<std::string, std::less<>> quarantined(std::string_view device) const;
  void deliver_announcement() const;

 private:
  class Impl;
  explicit Database(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace kiln::cache
