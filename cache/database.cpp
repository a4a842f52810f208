#include "kiln/cache/database.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <memory>
#include <utility>

#include "field_text.h"
#include "kiln/base/error.h"
#include "kiln/base/printable.h"
#include "kiln/cache/pack.h"
#include "layered_store.h"
#include "pack_line.h"

namespace kiln::cache {
namespace {

Record storable(const Record& record) {
  Record clean = with_clean_texts(record);
  validate(clean);
  return clean;
}

void add_to(MergeResult& result, const PutCounts& counts, Kept kept) {
  result.added += counts.added;
  result.replaced += counts.replaced;
  result.kept += counts.kept;
  if (kept == Kept::in_memory) result.storage = Kept::in_memory;
}

// Order in which one of two quarantines stays where two shards know of the same: the later one, then the greater text.
bool newer(const Quarantine& a, const Quarantine& b) {
  return std::tie(a.created_ms, a.reason) > std::tie(b.created_ms, b.reason);
}

// The records of a database that are let in, in batches of one transaction each.
class BatchReader {
 public:
  BatchReader(LayeredStore& from, const std::vector<DeviceEntry>& devices, const MergeOptions& options)
      : from_(from), options_(options) {
    for (const DeviceEntry& device : devices) {
      for (std::string& request : from.request_keys(device.id)) wanted_.emplace_back(std::move(request), &device);
    }
  }

  /// Empty at the end.
  std::vector<Record> next() {
    constexpr std::size_t batch = 16384;
    std::vector<Record> records;
    for (; next_ < wanted_.size() && records.size() < batch; ++next_) {
      const auto& [request, device] = wanted_[next_];
      take(request, *device, records);
    }
    return records;
  }

  void tell(MergeResult& result) && {
    result.refused_records = refused_records_;
    result.refused = std::move(refused_);
  }

 private:
  void take(const std::string& request, const DeviceEntry& device, std::vector<Record>& records) {
    std::optional<std::string> of_request;
    if (options_.validator.request) of_request = options_.validator.request(request);
    for (Record& record : from_.records(request, device.id)) {
      std::optional<std::string> reason = of_request ? of_request : refusal_of(device, record);
      if (reason) {
        refuse(record, *reason);
        continue;
      }
      if (!options_.own) record.session.clear();
      records.push_back(std::move(record));
    }
  }

  // As of a pack's line; what is read of a database is valid() already.
  std::optional<std::string> refusal_of(const DeviceEntry& device, const Record& record) const {
    try {
      require_possible(record.kind, record.outcome, record.seconds);
      require_kind(record.kind, device);
    } catch (const PackFault& fault) {
      return fault.reason;
    }
    return options_.validator.record ? options_.validator.record(device, record) : std::nullopt;
  }

  void refuse(const Record& record, const std::string& reason) {
    if (++refused_records_ > static_cast<std::int64_t>(max_listed_refusals)) return;
    refused_.push_back(fmt::format("{}: {} {}: {}", record.request, record.algorithm, record.config, reason));
  }

  LayeredStore& from_;
  const MergeOptions& options_;
  std::int64_t refused_records_ = 0;
  std::vector<std::string> refused_;
  std::vector<std::pair<std::string, const DeviceEntry*>> wanted_;
  std::size_t next_ = 0;
};

}  // namespace

std::string_view to_string(Trouble trouble) {
  switch (trouble) {
    case Trouble::locked:
      return "locked";
    case Trouble::full:
      return "full";
    case Trouble::read_only:
      return "read-only";
    case Trouble::corrupt:
      return "corrupt";
    case Trouble::not_a_database:
      return "not a database";
    case Trouble::newer_schema:
      return "newer schema";
    case Trouble::unreachable:
      return "unreachable";
  }
  return "unknown";
}

std::string Announcement::text() const {
  return printable(hint.empty() ? what : fmt::format("{} ({})", what, hint));
}

class Database::Impl : public LayeredStore {
 public:
  using LayeredStore::LayeredStore;
};

Database::Database(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

Database Database::open(const std::string& path, const OpenOptions& options, Announce announce) {
  if (path.empty() || path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::invalid_argument, "the path of the tuning database is empty or contains a NUL",
                R"(give the path of a file, or "off" for no database)");
  }
  auto impl = std::make_shared<Impl>(path, std::move(announce));
  impl->open_file(options);
  return Database(std::move(impl));
}

Database Database::in_memory() {
  auto impl = std::make_shared<Impl>(std::string(), Announce());
  impl->open_memory();
  return Database(std::move(impl));
}

const std::string& Database::path() const {
  return impl_->path();
}

Storage Database::storage() const {
  return impl_->storage();
}

Kept Database::keep(std::chrono::milliseconds wait) {
  return impl_->keep(wait);
}

bool Database::waits_for_lock() const {
  return impl_->waits_for_lock();
}

bool Database::write_unkept(Database& other) {
  return impl_->write_unkept(*other.impl_);
}

Kept Database::put_device(const DeviceEntry& device) {
  validate(device);
  return impl_->put_device(device);
}

Kept Database::insert(std::span<const Record> records) {
  std::vector<Record> clean;
  clean.reserve(records.size());
  for (const Record& record : records) clean.push_back(storable(record));
  PutCounts counts;
  return impl_->put({}, clean, OnConflict::replace, counts);
}

MergeResult Database::merge(const Pack& pack) {
  const Pack clean = make_pack(pack.devices, pack.records);
  MergeResult result;
  PutCounts counts;
  const Kept kept = impl_->put(clean.devices, clean.records, OnConflict::merge, counts);
  add_to(result, counts, kept);
  return result;
}

MergeResult Database::merge(const Database& other, const MergeOptions& options) {
  MergeResult result;
  const std::vector<DeviceEntry> known = other.devices();
  const auto store = [&](std::span<const Record> records) {
    PutCounts counts;
    const Kept kept = impl_->put(known, records, OnConflict::merge, counts);
    add_to(result, counts, kept);
  };
  BatchReader reader(*other.impl_, known, options);
  std::vector<Record> records = reader.next();
  store({});  // the devices, also where there are no records
  while (!records.empty()) {
    std::future<std::vector<Record>> next = std::async(std::launch::async, [&] { return reader.next(); });
    store(records);
    records = next.get();
  }
  std::move(reader).tell(result);
  if (!options.own) return result;
  for (const Quarantine& entry : other.quarantine()) {
    const auto mine = find_quarantine(entry.source_digest, entry.device, entry.driver_version, entry.nvrtc_version);
    if (!mine || newer(entry, *mine)) add_quarantine(entry);
  }
  return result;
}

PruneResult Database::prune(const PruneOptions& options) {
  const auto result = std::make_shared<PruneResult>();
  const Kept storage = impl_->write([result, options](Store& store) { *result = store.prune(options); });
  const bool changed = result->records + result->requests + result->sessions + result->quarantine > 0;
  if (changed && !options.dry_run) impl_->write([](Store& store) { store.compact(); });
  result->storage = storage;
  return *result;
}

Kept Database::begin_session(const Session& session) {
  require_line("session: id", session.id, max_name_bytes, false);
  require_line("session: device", session.device, max_name_bytes, false);
  require_line("session: plan", session.plan, max_request_bytes, true);
  require_line("session: kiln_version", session.kiln_version, max_name_bytes, true);
  return impl_->write([session](Store& store) { store.put_session(session); });
}

Kept Database::end_session(std::string_view id, std::int64_t ended_ms) {
  return impl_->write([id = std::string(id), ended_ms](Store& store) { store.end_session(id, ended_ms); });
}

std::optional<Session> Database::unfinished_session(std::string_view device, std::string_view plan) const {
  const std::vector<Session> all = sessions();
  const auto found = std::find_if(
      all.rbegin(), all.rend(), [&](const Session& s) { return !s.ended_ms && s.device == device && s.plan == plan; });
  return found == all.rend() ? std::nullopt : std::optional(*found);
}

std::vector<Session> Database::sessions() const {
  return impl_->read([](Store& store) { return store.sessions(); });
}

Kept Database::begin_run(const Run& run, std::span<const std::string> requests) {
  require_line("run: session", run.session, max_name_bytes, false);
  require_line("run: part", run.part, max_name_bytes, true);
  Run clean = run;
  clean.workload = clean_text(run.workload, max_text_bytes);
  clean.host = clean_text(run.host, max_name_bytes);
  for (const std::string& request : requests) require_line("run: request", request, max_request_bytes, false);
  return impl_->write([clean, requests = std::vector(requests.begin(), requests.end())](Store& store) {
    store.begin_run(clean, requests);
  });
}

Kept Database::report_run(std::string_view session, std::int64_t seen_ms, std::optional<double> seconds_left,
                          std::span<const RunLayer> changed) {
  std::vector<RunLayer> clean(changed.begin(), changed.end());
  for (RunLayer& layer : clean) layer.error = clean_text(layer.error, max_text_bytes);
  return impl_->write([session = std::string(session), seen_ms, seconds_left, clean](Store& store) {
    store.report_run(session, seen_ms, seconds_left, clean);
  });
}

std::vector<RunProgress> Database::runs() const {
  return impl_->runs();
}

Kept Database::add_quarantine(const Quarantine& entry) {
  require_line("quarantine: source_digest", entry.source_digest, max_name_bytes, false);
  require_line("quarantine: device", entry.device, max_name_bytes, false);
  require_line("quarantine: driver_version", entry.driver_version, max_name_bytes, true);
  require_line("quarantine: nvrtc_version", entry.nvrtc_version, max_name_bytes, true);
  Quarantine clean = entry;
  clean.reason = clean_text(entry.reason, max_text_bytes);
  return impl_->write([clean](Store& store) { store.put_quarantine(clean); });
}

std::optional<Quarantine> Database::find_quarantine(std::string_view source_digest, std::string_view device,
                                                    std::string_view driver_version,
                                                    std::string_view nvrtc_version) const {
  return impl_->read(
      [&](Store& store) { return store.find_quarantine(source_digest, device, driver_version, nvrtc_version); });
}

Kept Database::end_quarantine(const Quarantine& entry) {
  return impl_->write([entry](Store& store) { store.delete_quarantine(entry); });
}

std::vector<Quarantine> Database::quarantine() const {
  return impl_->read([](Store& store) { return store.quarantine(); });
}

Kept Database::put_calibration(const DeviceCalibration& calibration) {
  require_line("calibration: device", calibration.device, max_name_bytes, false);
  require_line("calibration: figures", calibration.figures, max_name_bytes, false);
  return impl_->write([calibration](Store& store) { store.put_calibration(calibration); });
}

std::optional<DeviceCalibration> Database::calibration(std::string_view device) const {
  const auto all = impl_->read([](Store& store) { return store.calibrations(); });
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& known) { return known.device == device; });
  return found == all.end() ? std::nullopt : std::optional(*found);
}

std::vector<DeviceEntry> Database::devices() const {
  return impl_->read([](Store& store) { return store.devices(); });
}

std::vector<std::string> Database::request_keys(std::string_view device) const {
  return impl_->request_keys(device);
}

std::vector<Record> Database::records(std::string_view request, std::string_view device) const {
  return impl_->records(request, device);
}

std::vector<Record> Database::records_of_session(std::string_view session) const {
  return impl_->records_of_session(session);
}

std::vector<RequestSummary> Database::requests(std::string_view device, const IsCurrent& is_current) const {
  return impl_->requests(device, is_current);
}

void Database::visit_fronts(FrontVisitor& visitor, std::string_view request) const {
  impl_->visit_fronts(visitor, request);
}

std::vector<OwnTime> Database::own_times(std::string_view request, std::string_view algorithm) const {
  return impl_->own_times(request, algorithm);
}

std::set<std::string, std::less<>> Database::quarantined(std::string_view device) const {
  std::set<std::string, std::less<>> digests;
  for (Quarantine& entry : impl_->read_quietly([](Store& store) { return store.quarantine(); })) {
    if (entry.device == device) digests.insert(std::move(entry.source_digest));
  }
  return digests;
}

void Database::deliver_announcement() const {
  impl_->deliver_announcement();
}

}  // namespace kiln::cache
