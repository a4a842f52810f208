#include "layered_store.h"

#include <fmt/format.h>
#include <pthread.h>

#include <algorithm>
#include <iterator>

#include "text.h"

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
  if (!writable_) options.mode = OpenMode::read_only;  // or it was lost for writing since
  open_below(options);
}

// --- Life of the file
// ------------------------------------------------------------------------------------------------------

LayeredStore::~LayeredStore() {
  ForkGuard::remove(this);
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
  writable_ = false;
  if (!announced_) {
    const char* outcome = file_ ? "its records are used, new ones are kept in memory and lost with this process"
                                : "records are kept in memory and lost with this process";
    pending_ =
        Announcement{problem.trouble, path_, problem.what, fmt::format("{}; {}", problem.what, outcome), problem.hint};
    announced_ = true;
  }
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
  pending_ = Announcement{Trouble::corrupt, path_, cause, cause + "; what is so is left out, the rest is used",
                          "tune again what is missing; `kiln cache export` writes what is whole"};
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

Kept LayeredStore::write_locked(const std::function<void(Store&)>& action) {
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
  action(*memory_);
  return Kept::in_memory;
}

Kept LayeredStore::write(const std::function<void(Store&)>& action) {
  return locked([&] { return write_locked(action); });
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
                  fmt::format("cache record: device {} is not known", quoted(record.device)),
                  "call put_device() first");
    }
    const bool emulated = devices_.at(record.device).emulated;
    if (record.kind != TimeKind::predicted && (record.kind == TimeKind::modelled) != emulated) {
      throw Error(ErrorCode::invalid_argument,
                  fmt::format("cache record: a {} time on the {} device {}", to_string(record.kind),
                              emulated ? "emulated" : "real", quoted(record.device)),
                  "times of emulated devices are modelled, times of real devices are measured");
    }
  }
}

Kept LayeredStore::put_device(const DeviceEntry& device) {
  return locked([&] {
    remember(device);
    return write_locked([&](Store& store) { store.put_device(device); });
  });
}

Kept LayeredStore::put(std::span<const DeviceEntry> devices, std::span<const Record> records, OnConflict on_conflict,
                       PutCounts& counts) {
  return locked([&] {
    for (const DeviceEntry& device : devices) remember(device);
    require_devices(records);
    return write_locked([&](Store& store) {
      if (memory_ && &store == &*memory_) overlay(records);
      counts = store.put(devices, records, on_conflict);
    });
  });
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
