// Runs blocks of one launch on one host thread, one after the other, or one bit by bit.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "checks/memory_recorder.h"
#include "checks/strict.h"
#include "kernel/kernel.h"
#include "scheduler/bulk_copies.h"
#include "warp/mbarriers.h"
#include "warp/warp.h"

namespace kiln::emulator {

class BlockRunner {
 public:
  /// `fences`: of the launch, where all its blocks meet whose threads execute a memory fence. `releases`: the same for
  /// full checks.
  BlockRunner(const LaunchRequest& request, std::atomic<uint32_t>& fences, ReleaseTable& releases);

  /// Runs block `number` (x fastest) to its end. `counted`: its memory behaviour is recorded.
  std::optional<Fault> run(uint64_t number, bool counted);

  // The same bit by bit, for blocks that wait for each other.
  void start(uint64_t number, bool counted);
  /// Lets every warp that can run do so until it blocks or has had its turn. False when the block is over: finished or
  /// faulted.
  bool step();
  const std::optional<Fault>& fault() const { return block_.fault; }

  // Executions by the blocks so far, per basic block of the code.
  const std::vector<uint64_t>& executions() const { return executions_; }
  const std::vector<uint64_t>& active_lanes() const { return active_lanes_; }
  const MemoryRecorder& recorder() const { return recorder_; }

 private:
  using Memory = std::unique_ptr<std::byte[], void (*)(std::byte*)>;

  void prepare_registers();
  void start_warp(Warp& warp);

  const LaunchRequest& request_;
  const Kernel& kernel_;
  const Code& code_;
  Memory registers_, shared_, local_, parameters_;
  std::vector<uint64_t> executions_, active_lanes_;
  std::vector<Warp> warps_;
  MemoryRecorder recorder_;
  std::unique_ptr<StrictChecks> strict_;  // of CheckLevel::full
  Mbarriers mbarriers_;
  BulkCopies bulk_copies_;
  Block block_;
};

}  // namespace kiln::emulator
