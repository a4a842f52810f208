// PlanTable: from a call's numbers to its plan, read by any thread without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "call_key.h"

namespace kiln {

struct LoadedPlan;

/// An open-addressing hash table that only grows. Readers see a slot empty or complete: an entry is published with one
/// release store. A table that was outgrown is kept until the end, because a reader may still be in it; all of them
/// together are at most as large as the last.
class PlanTable {
 public:
  PlanTable();

  /// The plan of `key`, or null. No lock, no allocation.
  const LoadedPlan* find(const CallKey& key, uint64_t hash) const;
  /// Makes find() give `plan` for `key`. The first plan of a key stays.
  void insert(const CallKey& key, uint64_t hash, std::shared_ptr<const LoadedPlan> plan);

 private:
  struct Entry {
    uint64_t hash;
    CallKey key;
    std::shared_ptr<const LoadedPlan> plan;
  };
  // The hash stands beside the pointer, so that a probe touches an entry only if it is the right one.
  struct Slot {
    std::atomic<uint64_t> hash{0};
    std::atomic<const Entry*> entry{nullptr};
  };
  using Slots = std::vector<Slot>;

  static void place(Slots& slots, const Entry& entry);

  std::atomic<const Slots*> current_;
  std::mutex writing_;
  std::vector<std::unique_ptr<Slots>> tables_;
  std::vector<std::unique_ptr<const Entry>> entries_;
};

}  // namespace kiln
