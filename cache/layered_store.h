// A store that survives its file: the file's records below, memory above once the file cannot take writes.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "kiln/base/error.h"
#include "kiln/cache/database.h"
#include "open_file.h"
#include "store.h"

namespace kiln::cache {

/// At most two stores. While the file works there is only that one. After its first fault, writes go to memory; a
/// request on a device then lives in exactly one of the two, because a write first copies its records from the file
/// ("overlays" it), so reads never have to merge. Changes that went to memory are remembered as they were asked for:
/// where the fault was another process' lock, they are repeated on the file as soon as that is free, and memory is
/// given up. Thread-safe: one lock, held for the length of a call.
class LayeredStore {
 public:
  LayeredStore(std::string path, Announce announce) : path_(std::move(path)), announce_(std::move(announce)) {}
  LayeredStore(const LayeredStore&) = delete;
  LayeredStore& operator=(const LayeredStore&) = delete;
  ~LayeredStore();

  void open_file(const OpenOptions& options);
  void open_memory();

  const std::string& path() const { return path_; }
  Storage storage();

  Kept put_device(const DeviceEntry& device);
  Kept put(std::span<const DeviceEntry> devices, std::span<const Record> records, OnConflict on_conflict,
           PutCounts& counts);
  /// Runs on the store that takes writes, and perhaps later once more: holds whatever it needs by value.
  using Action = std::function<void(Store&)>;
  /// For sessions and quarantine.
  Kept write(const Action& action);

  /// As those of Database.
  Kept keep(std::chrono::milliseconds wait);
  bool waits_for_lock();
  bool write_unkept(LayeredStore& other);

  /// For devices, sessions and quarantine: `read` runs on the store that has them all.
  template <class Read>
  auto read(const Read& read) {
    auto result = read_quietly(read);
    deliver_announcement();
    return result;
  }
  /// Leaves an announcement that it causes to deliver_announcement(), as visit_fronts() does.
  template <class Read>
  auto read_quietly(const Read& read) {
    return locked_quietly([&] {
      using Result = decltype(read(*memory_));
      Result result{};
      const bool from_file = !memory_ && try_file([&](Store& file) { result = read(file); });
      return from_file ? result : read(*memory_);
    });
  }

  std::vector<Record> records(std::string_view request, std::string_view device);
  std::vector<Record> records_of_session(std::string_view session);
  std::vector<std::string> request_keys(std::string_view device);
  std::vector<RequestSummary> requests(std::string_view device, const IsCurrent& is_current);
  std::vector<RunProgress> runs();
  void visit_fronts(FrontVisitor& visitor, std::string_view request);
  std::vector<OwnTime> own_times(std::string_view request, std::string_view algorithm);
  void deliver_announcement();

 private:
  friend class ForkGuard;

  /// Runs `body` under the lock.
  template <class Body>
  auto locked_quietly(const Body& body) {
    const std::lock_guard lock(mutex_);
    return guarded([&] {
      if (closed_for_fork_) reopen();
      return body();
    });
  }
  /// And delivers an announcement that it caused after the lock is gone.
  template <class Body>
  auto locked(const Body& body) {
    auto result = locked_quietly(body);
    deliver_announcement();
    return result;
  }

  /// A fault of the memory store has no way round it: the process is out of memory.
  template <class Body>
  static auto guarded(const Body& body) {
    try {
      return body();
    } catch (const SqliteFault& fault) {
      throw Error(ErrorCode::out_of_memory, std::string("the tuning records in memory failed: ") + fault.what());
    }
  }

  /// False if there is no file, or it failed in `body`; then it is gone and memory_ exists.
  bool try_file(const std::function<void(Store&)>& body);
  /// `records`: what `action` puts, whose requests move to memory if it does.
  Kept write_locked(const Action& action, std::span<const Record> records = {});
  void return_to_file(std::chrono::milliseconds wait);
  void keep_at_the_end();
  std::vector<DeviceEntry> known_devices() const;
  void open_below(const OpenOptions& options);
  void close_for_fork();
  void reopen();
  void degrade(const Problem& problem);
  /// Announces, once, that the file has rows which are left out.
  void tell_damage();
  void drop_file();
  void enter_memory();
  void remember(const DeviceEntry& device);
  void require_devices(std::span<const Record> records);
  void overlay(std::span<const Record> records);
  bool overlaid(std::string_view device, KeyHash key) const;

  std::mutex mutex_;
  const std::string path_;
  const Announce announce_;
  bool announced_ = false;
  bool damage_told_ = false;
  std::optional<Announcement> pending_;

  std::optional<Store> file_;
  OpenOptions options_;  // of the file
  bool writable_ = false;
  bool closed_for_fork_ = false;  // it was open, and will be when it is needed next
  std::optional<Store> memory_;
  std::vector<Action> unkept_;   // what memory_ has and the file should have, in order
  bool waits_for_lock_ = false;  // else they are lost for another reason
  std::chrono::steady_clock::time_point next_try_;
  pid_t process_ = ::getpid();
  std::map<std::string, DeviceEntry> devices_;  // all that are known: needed again if the file is lost
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> overlaid_;  // device, key hash
};

}  // namespace kiln::cache
