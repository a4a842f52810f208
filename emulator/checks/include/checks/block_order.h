// Which blocks of a launch come after which: a release by one and an acquire by the other, through memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "checks/shared_shadow.h"

namespace kiln::emulator {

/// Times by thread of a block: everything that the thread did before its time is known. Times are counted from the
/// block's beginning (SharedShadow::since_start).
using BlockClock = std::vector<uint32_t>;

/// Clocks of several blocks, in ascending order. A clock never changes.
using LaunchClock = std::vector<std::pair<uint64_t, std::shared_ptr<const BlockClock>>>;

/// Clocks that the threads of a launch have released, by the address that they stored to. Thread-safe: all host threads
/// of the launch share it.
class ReleaseTable {
 public:
  void publish(uint64_t address, const LaunchClock& clock);
  /// All that has been published there; null if nothing has.
  std::shared_ptr<const LaunchClock> at(uint64_t address) const;

 private:
  mutable std::mutex mutex_;
  std::unordered_map<uint64_t, std::shared_ptr<const LaunchClock>> published_;
};

/// Knowledge that the threads of a block have of other blocks. Each host thread has one, for the block that it runs.
///
/// A release is a fence and then a strong write, an acquire a strong read and then a fence; either may be one
/// instruction. They carry vector clocks of (block, thread), as exact as those inside of a block: a release
/// publishes what its thread knew at the fence, of its own block's threads as well as of other blocks, and an acquire
/// reaches those threads of its block that have synchronised with the acquiring one since. Fences and accesses of scope
/// cta are not told to this class.
class BlockOrder {
 public:
  /// `time`: of the block, with clocks.
  BlockOrder(ReleaseTable& releases, const SharedShadow& time, uint32_t threads);

  void begin_block(uint64_t number);

  // Events, after SharedShadow has been told the same. settle() stands before every instruction's accesses: what
  // earlier acquires have read has been published by then.
  void settle();
  void fenced(uint32_t first, Mask lanes, uint8_t order);  // MemoryOrder bits
  void published(uint32_t thread, uint64_t address, bool releases);
  void observed(uint32_t thread, uint64_t address, bool acquires);

  /// Whether what thread `other` of another block did at `time` comes before what `thread` does now.
  bool knows(uint32_t thread, uint64_t block, uint32_t other, uint32_t time);
  /// Whether any thread of this block has learnt anything of another one.
  bool has_acquired();

 private:
  struct Acquired {
    uint32_t thread = 0, time = 0;
    std::shared_ptr<const LaunchClock> clock;
  };
  struct Acquire {
    uint32_t thread = 0, time = 0;
    uint64_t address = 0;
  };

  void acquire(const Acquire& from);
  LaunchClock known_to(uint32_t thread) const;

  ReleaseTable& releases_;
  const SharedShadow& time_;
  uint64_t block_ = 0;
  std::vector<Acquired> acquired_;
  std::vector<Acquire> unsettled_;            // noted before they had read anything
  std::vector<LaunchClock> fenced_;           // by thread: what it knew at its last fence; empty without one
  std::vector<std::set<uint64_t>> observed_;  // by thread: where it has read strongly since
};

}  // namespace kiln::emulator
