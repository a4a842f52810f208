// The instruction caches of one SM: L0 of each scheduler, and the one behind them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kiln/timing/card.h"

namespace kiln::timing {

/// A cache of whole lines; each line remembers when it is there.
class LineCache {
 public:
  explicit LineCache(uint32_t lines) : sets_(std::max(1U, lines / ways)), entries_(sets_ * ways) {}

  /// When the line is there; nullptr if it was not asked for.
  const uint64_t* find(uint32_t line, uint64_t now) {
    Entry* first = &entries_[line % sets_ * ways];
    for (Entry* entry = first; entry != first + ways; ++entry) {
      if (entry->line != line) continue;
      entry->used = now;
      return &entry->ready;
    }
    return nullptr;
  }

  void add(uint32_t line, uint64_t now, uint64_t ready) {
    Entry* first = &entries_[line % sets_ * ways];
    Entry* oldest = first;
    for (Entry* entry = first; entry != first + ways; ++entry) {
      if (entry->used < oldest->used) oldest = entry;
    }
    *oldest = {line, now, ready};
  }

 private:
  static constexpr uint32_t ways = 4;
  struct Entry {
    uint32_t line = ~uint32_t{0};
    uint64_t used = 0, ready = 0;
  };
  uint32_t sets_;
  std::vector<Entry> entries_;
};

class InstructionCaches {
 public:
  explicit InstructionCaches(const Card& card, uint32_t lines)
      : card_(card), lines_(lines), l0_(4, LineCache(card.l0_bytes / 128)), l1_(card.l1i_bytes / 128) {}

  /// The cycle from which scheduler `s` has the line; lines that follow are fetched ahead.
  uint64_t ready(uint32_t s, uint32_t line, uint64_t now) {
    const uint64_t there = fetch(s, line, now);
    for (uint32_t ahead = 1; ahead <= card_.prefetch_lines && line + ahead < lines_; ++ahead)
      fetch(s, line + ahead, now);
    return there;
  }

  /// Cycles in which the common cache gave lines to those of the schedulers.
  uint64_t busy() const { return busy_; }

 private:
  uint64_t fetch(uint32_t s, uint32_t line, uint64_t now) {
    if (const uint64_t* there = l0_[s].find(line, now)) return *there;
    uint64_t begin = now;
    if (const uint64_t* behind = l1_.find(line, now)) {
      begin = std::max(begin, *behind);
    } else {
      l1_free_ = std::max(l1_free_, now) + card_.l2i_cycles;
      begin = l1_free_ + card_.l2i_latency;
      l1_.add(line, now, begin);
    }
    port_free_ = std::max(port_free_, now) + card_.l1i_cycles;
    busy_ += card_.l1i_cycles;
    const uint64_t there = std::max(begin, port_free_) + card_.l1i_latency;
    l0_[s].add(line, now, there);
    return there;
  }

  const Card& card_;
  uint32_t lines_;
  std::vector<LineCache> l0_;
  LineCache l1_;
  uint64_t port_free_ = 0;  // from the common cache to those of the schedulers
  uint64_t l1_free_ = 0, busy_ = 0;
};

}  // namespace kiln::timing
