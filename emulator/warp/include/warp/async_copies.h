// cp.async: copies that a thread has issued and that need not have happened yet.
//
// They are carried out as late as PTX allows, when the thread waits for them, so that a kernel which forgets to wait
// reads stale shared memory here as it may on hardware.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <deque>

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
  /// Copies `source_bytes[lane]` bytes and fills up to `bytes` with zeros, for each lane in `lanes`. `at` issued it.
  void issue(const Instruction* at, Mask lanes, uint32_t bytes, const Addresses& to, const Addresses& from,
             const Addresses& source_bytes);
  void commit(Mask lanes);
  /// Calls complete(copy, lanes due) for all but the `pending` latest committed groups of each lane, and forgets them.
  template <class Complete>
  void take(Mask lanes, uint32_t pending, Complete complete);
  /// The same of everything, committed or not.
  template <class Complete>
  void take_all(Mask lanes, Complete complete);

 private:
  bool is_due(const Copy& copy, uint32_t lane, uint32_t pending) const {
    return uint64_t{copy.group} + pending < committed_[lane];
  }

  std::deque<Copy> copies_;
  std::array<uint32_t, warp_lanes> committed_{};
};

template <class Complete>
void AsyncCopies::take(Mask lanes, uint32_t pending, Complete complete) {
  for (Copy& copy : copies_) {
    Mask due = 0;
    for (Mask rest = copy.lanes & lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<uint32_t>(std::countr_zero(rest));
      if (is_due(copy, lane, pending)) due |= Mask{1} << lane;
    }
    copy.lanes &= ~due;
    complete(copy, due);
  }
  std::erase_if(copies_, [](const Copy& copy) { return copy.lanes == 0; });
}

template <class Complete>
void AsyncCopies::take_all(Mask lanes, Complete complete) {
  for (Copy& copy : copies_) {
    const Mask due = copy.lanes & lanes;
    copy.lanes &= ~due;
    complete(copy, due);
  }
  std::erase_if(copies_, [](const Copy& copy) { return copy.lanes == 0; });
}

}  // namespace kiln::emulator
