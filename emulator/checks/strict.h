// The checks of CheckLevel::full: races and uninitialised reads of shared memory, uninitialised reads of global memory,
// and barriers that a block's threads meet at different places.
#pragma once

#include <cstdint>

#include "checks/access.h"
#include "checks/shared_shadow.h"
#include "scheduler/warp.h"

namespace kiln::emulator {

/// Of the blocks that one host thread runs. Every function that returns a bool or an instruction has recorded the
/// block's fault when that is false or null.
class StrictChecks {
 public:
  StrictChecks(const Code& code, uint32_t shared_bytes, uint32_t threads);

  void begin_block() { shared_.begin_block(); }

  /// An access whose addresses are valid, about to happen.
  bool access(Warp& warp, const Instruction* i, const AccessRequest& request);
  /// A lane's cp.async has written its bytes to shared memory.
  void copy_landed(const Warp& warp, const Instruction* i, uint32_t lane, uint64_t address, uint32_t bytes);

  /// Lanes have met in a warp synchronisation.
  void warp_met(const Warp& warp, Mask lanes);
  void fence(const Warp& warp, Mask lanes);
  /// Lanes arrive at a barrier. Null if others of the block wait for the whole block at another instruction.
  const Instruction* barrier_arrived(Warp& warp, const Instruction* i, Mask lanes, uint32_t number);
  /// Lanes are about to wait for the rest of their warp at an aligned barrier. Null if the rest waits at another one.
  const Instruction* barrier_diverged(Warp& warp, const Instruction* i, Mask lanes);
  /// The barrier is complete; its waiting fragments are still marked as such.
  void barrier_complete(Block& block, uint32_t number);

 private:
  /// The lowest and the highest address of an access's lanes.
  struct Reach {
    uint64_t lowest = UINT64_MAX, highest = 0;
  };
  static Reach reach_of(const AccessRequest& request);
  static bool is_row(const AccessRequest& request, const Reach& reach);
  bool shared_access(Warp& warp, const Instruction* i, const AccessRequest& request, const Reach& reach, Mask lanes);
  bool whole_warp_access(const Block& block, const AccessRequest& request, const Reach& reach,
                         const SharedShadow::Access& group);
  static bool global_access(Warp& warp, const Instruction* i, const AccessRequest& request, const Reach& reach,
                            Mask lanes);
  SharedShadow::Result shared_group(Warp& warp, const Instruction* i, const AccessRequest& request,
                                    const SharedShadow::Access& group);
  void order_by_memory(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes);

  SharedShadow shared_;
};

}  // namespace kiln::emulator
