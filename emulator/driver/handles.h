// The handles that the driver API gives out.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace kiln::emulator {

/// Maps the opaque handles of one type to the objects behind them. Thread-safe.
///
/// A handle is a number that looks like a pointer and is never used twice, nor by another table, so a stale handle, one
/// of another type, or garbage is recognised instead of dereferenced. An object found stays alive while the finder
/// holds it, even if another thread destroys the handle meanwhile.
template <typename Handle, typename Object>
class HandleTable {
 public:
  /// `kind`: a small number, different for each table.
  explicit HandleTable(uintptr_t kind) : next_((kind << 40) + 0x1000) {}

  /// A handle for nothing yet; insert() gives it an object.
  Handle reserve() {
    const std::lock_guard lock(mutex_);
    next_ += 0x10;
    return reinterpret_cast<Handle>(next_);
  }
  void insert(Handle handle, std::shared_ptr<Object> object) {
    const std::lock_guard lock(mutex_);
    objects_[handle] = std::move(object);
  }
  Handle add(std::shared_ptr<Object> object) {
    const Handle handle = reserve();
    insert(handle, std::move(object));
    return handle;
  }
  /// Whether the handle stands for anything. Neither keeps the object nor, where another thread destroys it, ends it.
  bool contains(Handle handle) const {
    const std::lock_guard lock(mutex_);
    return objects_.contains(handle);
  }
  /// Null if the handle stands for nothing.
  std::shared_ptr<Object> find(Handle handle) const {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  /// Ends the handle and returns what it stood for, or null.
  std::shared_ptr<Object> remove(Handle handle) {
    const std::lock_guard lock(mutex_);
    const auto found = objects_.find(handle);
    if (found == objects_.end()) return nullptr;
    std::shared_ptr<Object> object = std::move(found->second);
    objects_.erase(found);
    return object;
  }
  /// Ends every handle whose object satisfies `predicate`.
  template <typename Predicate>
  void remove_if(Predicate predicate) {
    std::vector<std::shared_ptr<Object>> doomed;  // destroyed after the lock is released
    const std::lock_guard lock(mutex_);
    for (auto entry = objects_.begin(); entry != objects_.end();) {
      if (!predicate(*entry->second)) {
        ++entry;
        continue;
      }
      doomed.push_back(std::move(entry->second));
      entry = objects_.erase(entry);
    }
  }
  std::vector<std::shared_ptr<Object>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Object>> result;
    for (const auto& [handle, object] : objects_) result.push_back(object);
    return result;
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<Handle, std::shared_ptr<Object>> objects_;
  uintptr_t next_;
};

}  // namespace kiln::emulator
