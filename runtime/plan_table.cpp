#include "plan_table.h"

#include <algorithm>
#include <cstring>

namespace kiln {
namespace {

constexpr size_t initial_slots = 256;    // a power of two, as all sizes of the table
constexpr size_t words_together = 8192;  // of some 150 keys

}  // namespace

PlanTable::PlanTable() {
  tables_.push_back(std::make_unique<Slots>(initial_slots));
  current_.store(tables_.back().get(), std::memory_order_release);
}

template <class SomeSlots>
auto& PlanTable::slot_of(SomeSlots& slots, std::span<const CallKey::Word> key, uint64_t hash) {
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    auto& slot = slots[i];
    const CallKey::Word* const there = slot.key.load(std::memory_order_acquire);
    if (there == nullptr) return slot;
    if (slot.hash.load(std::memory_order_relaxed) == hash && slot.size.load(std::memory_order_relaxed) == key.size() &&
        std::memcmp(there, key.data(), key.size_bytes()) == 0) {
      return slot;
    }
  }
}

const LoadedPlan* PlanTable::find(const CallKey& key, uint64_t hash) const {
  return slot_of(*current_.load(std::memory_order_acquire), key.words(), hash).plan.load(std::memory_order_acquire);
}

void PlanTable::insert(const CallKey& key, uint64_t hash, std::shared_ptr<const LoadedPlan> plan) {
  const std::lock_guard lock(writing_);
  Slot& slot = slot_of(*tables_.back(), key.words(), hash);
  if (slot.plan.load(std::memory_order_relaxed) != nullptr) return;
  const LoadedPlan* current = plan.get();
  // It may have been replaced or withdrawn between its making and now.
  for (auto found = replaced_.find(current); found != replaced_.end(); found = replaced_.find(current)) {
    current = found->second;
  }
  if (current == nullptr) return;
  kept_.insert(std::move(plan));
  if (slot.key.load(std::memory_order_relaxed) != nullptr) {  // its plan was withdrawn
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
    fill(slot_of(*larger, {key, size}, hash), key, size, hash, slot.plan.load(std::memory_order_relaxed));
  }
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace kiln
