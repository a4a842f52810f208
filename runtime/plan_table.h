// PlanTable: from a call's numbers to its plan, read by any thread without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <vector>

#include "call_key.h"

namespace kiln {

struct LoadedPlan;

/// An open-addressing hash table that only grows. Readers see a slot empty or complete: it is published with one
/// release store, and so is a plan that replaces the one in it. A table that was outgrown is kept until the end,
/// because a reader may still be in it; all of them together are at most as large as the last. So is a plan that was
/// replaced. plan_table.cpp says which thread may see which store.
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
  // Hash and plan stand in the slot: a probe reads a key only if it is the right one, and the plan need not wait for
  // it.
  struct alignas(32) Slot {  // half a cache line
    std::atomic<uint64_t> hash{0};
    std::atomic<const LoadedPlan*> plan{nullptr};
    std::atomic<size_t> size{0};  ///< Words of the key.
    std::atomic<const CallKey::Word*> key{nullptr};
  };
  using Slots = std::vector<Slot>;

  // The slot of a key, or the one where it belongs. A reader must not look into a slot that was seen empty: by then it
  // may be another key's.
  template <class SomeSlot>
  struct Place {
    SomeSlot& slot;
    bool has_key;
  };
  template <class SomeSlot>
  static Place<SomeSlot> place_of(std::span<SomeSlot> slots, std::span<const CallKey::Word> key, uint64_t hash);
  static void fill(Slot& slot, const CallKey::Word* key, size_t size, uint64_t hash, const LoadedPlan* plan);
  const CallKey::Word* keep(std::span<const CallKey::Word> key);
  void grow();
  void change(const LoadedPlan* from, const LoadedPlan* to);

  std::atomic<const Slots*> current_;
  std::mutex writing_;
  std::vector<std::unique_ptr<Slots>> tables_;
  std::vector<std::vector<CallKey::Word>> keys_;  // close together, so that few pages hold them; none is ever moved
  size_t count_ = 0;
  std::set<std::shared_ptr<const LoadedPlan>> kept_;  // all that was ever in an entry
  std::map<const LoadedPlan*, const LoadedPlan*> replaced_;
};

}  // namespace kiln
