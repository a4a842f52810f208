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

/// An open-addressing hash table. Readers see a slot empty or complete: it is published with one release store, and so
/// is a plan that replaces the one in it. A table that was outgrown is kept until no reader is in it (epochs.h).
/// plan_table.cpp says which thread may see which store.
///
/// The plans belong to the caller. One that was replaced or withdrawn lives until no reader can have it, and until
/// forget().
class PlanTable {
 public:
  PlanTable();

  /// The plan of `key`, or null. No lock, no allocation. The caller is in an epochs::Reading, and uses the plan no
  /// longer than that.
  const LoadedPlan* find(const CallKey& key, uint64_t hash) const;
  /// Makes find() give `plan` for `key`, or what has replaced it. The first plan of a key stays until it is replaced.
  void insert(const CallKey& key, uint64_t hash, const LoadedPlan* plan);
  /// Makes find() give `better` for every key that has `old`, or is given it by a later insert().
  void replace(const LoadedPlan* old, const LoadedPlan* better);
  /// Makes find() give null for every key that has one of `plans`, or is given it by a later insert(), until another is
  /// inserted.
  void withdraw(const std::set<const LoadedPlan*>& plans);
  /// Forgets that `plan` was replaced or withdrawn: nobody will insert it again, and its address may become another's.
  void forget(const LoadedPlan* plan);

  /// How many slots there are. When the table was made, at most six for each key that had a plan, or 256.
  size_t slots();
  /// How many outgrown tables are kept: those that readers may be in, and the last.
  size_t outgrown();

 private:
  // Hash and plan stand in the slot: a probe reads a key only if it is the right one, and the plan need not wait for
  // it.
  struct alignas(32) Slot {  // half a cache line
    std::atomic<uint64_t> hash{0};
    std::atomic<const LoadedPlan*> plan{nullptr};
    std::atomic<size_t> size{0};  ///< Words of the key.
    std::atomic<const CallKey::Word*> key{nullptr};
  };
  // Keys stand close together, so that few pages hold them, and are never moved.
  struct Table {
    explicit Table(size_t size) : slots(size) {}
    const CallKey::Word* keep(std::span<const CallKey::Word> key);

    std::vector<Slot> slots;
    std::vector<std::vector<CallKey::Word>> keys;
    size_t filled = 0;  // slots with a key
  };

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
  void rebuild();

  std::atomic<const Table*> current_;
  std::mutex writing_;
  std::unique_ptr<Table> table_;
  std::map<const LoadedPlan*, const LoadedPlan*> successors_;  // of plans that were replaced; null: withdrawn

  struct Outgrown {
    std::unique_ptr<Table> table;
    uint64_t epoch;
  };
  std::vector<Outgrown> outgrown_;
};

}  // namespace kiln
