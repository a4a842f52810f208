// cp.async: copies that a thread has issued and that need not have happened yet.
//
// They are carried out as late as PTX allows, when the thread waits for them, so that a kernel which forgets to wait
// reads stale shared memory here as it may on hardware.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernel/instruction.h"

namespace kiln::emulator {

class AsyncCopies {
 public:
  using Addresses = std::array<uint64_t, warp_lanes>;

  struct Copy {
    const Instruction* at = nullptr;  ///< the instruction that issued it
    Mask lanes = 0;                   ///< those whose copy has not been carried out
    uint32_t bytes = 0;
    uint32_t group = 0;  ///< committed groups of the lanes when it was issued
    Addresses to, from, source_bytes;
  };

  void clear();
  /// The next copy, to be filled in but for its group: of `source_bytes[lane]` bytes, and zeros up to `bytes`, for each
  /// lane in `lanes`.
  Copy& next();
  /// The same, to be read while it is looked at.
  const Copy& coming() const { return copies_[end_]; }
  /// Issues it.
  void issue();
  void commit(Mask lanes);
  /// Calls complete(copy, lanes due) for all but the `pending` latest committed groups of each lane, and forgets them.
  template <class Complete>
  void take(Mask lanes, uint32_t pending, Complete complete);
  /// The same of everything, committed or not.
  template <class Complete>
  void take_all(Mask lanes, Complete complete);

 private:
  /// Whether all of `lanes` have committed the same groups, which only odd kernels do otherwise.
  bool alike(Mask lanes) const { return alike_ && (lanes & ~committers_) == 0; }
  Mask due(const Copy& copy, Mask lanes, uint32_t pending) const;
  void forget_complete();

  // In the order of issue, from `first_` to `end_`. Those without lanes are complete; those behind are used again.
  std::vector<Copy> copies_;
  size_t first_ = 0, end_ = 0;
  std::array<uint32_t, warp_lanes> committed_{};
  Mask committers_ = 0;  // the lanes of the first commit
  bool alike_ = true;    // and of all others
};

/// Writes to `to` what a lane's copy of `bytes` brings.
inline void bring(const AsyncCopies::Copy& copy, size_t lane, uint32_t bytes, std::byte* to) {
  const auto* const from = reinterpret_cast<const std::byte*>(copy.from[lane]);
  const uint64_t wanted = copy.source_bytes[lane];
  if (wanted >= bytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  std::memset(to, 0, bytes);
  if (wanted != 0) std::memcpy(to, from, wanted);
}

template <class Complete>
void AsyncCopies::take(Mask lanes, uint32_t pending, Complete complete) {
  for (size_t k = first_; k < end_; ++k) {
    Copy& copy = copies_[k];
    const Mask ready = due(copy, copy.lanes & lanes, pending);
    if (ready == 0) continue;
    copy.lanes &= ~ready;
    complete(copy, ready);
  }
  forget_complete();
}

template <class Complete>
void AsyncCopies::take_all(Mask lanes, Complete complete) {
  for (size_t k = first_; k < end_; ++k) {
    Copy& copy = copies_[k];
    const Mask ready = copy.lanes & lanes;
    if (ready == 0) continue;
    copy.lanes &= ~ready;
    complete(copy, ready);
  }
  forget_complete();
}

}  // namespace kiln::emulator
