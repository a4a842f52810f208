#include "plan_table.h"

namespace kiln {
namespace {

constexpr size_t initial_slots = 256;  // a power of two, as all sizes of the table

}  // namespace

PlanTable::PlanTable() {
  tables_.push_back(std::make_unique<Slots>(initial_slots));
  current_.store(tables_.back().get(), std::memory_order_release);
}

PlanTable::Entry* PlanTable::entry_of(const CallKey& key, uint64_t hash) const {
  const Slots& slots = *current_.load(std::memory_order_acquire);
  const size_t mask = slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    Entry* entry = slots[i].entry.load(std::memory_order_acquire);
    if (entry == nullptr) return nullptr;
    if (slots[i].hash.load(std::memory_order_relaxed) == hash && entry->key == key) return entry;
  }
}

const LoadedPlan* PlanTable::find(const CallKey& key, uint64_t hash) const {
  const Entry* const entry = entry_of(key, hash);
  return entry == nullptr ? nullptr : entry->plan.load(std::memory_order_acquire);
}

void PlanTable::insert(const CallKey& key, uint64_t hash, std::shared_ptr<const LoadedPlan> plan) {
  const std::lock_guard lock(writing_);
  Entry* const there = entry_of(key, hash);
  if (there != nullptr && there->plan.load(std::memory_order_relaxed) != nullptr) return;
  const LoadedPlan* current = plan.get();
  // It may have been replaced or withdrawn between its making and now.
  for (auto found = replaced_.find(current); found != replaced_.end(); found = replaced_.find(current)) {
    current = found->second;
  }
  if (current == nullptr) return;
  kept_.insert(std::move(plan));
  if (there != nullptr) {  // its plan was withdrawn
    there->plan.store(current, std::memory_order_release);
    return;
  }
  entries_.push_back(std::make_unique<Entry>(hash, key, current));
  if (entries_.size() * 2 <= tables_.back()->size()) {
    place(*tables_.back(), *entries_.back());
    return;
  }
  auto larger = std::make_unique<Slots>(tables_.back()->size() * 2);
  for (const auto& entry : entries_) place(*larger, *entry);
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

void PlanTable::replace(const std::shared_ptr<const LoadedPlan>& old, const std::shared_ptr<const LoadedPlan>& better) {
  const std::lock_guard lock(writing_);
  kept_.insert({old, better});
  replaced_[old.get()] = better.get();
  for (const auto& entry : entries_) {
    if (entry->plan.load(std::memory_order_relaxed) == old.get()) {
      entry->plan.store(better.get(), std::memory_order_release);
    }
  }
}

void PlanTable::withdraw(const std::shared_ptr<const LoadedPlan>& plan) {
  const std::lock_guard lock(writing_);
  kept_.insert(plan);
  replaced_[plan.get()] = nullptr;
  for (const auto& entry : entries_) {
    if (entry->plan.load(std::memory_order_relaxed) == plan.get())
      entry->plan.store(nullptr, std::memory_order_release);
  }
}

void PlanTable::place(Slots& slots, Entry& entry) {
  const size_t mask = slots.size() - 1;
  size_t i = entry.hash & mask;
  while (slots[i].entry.load(std::memory_order_relaxed) != nullptr) i = (i + 1) & mask;
  slots[i].hash.store(entry.hash, std::memory_order_relaxed);
  slots[i].entry.store(&entry, std::memory_order_release);
}

}  // namespace kiln
