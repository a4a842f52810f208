#include "plan_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "epochs.h"

namespace kiln {
namespace {

constexpr size_t initial_slots = 256;    // a power of two, as all sizes of the table
constexpr size_t words_together = 8192;  // of some 150 keys

}  // namespace

// Writers hold `writing_`, so they see each other's stores. A reader (R) runs beside one writer (W). Its only loads are
// those of `current_`, and of `key`, `hash`, `size` and `plan` of the slots that it probes, in this order. Who may see
// which store:
//
// - insert() into an empty slot. W stores hash, size and plan, then key with release. If R's load of key (acquire)
//   gives W's pointer, then R sees W's words, hash, size, and W's plan or a later one. If it gives null, the key is not
//   there, and R must give null without another load of this slot: W may fill it next, for any key, and each of its
//   stores may become visible at any time, `plan` before `key` as well.
// - Slots are filled in probing order, and neither emptied nor moved in their table. So if R sees a later slot of a
//   chain filled, and its own key's slot empty, then its key was not there when that load was made.
// - rebuild(). W copies what has a plan into a table that nobody else can reach, then stores `current_` with release. R
//   is in the old table or sees the new one complete. Nothing is written to an outgrown table: an R in it gives what
//   was right when it loaded `current_`. In one thread, and in threads that have synchronised, a later find() never
//   goes back to an older table, because loads of one atomic variable respect its order of modification. R is in a
//   Reading, so the old table, and the plans that were in it, are freed when R cannot be in it any more.
// - replace(), withdraw(). W stores plan (release) into slots whose key stays. R's load of plan (acquire) gives the old
//   plan, which lives until R's Reading ends, or the new one with all that was written to it. Plans of one slot are
//   only seen in the order in which they were stored.
// - insert() after withdraw(). Where the slot still has its key, and a null plan, W stores plan alone (release). R
//   gives null or that plan.
// - insert() beside replace() or withdraw(), by a thread that was given a plan before it was replaced: both hold
//   `writing_`, and whichever is second applies `successors_`.

PlanTable::PlanTable() : table_(std::make_unique<Table>(initial_slots)) {
  current_.store(table_.get(), std::memory_order_release);
}

template <class SomeSlot>
PlanTable::Place<SomeSlot> PlanTable::place_of(std::span<SomeSlot> slots, std::span<const CallKey::Word> key,
                                               uint64_t hash) {
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    SomeSlot& slot = slots[i];
    const CallKey::Word* const there = slot.key.load(std::memory_order_acquire);
    if (there == nullptr) return {slot, false};
    if (slot.hash.load(std::memory_order_relaxed) == hash && slot.size.load(std::memory_order_relaxed) == key.size() &&
        std::memcmp(there, key.data(), key.size_bytes()) == 0) {
      return {slot, true};
    }
  }
}

const LoadedPlan* PlanTable::find(const CallKey& key, uint64_t hash) const {
  const Table& table = *current_.load(std::memory_order_acquire);
  const auto [slot, has_key] = place_of<const Slot>(table.slots, key.words(), hash);
  return has_key ? slot.plan.load(std::memory_order_acquire) : nullptr;
}

void PlanTable::insert(const CallKey& key, uint64_t hash, const LoadedPlan* plan) {
  const std::lock_guard lock(writing_);
  const auto [slot, has_key] = place_of<Slot>(table_->slots, key.words(), hash);
  if (slot.plan.load(std::memory_order_relaxed) != nullptr) return;
  // It may have been replaced or withdrawn between its making and now.
  for (auto found = successors_.find(plan); found != successors_.end(); found = successors_.find(plan)) {
    plan = found->second;
  }
  if (plan == nullptr) return;
  if (has_key) {  // its plan was withdrawn
    slot.plan.store(plan, std::memory_order_release);
    return;
  }
  // Room first: where memory runs out, the key is left out, and chains still have an end.
  const bool is_full = (table_->filled + 1) * 2 > table_->slots.size();
  if (is_full) rebuild();
  Slot& free = is_full ? place_of<Slot>(table_->slots, key.words(), hash).slot : slot;
  fill(free, table_->keep(key.words()), key.words().size(), hash, plan);
  ++table_->filled;
}

void PlanTable::replace(const LoadedPlan* old, const LoadedPlan* better) {
  const std::lock_guard lock(writing_);
  successors_[old] = better;
  for (Slot& slot : table_->slots) {
    if (slot.plan.load(std::memory_order_relaxed) == old) slot.plan.store(better, std::memory_order_release);
  }
}

void PlanTable::withdraw(const std::set<const LoadedPlan*>& plans) {
  const std::lock_guard lock(writing_);
  // All or nothing, where memory runs out: they are current, so none has a successor yet.
  std::map<const LoadedPlan*, const LoadedPlan*> without;
  for (const LoadedPlan* plan : plans) without[plan] = nullptr;
  successors_.merge(without);
  for (Slot& slot : table_->slots) {
    if (plans.contains(slot.plan.load(std::memory_order_relaxed))) {
      slot.plan.store(nullptr, std::memory_order_release);
    }
  }
}

void PlanTable::forget(const LoadedPlan* plan) {
  const std::lock_guard lock(writing_);
  successors_.erase(plan);
  for (auto& [old, successor] : successors_) {
    if (successor == plan) successor = nullptr;
  }
}

size_t PlanTable::outgrown() {
  const std::lock_guard lock(writing_);
  return outgrown_.size();
}

size_t PlanTable::slots() {
  const std::lock_guard lock(writing_);
  return table_->slots.size();
}

const CallKey::Word* PlanTable::Table::keep(std::span<const CallKey::Word> key) {
  if (keys.empty() || keys.back().capacity() - keys.back().size() < key.size()) {
    keys.emplace_back().reserve(std::max(words_together, key.size()));
  }
  std::vector<CallKey::Word>& words = keys.back();
  words.insert(words.end(), key.begin(), key.end());
  return &words[words.size() - key.size()];
}

void PlanTable::fill(Slot& slot, const CallKey::Word* key, size_t size, uint64_t hash, const LoadedPlan* plan) {
  slot.hash.store(hash, std::memory_order_relaxed);
  slot.size.store(size, std::memory_order_relaxed);
  slot.plan.store(plan, std::memory_order_relaxed);
  slot.key.store(key, std::memory_order_release);
}

// Makes a table of the keys that have a plan: larger if these are many, smaller if most were withdrawn.
void PlanTable::rebuild() {
  outgrown_.reserve(outgrown_.size() + 1);  // nothing may fail once a reader may be in the old table
  const auto has_plan = [](const Slot& slot) { return slot.plan.load(std::memory_order_relaxed) != nullptr; };
  const auto keys = static_cast<size_t>(std::ranges::count_if(table_->slots, has_plan));
  auto next = std::make_unique<Table>(std::max(initial_slots, std::bit_ceil(keys * 3)));
  for (const Slot& slot : table_->slots) {
    if (!has_plan(slot)) continue;
    const std::span key(slot.key.load(std::memory_order_relaxed), slot.size.load(std::memory_order_relaxed));
    const uint64_t hash = slot.hash.load(std::memory_order_relaxed);
    fill(place_of<Slot>(next->slots, key, hash).slot, next->keep(key), key.size(), hash,
         slot.plan.load(std::memory_order_relaxed));
  }
  next->filled = keys;
  current_.store(next.get(), std::memory_order_release);
  const uint64_t safe = epochs::safe_epoch();
  std::erase_if(outgrown_, [&](const Outgrown& old) { return old.epoch <= safe; });
  outgrown_.push_back({std::exchange(table_, std::move(next)), epochs::retire()});
}

}  // namespace kiln
