// Memory behind the load/store unit of one SM: L1, and its share of L2 and DRAM.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kiln/timing/card.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/replay.h"

namespace kiln::timing {

/// A queue that takes a number of bytes a cycle. In units of 1/256 cycle, so that it needs no floating point.
class Throughput {
 public:
  explicit Throughput(double bytes_per_cycle) : cost_(static_cast<uint64_t>(256 / bytes_per_cycle * 256)) {}

  /// The cycle in which `bytes` that come at `now` have passed.
  uint64_t pass(uint64_t now, uint64_t bytes) {
    begin_ = std::max(now << 16, free_);
    free_ = begin_ + bytes * cost_;
    busy_ += bytes * cost_;
    return free_ >> 16;
  }
  /// The cycle in which what comes at `now` would begin to pass.
  uint64_t begin(uint64_t now) const { return std::max(now, free_ >> 16); }
  /// When the latest began and ended to pass, in 1/65536 of a cycle.
  std::pair<uint64_t, uint64_t> latest() const { return {begin_, free_}; }
  uint64_t busy() const { return busy_ >> 16; }

 private:
  uint64_t cost_, begin_ = 0, free_ = 0, busy_ = 0;
};

class MemorySystem {
 public:
  MemorySystem(const Card& card, const ReplaySetup& setup);

  /// The cycle in which the last sector of a load of `block` that reaches L1 at `now` is there. `offset` is added to
  /// its addresses; one that `bypasses` takes nothing from L1 and leaves nothing there.
  uint64_t load(uint64_t now, uint32_t block, const Access& access, const Line* lines, uint64_t offset, bool bypasses);
  /// A store goes to L2; a local one stays in L1 as well.
  void store(uint64_t now, const Access& access, const Line* lines, uint64_t offset, bool stays);

  /// When `bytes` that are copied in bulk have come from L2, and where it lacks some, from DRAM.
  uint64_t load_in_bulk(uint64_t now, uint64_t bytes);
  /// When `bytes` have gone to L2.
  uint64_t store_in_bulk(uint64_t now, uint64_t bytes);

  /// The cycle in which all that was loaded and stored has passed.
  uint64_t passed() const { return std::max(to_l2_.latest().second, to_dram_.latest().second) >> 16; }

  void count(ReplayResult& result) const;
  void stop_trace() { trace_ = nullptr; }

 private:
  struct Entry {
    uint64_t line = ~uint64_t{0};
    uint64_t used = 0, ready = 0;
    uint32_t sectors = 0;
  };

  Entry& entry_of(uint64_t line, uint64_t now);
  uint64_t pass(bool dram, uint64_t now, uint64_t bytes);
  uint32_t share_of_dram(uint64_t line) const;
  uint32_t sectors_from_dram(uint32_t block, uint64_t line, uint32_t sectors, bool local);
  uint64_t fetch(uint64_t now, uint32_t block, uint64_t line, uint32_t sectors, bool local);
  uint64_t arrival_in_first_wave(uint64_t sector, uint64_t passed, uint64_t arrives);

  const Card& card_;
  std::vector<DramShare> dram_;
  uint32_t local_dram_, bulk_dram_;
  ReplayTrace* trace_;
  std::vector<Entry> entries_;
  uint32_t first_wave_;
  AddressRanges in_l2_;
  std::unordered_map<uint64_t, uint64_t> first_;    // arrival of the first wave's sectors, by address
  std::unordered_map<uint64_t, uint32_t> brought_;  // from DRAM: sectors by line and block
  std::unordered_map<uint64_t, uint32_t> stored_;   // to L2: sectors by line
  uint64_t sets_;
  Throughput to_l2_, to_dram_;
  Throughput from_dram_;  // loads alone: stores wait in L2 until DRAM has nothing to load
  uint64_t bulk_bytes_ = 0;
  uint64_t l1_sectors_ = 0, l2_sectors_ = 0, bypassing_sectors_ = 0, dram_read_ = 0, written_ = 0, dram_written_ = 0;
};

}  // namespace kiln::timing
