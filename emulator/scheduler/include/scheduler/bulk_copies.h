// cp.async.bulk: copies that have been issued and that need not have happened yet.
//
// They are carried out as late as PTX allows, when somebody waits for them, so that a kernel which forgets to wait
// finds stale memory here as it may on hardware. What comes to shared memory comes when a phase of its mbarrier is
// waited for that lacks nothing else; what goes to global memory when its thread waits for its group, or has ended.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <unordered_map>

#include "kernel/tensor_map.h"
#include "scheduler/tensor_boxes.h"
#include "warp/warp.h"

namespace kiln::emulator {

struct BulkCopy {
  const Instruction* at = nullptr;
  Warp* warp = nullptr;  ///< whose lane has issued it
  uint32_t lane = 0;
  bool to_shared = false;
  uint64_t shared = 0, global = 0;  ///< host addresses; of a box, `global` is not used
  uint64_t bytes = 0;               ///< in shared memory
  std::optional<TensorMap> map;     ///< of a box
  BoxCorner corner{};
};

class BulkCopies {
 public:
  void clear();

  /// To shared memory; the mbarrier at `mbarrier` will know.
  void issue(const BulkCopy& copy, uint64_t mbarrier) { of_mbarrier_[mbarrier].push_back(copy); }
  /// Carries out the next copy that the mbarrier is to know of. Returns its bytes; 0 if there is none.
  uint64_t bring_next(Block& block, uint64_t mbarrier);

  /// To global memory, in the group of its thread that is open.
  void issue(const BulkCopy& copy);
  void commit(const Warp& warp, Mask lanes);
  /// Completes all but the `pending` latest committed groups of each lane.
  void wait(const Warp& warp, Mask lanes, uint32_t pending);
  /// Completes everything that the lanes have sent to global memory, committed or not.
  void finish(const Warp& warp, Mask lanes);

 private:
  struct OfGroup {
    BulkCopy copy;
    uint32_t thread = 0;
    uint64_t group = 0;  // the thread's number of committed groups when it was issued
  };
  std::map<uint64_t, std::deque<BulkCopy>> of_mbarrier_;
  std::deque<OfGroup> of_groups_;
  std::unordered_map<uint32_t, uint64_t> committed_;  // by thread
};

}  // namespace kiln::emulator
