#include "layered_store.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <utility>

#include "field_text.h"

namespace kiln::cache {

// --- fork()
// ----------------------------------------------------------------------------------------------------------------

/// Closes all files before a fork(). A child has none of its parent's locks but all that SQLite remembers of them; even
/// a connection of its own to the same file would build on that memory (https://sqlite.org/howtocorrupt.html, 2.6).
class ForkGuard {
 public:
  static void add(LayeredStore* store) {
    ForkGuard& guard = instance();
    const std::lock_guard lock(guard.mutex_);
    guard.stores_.insert(store);
  }

  static void remove(LayeredStore* store) {
    ForkGuard& guard = instance();
    const std::lock_guard lock(guard.mutex_);
    guard.stores_.erase(store);
  }

 private:
  ForkGuard() { pthread_atfork(before, after, after); }

  // Never destroyed: a Database may outlive what static destructors leave.
  static ForkGuard& instance() {
    static ForkGuard& guard = *new ForkGuard;  // NOLINT(cppcoreguidelines-owning-memory)
    return guard;
  }

  static void before() {
    ForkGuard& guard = instance();
    guard.mutex_.lock();
    for (LayeredStore* store : guard.stores_) {
      store->mutex_.lock();
      store->close_for_fork();
    }
  }

  static void after() {
    ForkGuard& guard = instance();
    for (LayeredStore* store : guard.stores_) store->mutex_.unlock();
    guard.mutex_.unlock();
  }

  std::mutex mutex_;
  std::set<LayeredStore*> stores_;
};

void LayeredStore::close_for_fork() {
  if (!file_) return;
  file_.reset();
  closed_for_fork_ = true;
}

void LayeredStore::reopen() {
  closed_for_fork_ = false;
  OpenOptions options = options_;
  if (!writable_) options.mode = OpenMode::read_only;                    // or it was lost for writing since
  if (std::exchange(process_, ::getpid()) != process_) unkept_.clear();  // the parent keeps them
  open_below(options);
}

// --- Life of the file
// ------------------------------------------------------------------------------------------------------

LayeredStore::~LayeredStore() {
  keep_at_the_end();
  ForkGuard::remove(this);
}

// A child process leaves it to its parent.
void LayeredStore::keep_at_the_end() {
  if (unkept_.empty() || !waits_for_lock_ || process_ != ::getpid()) return;
  if (keep(options_.busy_timeout) == Kept::durably || !waits_for_lock_ || !announce_) return;
  const std::string cause = path_ + " is still locked by another process";
  announce_({Trouble::locked, path_, cause, cause + "; records kept in memory since it was locked are lost",
             "end that process, or give each its own database"});
}

void LayeredStore::open_file(const OpenOptions& options) {
  ForkGuard::add(this);
  options_ = options;
  locked([&] {
    open_below(options);
    return true;
  });
}

void LayeredStore::open_below(const OpenOptions& options) {
  OpenedFile opened = cache::open_file(path_, options);
  if (opened.db) file_.emplace(std::move(*opened.db));
  writable_ = opened.writable;
  try_file([&](Store& file) {
    for (const DeviceEntry& device : file.devices()) remember(device);
  });
  if (opened.problem) degrade(*opened.problem);
  if (!writable_) enter_memory();
}

void LayeredStore::deliver_announcement() {
  std::optional<Announcement> news;
  {
    const std::lock_guard lock(mutex_);
    news = std::exchange(pending_, std::nullopt);
  }
  if (news && announce_) announce_(*news);
}

void LayeredStore::open_memory() {
  locked([&] {
    enter_memory();
    return true;
  });
}

Storage LayeredStore::storage() {
  return locked([&] {
    if (!file_) return Storage::memory;
    return writable_ ? Storage::file : Storage::file_and_memory;
  });
}

void LayeredStore::degrade(const Problem& problem) {
  const bool waited = waits_for_lock_;
  waits_for_lock_ = problem.trouble == Trouble::locked && options_.mode == OpenMode::read_write;
  next_try_ = std::chrono::steady_clock::now() + options_.busy_timeout;
  writable_ = false;
  if (announced_ && waited <= waits_for_lock_) return;
  const std::string outcome =
      fmt::format("{} kept in memory {}", file_ ? "its records are used, new ones are" : "records are",
                  waits_for_lock_ ? "until it is free" : "and lost with this process");
  pending_ =
      Announcement{problem.trouble, path_, problem.what, fmt::format("{}; {}", problem.what, outcome), problem.hint};
  announced_ = true;
}

void LayeredStore::drop_file() {
  try {
    file_->connection().checkpoint_on_close(false);  // a damaged file is left as it is
  } catch (const SqliteFault&) {
    // then SQLite cannot write it either
  }
  file_.reset();
}

void LayeredStore::enter_memory() {
  if (memory_) return;
  memory_ = Store::in_memory();
  for (const auto& [id, device] : devices_) memory_->put_device(device);
  try_file([&](Store& file) {
    for (const DeviceEntry& device : file.devices()) memory_->put_device(device);
    for (const Session& session : file.sessions()) memory_->put_session(session);
    for (const Quarantine& entry : file.quarantine()) memory_->put_quarantine(entry);
    for (const DeviceCalibration& calibration : file.calibrations()) memory_->put_calibration(calibration);
  });
}

void LayeredStore::tell_damage() {
  const std::string left_out = file_->take_damage();
  if (left_out.empty() || damage_told_ || pending_) return;
  damage_told_ = true;
  const std::string cause = fmt::format("{} is damaged: {} in it is not as Kiln writes it", path_, left_out);
  pending_ = Announcement{Trouble::corrupt, path_, cause, cause + "; damaged rows are left out, the rest is used",
                          "tune the missing layers again; `kiln cache export` writes the intact records"};
}

bool LayeredStore::try_file(const std::function<void(Store&)>& body) {
  if (!file_) return false;
  try {
    file_->connection().within_time([&] { body(*file_); });
    tell_damage();
    return true;
  } catch (const SqliteFault& fault) {
    const Problem problem = problem_of(fault, path_);
    drop_file();
    degrade(problem);
    enter_memory();
    return false;
  }
}

// --- Writing
// ---------------------------------------------------------------------------------------------------------------

Kept LayeredStore::write_locked(const Action& action, std::span<const Record> records) {
  if (waits_for_lock_ && std::chrono::steady_clock::now() >= next_try_) return_to_file(options_.busy_timeout / 10);
  if (file_ && writable_) {
    try {
      action(*file_);
      tell_damage();
      return Kept::durably;
    } catch (const SqliteFault& fault) {
      const Problem problem = problem_of(fault, path_);
      if (!problem.readable) drop_file();
      degrade(problem);
      enter_memory();
    }
  }
  overlay(records);
  action(*memory_);
  if (!path_.empty() && options_.mode == OpenMode::read_write) unkept_.push_back(action);
  return Kept::in_memory;
}

Kept LayeredStore::write(const Action& action) {
  return locked([&] { return write_locked(action); });
}

// A connection of its own: the one that reads may have been lost, or opened after a fork for reading alone. Changes
// that succeeded are not repeated where a later one fails.
void LayeredStore::return_to_file(std::chrono::milliseconds wait) {
  OpenOptions options = options_;
  options.busy_timeout = wait;
  OpenedFile opened = cache::open_file(path_, options);
  std::optional<Problem> problem = opened.problem;
  if (opened.db && opened.writable) {
    Store file(std::move(*opened.db));
    auto next = unkept_.begin();
    try {
      file.put(known_devices(), {}, OnConflict::merge);
      for (; next != unkept_.end(); ++next) (*next)(file);
      file.connection().wait_for_locks(options_.busy_timeout);
    } catch (const SqliteFault& fault) {
      problem = problem_of(fault, path_);
    }
    unkept_.erase(unkept_.begin(), next);
    if (!problem) {
      file_.emplace(std::move(file));
      writable_ = true;
      waits_for_lock_ = false;
      memory_.reset();
      overlaid_.clear();
    }
  }
  if (problem) degrade(*problem);
}

Kept LayeredStore::keep(std::chrono::milliseconds wait) {
  return locked([&] {
    if (waits_for_lock_) return_to_file(wait);
    return file_ && writable_ ? Kept::durably : Kept::in_memory;
  });
}

bool LayeredStore::waits_for_lock() {
  return locked([&] { return waits_for_lock_; });
}

bool LayeredStore::write_unkept(LayeredStore& other) {
  std::vector<DeviceEntry> devices;
  std::vector<Action> actions;
  {
    const std::lock_guard lock(mutex_);  // not while `other` is locked: a fork() locks them in an order of its own
    devices = known_devices();
    actions = unkept_;
  }
  PutCounts counts;
  bool is_kept = other.put(devices, {}, OnConflict::merge, counts) == Kept::durably;
  for (const Action& action : actions) is_kept = is_kept && other.write(action) == Kept::durably;
  const std::lock_guard lock(mutex_);
  if (is_kept) unkept_.erase(unkept_.begin(), unkept_.begin() + static_cast<std::ptrdiff_t>(actions.size()));
  return is_kept;
}

std::vector<DeviceEntry> LayeredStore::known_devices() const {
  std::vector<DeviceEntry> devices;
  for (const auto& [id, device] : devices_) devices.push_back(device);
  return devices;
}

void LayeredStore::remember(const DeviceEntry& device) {
  devices_.insert_or_assign(device.id, device);
}

// Throws Error(invalid_argument) for a record of an unknown device, or whose kind of time the device cannot give.
void LayeredStore::require_devices(std::span<const Record> records) {
  const auto known = [&](const std::string& id) { return devices_.contains(id); };
  const bool all_known = std::all_of(records.begin(), records.end(), [&](const Record& r) { return known(r.device); });
  if (!all_known) {  // another process may have added it to the file
    try_file([&](Store& file) {
      for (const DeviceEntry& device : file.devices()) devices_.try_emplace(device.id, device);
    });
  }
  for (const Record& record : records) {
    if (!known(record.device)) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cache record: device {} is not known", cache::quoted(record.device)),
                  "call put_device() first");
    }
    const bool emulated = devices_.at(record.device).emulated;
    if (record.kind != TimeKind::predicted && (record.kind == TimeKind::modelled) != emulated) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cache record: a {} time on the {} device {}", to_string(record.kind),
                              emulated ? "emulated" : "real", cache::quoted(record.device)),
                  "times of emulated devices are modelled, times of real devices are measured");
    }
  }
}

Kept LayeredStore::put_device(const DeviceEntry& device) {
  return locked([&] {
    remember(device);
    return write_locked([device](Store& store) { store.put_device(device); });
  });
}

Kept LayeredStore::put(std::span<const DeviceEntry> devices, std::span<const Record> records, OnConflict on_conflict,
                       PutCounts& counts) {
  const auto stored = std::make_shared<PutCounts>();
  const Kept kept = locked([&] {
    for (const DeviceEntry& device : devices) remember(device);
    require_devices(records);
    return write_locked(
        [devices = std::vector(devices.begin(), devices.end()), records = std::vector(records.begin(), records.end()),
         on_conflict, stored](Store& store) { *stored = store.put(devices, records, on_conflict); },
        records);
  });
  counts = *stored;
  return kept;
}

void LayeredStore::overlay(std::span<const Record> records) {
  for (const Record& record : records) {
    const KeyHash key = hash_key(record.request);
    if (overlaid(record.device, key)) continue;
    try_file([&](Store& file) {
      memory_->put(file.devices(), file.records(record.request, record.device), OnConflict::replace);
    });
    overlaid_.emplace(record.device, key.low, key.high);
  }
}

bool LayeredStore::overlaid(std::string_view device, KeyHash key) const {
  return overlaid_.contains({std::string(device), key.low, key.high});
}

// --- Reading
// ---------------------------------------------------------------------------------------------------------------

std::vector<Record> LayeredStore::records(std::string_view request, std::string_view device) {
  return locked([&] {
    std::vector<Record> result;
    const bool in_memory = memory_ && overlaid(device, hash_key(request));
    if (!in_memory && try_file([&](Store& file) { result = file.records(request, device); })) return result;
    return memory_->records(request, device);
  });
}

std::vector<Record> LayeredStore::records_of_session(std::string_view session) {
  return locked([&] {
    std::vector<Record> result;
    if (!try_file([&](Store& file) { result = file.records_of_session(session); })) result.clear();
    if (!memory_) return result;
    std::erase_if(result, [&](const Record& r) { return overlaid(r.device, hash_key(r.request)); });
    std::vector<Record> above = memory_->records_of_session(session);
    std::move(above.begin(), above.end(), std::back_inserter(result));
    std::sort(result.begin(), result.end(), listed_before);
    return result;
  });
}

std::vector<std::string> LayeredStore::request_keys(std::string_view device) {
  return locked([&] {
    std::vector<std::string> keys;
    if (!try_file([&](Store& file) { keys = file.request_keys(device); })) keys.clear();
    if (!memory_) return keys;
    std::vector<std::string> above = memory_->request_keys(device);
    std::vector<std::string> both;
    std::set_union(keys.begin(), keys.end(), above.begin(), above.end(), std::back_inserter(both));
    return both;
  });
}

std::vector<RequestSummary> LayeredStore::requests(std::string_view device, const IsCurrent& is_current) {
  return locked([&] {
    std::vector<RequestSummary> result;
    if (!try_file([&](Store& file) { result = file.requests(device, is_current); })) result.clear();
    if (!memory_) return result;
    std::erase_if(result, [&](const RequestSummary& s) { return overlaid(device, hash_key(s.request)); });
    std::vector<RequestSummary> above = memory_->requests(device, is_current);
    std::move(above.begin(), above.end(), std::back_inserter(result));
    std::sort(result.begin(), result.end(),
              [](const RequestSummary& a, const RequestSummary& b) { return a.request < b.request; });
    return result;
  });
}

std::vector<RunProgress> LayeredStore::runs() {
  return locked([&] {
    std::vector<RunProgress> result;
    if (!try_file([&](Store& file) { result = file.runs(); })) result.clear();
    return result;
  });
}

std::vector<OwnTime> LayeredStore::own_times(std::string_view request, std::string_view algorithm) {
  return locked_quietly([&] {
    std::vector<OwnTime> result;
    if (!try_file([&](Store& file) { result = file.own_times(request, algorithm); })) result.clear();
    if (!memory_) return result;
    const KeyHash key = hash_key(request);
    std::erase_if(result, [&](const OwnTime& time) { return overlaid(time.device.id, key); });
    std::vector<OwnTime> above = memory_->own_times(request, algorithm);
    std::move(above.begin(), above.end(), std::back_inserter(result));
    return result;
  });
}

void LayeredStore::visit_fronts(FrontVisitor& visitor, std::string_view request) {
  locked_quietly([&] {
    try_file([&](Store& file) {
      file.visit_fronts(visitor, request,
                        [&](const DeviceEntry& device, KeyHash key) { return !overlaid(device.id, key); });
    });
    if (memory_) memory_->visit_fronts(visitor, request, [](const DeviceEntry&, KeyHash) { return true; });
    return true;
  });
}

}  // namespace kiln::cache
