// The checks of CheckLevel::full in global and in local memory: races, and reads of what was never written.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "checks/access.h"
#include "checks/block_order.h"
#include "checks/global_shadow.h"
#include "checks/shared_shadow.h"
#include "checks/unwritten_values.h"
#include "warp/warp.h"

namespace kiln::emulator {

/// Checks the blocks that one host thread runs. A function that returns false has recorded the block's fault, or put
/// the instruction off.
class GlobalChecks {
 public:
  /// `block` is as it will be for all blocks but for its number. `time`: the block's.
  GlobalChecks(const Block& block, uint32_t threads, const SharedShadow& time, ReleaseTable& releases,
               UnwrittenValues& values);

  void begin_block(uint64_t number);

  /// `lanes` of the access, none of which is at an address in shared memory. It is about to happen.
  bool access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes);
  /// Whether weak loads of all that `reach` spans, `bytes` a lane, have nothing to look at or to note. False says
  /// nothing.
  bool is_old_news(const Reach& reach, uint32_t bytes, const AddressWindow& window) const {
    return finds_races_ && window.marks != nullptr && shadow_.is_old_news(reach, bytes, window);
  }

  /// Notes how strong accesses and fences order blocks. Called after `time` has noted the same.
  void order_by_memory(const Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes);
  void fence(const Warp& warp, const Instruction* i, Mask lanes);

 private:
  bool is_initialised(Warp& warp, const Instruction* i, const AccessRequest& request, const AddressWindow* window,
                      Mask& lanes);
  bool follow(Warp& warp, const Instruction* i, const AccessRequest& request, uint32_t lane, const uint8_t* flags,
              const std::function<void()>& fault);
  bool local_access(Warp& warp, const Instruction* i, const AccessRequest& request, Mask lanes);
  bool reads(Warp& warp, const Instruction* i, const AccessRequest& request, const AddressWindow* window, Mask lanes);
  bool writes(Warp& warp, const Instruction* i, const AccessRequest& request, const AddressWindow* window, Mask lanes);

  UnwrittenValues& values_;
  const bool finds_races_;
  std::optional<BlockOrder> order_;  // of kernels that have more than barriers
  GlobalShadow shadow_;
  std::vector<uint8_t> local_written_;  // by byte of the block's local memory
};

}  // namespace kiln::emulator
