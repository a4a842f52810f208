// PlanTable: from a call's numbers to its plan, read by any thread without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "call_key.h"

namespace kiln {

struct LoadedPlan;

/// An open-addressing hash table that only grows. Readers see a slot empty or complete: an entry is published with one
/// release store, and so is the plan in it. A table that was outgrown is kept until the end, because a reader may still
/// be in it; all of them together are at most as large as the last. So is a plan that was replaced.
class PlanTable {
 public:
  PlanTable();

  /// The plan of `key`, or null. No lock, no allocation.
  const LoadedPlan* find(const CallKey& key, uint64_t hash) const;
  /// Makes find() give `plan` for `key`, or what has replaced it. The first plan of a key stays until it is replaced.
  void insert(const CallKey& key, uint64_t hash, std::shared_ptr<const LoadedPlan> plan);
  /// Makes find() give `better` for every key that has `old`, or is given it by a later insert().
  void replace(const std::shared_ptr<const LoadedPlan>& old, const std::shared_ptr<const LoadedPlan>& better);
  /// Makes find() give null for every key that has `plan`, or is given it by a later insert(), until another is
  /// inserted.
  void withdraw(const std::shared_ptr<const LoadedPlan>& plan);

 private:
  struct Entry {
    Entry(uint64_t key_hash, const CallKey& call, const LoadedPlan* made) : hash(key_hash), key(call), plan(made) {}

    uint64_t hash;
    CallKey key;
    std::atomic<const LoadedPlan*> plan;
  };
  // The hash stands beside the pointer, so that a probe touches an entry only if it is the right one.
  struct Slot {
    std::atomic<uint64_t> hash{0};
    std::atomic<Entry*> entry{nullptr};
  };
  using Slots = std::vector<Slot>;

  Entry* entry_of(const CallKey& key, uint64_t hash) const;
  static void place(Slots& slots, Entry& entry);

  std::atomic<const Slots*> current_;
  std::mutex writing_;
  std::vector<std::unique_ptr<Slots>> tables_;
  std::vector<std::unique_ptr<Entry>> entries_;
  std::set<std::shared_ptr<const LoadedPlan>> kept_;  // all that was ever in an entry
  std::map<const LoadedPlan*, const LoadedPlan*> replaced_;
};

}  // namespace kiln
