#include "winner_table.h"

#include <algorithm>
#include <cstring>

namespace kiln::cache {

void* Arena::allocate(std::size_t bytes, std::size_t alignment) {
  constexpr std::size_t chunk = std::size_t{256} << 10;
  const auto padding = [&] { return -reinterpret_cast<std::uintptr_t>(next_) & (alignment - 1); };
  if (left_ < bytes + padding()) {
    left_ = std::max(chunk, bytes + alignment);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
    next_ = chunks_.back().get();
  }
  const std::size_t skip = padding();
  std::byte* result = next_ + skip;
  next_ = result + bytes;
  left_ -= skip + bytes;
  return result;
}

std::string_view Arena::copy(std::string_view text) {
  if (text.empty()) return {};
  char* out = static_cast<char*>(allocate(text.size(), 1));
  std::memcpy(out, text.data(), text.size());
  return {out, text.size()};
}

WinnerTable::WinnerTable() {
  constexpr std::size_t initial = 1024;
  tables_.push_back(std::make_unique<Slots>(initial));
  current_.store(tables_.back().get(), std::memory_order_release);
}

const WinnerGroup* WinnerTable::find(KeyHash key) const {
  const Slots& table = *current_.load(std::memory_order_acquire);
  for (std::size_t at = key.low & table.mask;; at = (at + 1) & table.mask) {
    const Slot& slot = table.slots[at];
    const WinnerGroup* head = slot.head.load(std::memory_order_acquire);
    if (head == nullptr || slot.key == key) return head;
  }
}

WinnerTable::Slot& WinnerTable::slot_of(Slots& table, KeyHash key) {
  std::size_t at = key.low & table.mask;
  while (table.slots[at].head.load(std::memory_order_relaxed) != nullptr && table.slots[at].key != key) {
    at = (at + 1) & table.mask;
  }
  return table.slots[at];
}

void WinnerTable::publish(KeyHash key, const WinnerGroup* head) {
  if (4 * (used_ + 1) > 3 * tables_.back()->slots.size()) grow();  // at most three quarters full
  Slot& slot = slot_of(*tables_.back(), key);
  if (slot.head.load(std::memory_order_relaxed) == nullptr) {
    slot.key = key;
    ++used_;
  }
  slot.head.store(head, std::memory_order_release);
}

void WinnerTable::grow() {
  auto larger = std::make_unique<Slots>(2 * tables_.back()->slots.size());
  for (const Slot& slot : tables_.back()->slots) {
    const WinnerGroup* head = slot.head.load(std::memory_order_relaxed);
    if (head == nullptr) continue;
    Slot& target = slot_of(*larger, slot.key);
    target.key = slot.key;
    target.head.store(head, std::memory_order_relaxed);
  }
  tables_.push_back(std::move(larger));
  current_.store(tables_.back().get(), std::memory_order_release);
}

}  // namespace kiln::cache
