#include "plan_table.h"

#include <algorithm>
#include <cstring>

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
// - growth. W copies all entries into a table that nobody else can reach, then stores `current_` with release. R is in
//   the old table or sees the new one complete. Nothing is written to an outgrown table: an R in it gives what was
//   right when it loaded `current_`. In one thread, and in threads that have synchronised, a later find() never goes
//   back to an older table, because loads of one atomic variable respect its order of modification.
// - replace(), withdraw(). W stores plan (release) into slots whose key stays. R's load of plan (acquire) gives the old
//   plan, which is kept for ever, or the new one with all that was written to it. Plans of one slot are only seen in
//   the order in which they were stored.
// - insert() after withdraw(). The slot still has its key and a null plan: W stores plan alone (release). R gives null
//   or that plan.
// - insert() beside replace() or withdraw(), by a thread that was given a plan before it was replaced: both hold
//   `writing_`, and whichever is second applies `replaced_`.

PlanTable::PlanTable() {
  tables_.push_back(std::make_unique<Slots>(initial_slots));
  current_.store(tables_.back().get(), std::memory_order_release);
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
  const auto [slot, has_key] = place_of<const Slot>(*current_.load(std::memory_order_acquire), key.words(), hash);
  return has_key ? slot.plan.load(std::memory_order_acquire) : nullptr;
}

void PlanTable::insert(const CallKey& key, uint64_t hash, std::shared_ptr<const LoadedPlan> plan) {
  const std::lock_guard lock(writing_);
  const auto [slot, has_key] = place_of<Slot>(*tables_.back(), key.words(), hash);
  if (slot.plan.load(std::memory_order_relaxed) != nullptr) return;
  const LoadedPlan* current = plan.get();
  // It may have been replaced or withdrawn between its making and now.
  for (auto found = replaced_.find(current); found != replaced_.end(); found = replaced_.find(current)) {
    current = found->second;
  }
  if (current == nullptr) return;
  kept_.insert(std::move(plan));
  if (has_key) {  // its plan was withdrawn
    slot.plan.store(current, std::memory_order_release);
    return;
  }
  fill(slot, keep(key.words()), key.words().size(), hash, current);
  if (++count_ * 2 > tables_.back()->size()) grow();
}

void PlanTable::replace(const std::shared_ptr<const LoadedPlan>& old, const std::shared_ptr<const LoadedPlan>& better) {
  const std::lock_guard lock(writing_);
  kept_.insert({old, better});
  change(old.get(), better.get());
}

void PlanTable::withdraw(const std::shared_ptr<const LoadedPlan>& plan) {
  const std::lock_guard lock(writing_);
  kept_.insert(plan);
  change(plan.get(), nullptr);
}

void PlanTable::change(const LoadedPlan* from, const LoadedPlan* to) {
  replaced_[from] = to;
  for (Slot& slot : *tables_.back()) {
    if (slot.plan.load(std::memory_order_relaxed) == from) slot.plan.store(to, std::memory_order_release);
  }
}

const CallKey::Word* PlanTable::keep(std::span<const CallKey::Word> key) {
  if (keys_.empty() || keys_.back().capacity() - keys_.back().size() < key.size()) {
    keys_.emplace_back().reserve(std::max(words_together, key.size()));
  }
  std::vector<CallKey::Word>& words = keys_.back();
  words.insert(words.end(), key.begin(), key.end());
  return &words[words.size() - key.size()];
}

void PlanTable::fill(Slot& slot, const CallKey::Word* key, size_t size, uint64_t hash, const LoadedPlan* plan) {
  slot.hash.store(hash, std::memory_order_relaxed);
  slot.size.store(size, std::memory_order_relaxed);
  slot.plan.store(plan, std::memory_order_relaxed);
  slot.key.store(key, std::memory_order_release);
}

void PlanTable::grow() {
  const Slots& old = *tables_.back();
  auto larger = std::make_unique<Slots>(old.size() * 2);
  for (const Slot& slot : old) {
    const CallKey::Word* const key = slot.key.load(std::memory_order_relaxed);
    if (key == nullptr) continue;
    const size_t size = slot.size.load(std::memory_order_relaxed);
    const uint64_t hash = slot.hash.load(std::memory_order_relaxed);
    fill(place_of<Slot>(*larger, {key, size}, hash).slot, key, size, hash, slot.plan.load(std::memory_order_relaxed));
  }
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace kiln
