// The hash table and the memory under Winners.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "front.h"
#include "kiln/cache/key_hash.h"
#include "kiln/cache/winners.h"

namespace kiln::cache {

/// A database or pack that was loaded.
struct WinnerSource {
  std::string name;
  Origin origin = Origin::user_database;
  std::size_t order = 0;  ///< Order of loading.
};

/// Candidates that one source has for one request from one device: entries of one Standing, in tie_order. Immutable
/// once published.
struct WinnerGroup {
  const WinnerGroup* next = nullptr;    ///< The next in precedence.
  std::span<const FrontEntry> entries;  ///< To choose from: those offered, without what is barred.
  const WinnerSource* source = nullptr;
  const DeviceEntry* device = nullptr;
  Standing standing = Standing::measured_here;
  std::span<const FrontEntry> offered;  ///< From here on nothing that a look-up reads.
  std::span<const FrontEntry> doubted;  ///< Entries that others than the user's own database bar.
  std::int64_t stale = 0;               ///< Candidates that are not offered because their algorithm has changed.
};

/// Memory that is only given back as a whole. Not thread-safe.
class Arena {
 public:
  void* allocate(std::size_t bytes, std::size_t alignment);
  std::string_view copy(std::string_view text);

  /// `values` must be trivially destructible.
  template <class T>
  std::span<const T> copy(std::span<const T> values) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* out = static_cast<T*>(allocate(values.size() * sizeof(T), alignof(T)));
    std::uninitialized_copy(values.begin(), values.end(), out);
    return {out, values.size()};
  }

 private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  std::size_t left_ = 0;
};

/// KeyHash -> chain of groups. Open addressing, linear probing, power-of-two size.
///
/// find() takes no lock and may run beside one writer: a slot's key is written once, before its chain is released, and
/// a reader looks at the key only after it has acquired the chain. A grown table is published whole; the old one stays
/// until the end, since a reader may be in it (all of them together are smaller than the last).
class WinnerTable {
 public:
  WinnerTable();

  /// The head of the chain, or nullptr.
  const WinnerGroup* find(KeyHash key) const;
  /// Replaces the chain of `key`. `head` must not be null. One writer at a time.
  void publish(KeyHash key, const WinnerGroup* head);
  /// Number of keys. For the writer.
  std::size_t size() const { return used_; }

 private:
  struct Slot {
    KeyHash key;
    std::atomic<const WinnerGroup*> head{nullptr};
  };
  struct Slots {
    explicit Slots(std::size_t size) : mask(size - 1), slots(size) {}
    std::size_t mask;
    std::vector<Slot> slots;
  };

  static Slot& slot_of(Slots& table, KeyHash key);
  void grow();

  std::vector<std::unique_ptr<Slots>> tables_;  // the last is current
  std::atomic<Slots*> current_;
  std::size_t used_ = 0;
};

}  // namespace kiln::cache
