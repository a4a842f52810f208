// cp.async: copies that a thread has issued and that need not have happened yet.
//
// They are carried out as late as PTX allows, when the thread waits for them, so that a kernel which forgets to wait
// reads stale shared memory here as it may on hardware.
#pragma once

#include <array>
#include <cstdint>
#include <deque>

#include "decode/instruction.h"

namespace kiln::emulator {

struct Warp;

class AsyncCopies {
 public:
  using Addresses = std::array<uint64_t, warp_lanes>;

  void clear();
  /// Copies `source_bytes[lane]` bytes and fills up to `bytes` with zeros, for each lane in `lanes`. `at` issued it.
  void issue(const Instruction* at, Mask lanes, uint32_t bytes, const Addresses& to, const Addresses& from,
             const Addresses& source_bytes);
  void commit(Mask lanes);
  /// Completes all but the `pending` latest committed groups of each lane.
  void wait(const Warp& warp, Mask lanes, uint32_t pending);
  /// Completes everything, committed or not.
  void wait_all(const Warp& warp, Mask lanes);

 private:
  struct Copy {
    const Instruction* at = nullptr;
    Mask lanes = 0;
    uint32_t bytes = 0;
    uint32_t group = 0;  // the lanes' number of committed groups when it was issued
    Addresses to, from, source_bytes;
  };
  static void complete(const Warp& warp, Copy& copy, Mask lanes);

  std::deque<Copy> copies_;
  std::array<uint32_t, warp_lanes> committed_{};
};

}  // namespace kiln::emulator
