// Vector clocks: each thread's knowledge of the block's other threads, for kernels that synchronise in parts.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "kernel/instruction.h"

namespace kiln::emulator {

/// For every pair of threads, up to which time the one has been synchronised with the other. Times are those of
/// SharedShadow, which grow from one synchronisation to the next and never repeat within a launch; a thread that has
/// never been heard of is at 0.
///
/// Kernels that use nothing but barriers of the whole block and synchronisations of whole warps need none of this.
class ThreadClocks {
 public:
  using Clock = std::vector<uint32_t>;  ///< by thread

  explicit ThreadClocks(uint32_t threads);
  void begin_block();

  /// Whether what thread `other` did at `time` comes before what `thread` does now.
  bool knows(uint32_t thread, uint32_t other, uint32_t time) const { return known(thread, other) >= time; }
  /// The latest such time.
  uint32_t known(uint32_t thread, uint32_t other) const { return known_[thread][other]; }

  /// `lanes` of the warp that begins with thread `first` meet at `now`: each knows what any of them knew.
  void meet(uint32_t first, Mask lanes, uint32_t now);
  /// The lanes arrive at a barrier: whoever leaves it later knows what they know now.
  void arrive(uint32_t barrier, uint32_t first, Mask lanes, uint32_t now);
  void leave(uint32_t barrier, uint32_t first, Mask lanes);
  void forget(uint32_t barrier) { barriers_[barrier].clear(); }

  // The halves of a memory fence: what the thread's earlier strong reads have found published it now knows, and its
  // later strong writes publish what it knows now.
  void acquire(uint32_t thread);
  void release(uint32_t thread, uint32_t now);
  /// A strong write. `releases`: it is its own fence.
  void publish(uint32_t thread, uint64_t address, bool releases, uint32_t now);
  /// A strong read. `acquires`: it is its own fence.
  void observe(uint32_t thread, uint64_t address, bool acquires);

 private:
  static void join(Clock& to, const Clock& from);

  std::vector<Clock> known_;
  std::vector<Clock> fenced_, observed_;  // by thread; empty until needed
  std::vector<Clock> barriers_;
  std::map<uint64_t, Clock> published_;  // by address
};

}  // namespace kiln::emulator
