// The checks of CheckLevel::full: races in shared and in global memory, reads of shared, global and local memory that
// nobody has written, and barriers that a block's threads meet at different places.
#pragma once

#include <cstdint>

#include "checks/access.h"
#include "checks/global_checks.h"
#include "checks/shared_shadow.h"
#include "checks/unwritten_values.h"
#include "warp/warp.h"

namespace kiln::emulator {

/// Checks the blocks that one host thread runs. Every function that returns a bool or an instruction has recorded the
/// block's fault when it returns false or null.
class StrictChecks {
 public:
  /// `block` is as it will be for all blocks but for its number.
  StrictChecks(const Block& block, const ValueFlow& flow, uint32_t threads, ReleaseTable& releases);

  void begin_block(uint64_t number);

  /// Unwritten values in the warps' registers. They say whether each instruction must be executed by their step().
  UnwrittenValues& values() { return values_; }

  /// An access whose addresses are valid, about to happen. False without a fault: the warp does it later.
  bool access(Warp& warp, const Instruction* i, const AccessRequest& request);
  /// Whether access() has nothing to do for weak loads of all that `reach` spans in `window`, `bytes` a lane. It is
  /// what nearly all reads of a kernel's inputs look like. False says nothing.
  bool is_old_news(const Reach& reach, uint32_t bytes, const AddressWindow& window) const {
    return !shared_.is_partial() && global_.is_old_news(reach, bytes, window);
  }
  /// A lane's copy in bulk has written its bytes to shared memory.
  void bulk_copy_landed(const Warp& warp, const Instruction* i, uint32_t lane, uint64_t address, uint32_t bytes);
  /// The same of a cp.async of several lanes.
  void copies_landed(const Warp& warp, const AsyncCopies::Copy& copies, Mask lanes);

  /// Orders the thread's accesses, and a landed bulk copy of its own, before those of the threads that the mbarrier at
  /// `address` lets go on.
  void mbarrier_arrived(const Warp& warp, uint32_t lane, uint64_t address);
  void mbarrier_passed(const Warp& warp, Mask lanes, uint64_t address);

  /// Lanes have met in a warp synchronisation.
  void warp_met(const Warp& warp, Mask lanes);
  void fence(const Warp& warp, const Instruction* i, Mask lanes);
  void proxy_fence(const Warp& warp, Mask lanes);
  /// Lanes arrive at a barrier. Null if others of the block wait for the whole block at another instruction.
  const Instruction* barrier_arrived(Warp& warp, const Instruction* i, Mask lanes, uint32_t number);
  /// Lanes are about to wait for the rest of their warp at an aligned barrier, which `i` is. Null if the rest waits at
  /// another one.
  const Instruction* barrier_diverged(Warp& warp, const Instruction* i, Mask lanes);
  /// The barrier is complete; its waiting fragments are still marked as such.
  void barrier_complete(Block& block, uint32_t number);

 private:
  bool shared_access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes);
  bool follow_shared(Warp& warp, const Instruction* i, const AccessRequest& request, const SharedShadow::Access& group,
                     const SharedShadow::Result& result);
  bool order_shared(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes,
                    SharedShadow::Access group);
  bool whole_warp_access(const Block& block, const AccessRequest& request, const SharedShadow::Access& group);
  SharedShadow::Result shared_group(Warp& warp, const Instruction* i, const AccessRequest& request,
                                    const SharedShadow::Access& group);
  void order_by_memory(Warp& warp, const Instruction* i, const AccessRequest& request, Mask global);

  UnwrittenValues values_;
  SharedShadow shared_;
  GlobalChecks global_;
};

}  // namespace kiln::emulator
