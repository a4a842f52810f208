// Things that happen at a cycle, in the order of cycles, for those not far ahead.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace kiln::timing {

struct Event {
  uint64_t cycle = 0;
  uint32_t age = 0;  // of the warp, whose place another may have taken since; or which effect
  uint16_t warp = 0;
  uint8_t counter = 0;  // Events::wake, Events::effect, or the counter that is released
  int32_t next = -1;
};

/// Events of the same cycle come in the reverse order of their adding; the same adding gives the same order.
class Events {
 public:
  static constexpr uint8_t wake = 15, effect = 14;

  /// `event.cycle` is not before the one after `now`.
  void add(uint64_t now, Event event) {
    event.cycle = std::max(event.cycle, now + 1);
    const uint64_t due = event.cycle;
    const uint64_t place = std::min(due, now + span - 1) % span;  // those further ahead are looked at again then
    int32_t index = free_;
    if (index >= 0) {
      free_ = pool_[index].next;
    } else {
      index = static_cast<int32_t>(pool_.size());
      pool_.emplace_back();
    }
    event.next = first_[place] - 1;
    pool_[index] = event;
    first_[place] = index + 1;
    used_[place / 64] |= uint64_t{1} << (place % 64);
    ++count_;
  }

  bool empty() const { return count_ == 0; }

  /// Calls use(event) for those of `now`.
  template <class Use>
  void take(uint64_t now, const Use& use) {
    const uint64_t place = now % span;
    if ((used_[place / 64] >> (place % 64) & 1) == 0) return;
    int32_t index = first_[place] - 1;
    first_[place] = 0;
    used_[place / 64] &= ~(uint64_t{1} << (place % 64));
    while (index >= 0) {
      const Event event = pool_[index];
      pool_[index].next = free_;
      free_ = index;
      --count_;
      if (event.cycle > now) {
        add(now, event);
      } else {
        use(event);
      }
      index = event.next;
    }
  }

  /// The next cycle after `now` that has an event; there has to be one.
  uint64_t next(uint64_t now) const {
    for (uint64_t cycle = now + 1;;) {
      const uint64_t place = cycle % span;
      const uint64_t rest = used_[place / 64] >> (place % 64);
      if (rest != 0) return cycle + static_cast<uint64_t>(std::countr_zero(rest));
      cycle += 64 - place % 64;
    }
  }

 private:
  static constexpr uint64_t span = 4096;
  std::array<int32_t, span> first_{};  // index + 1
  std::array<uint64_t, span / 64> used_{};
  std::vector<Event> pool_;
  int32_t free_ = -1;
  uint64_t count_ = 0;
};

}  // namespace kiln::timing
