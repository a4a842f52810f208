// Running a launch: blocks over host threads, and what they counted.
#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "counting.h"
#include "machine/program.h"
#include "scheduler/block_runner.h"

namespace kiln::emulator {
namespace {

/// Blocks are started in order, so that when one faults all before it have been started: waiting for those makes the
/// first fault of the grid the one that is reported, however the threads interleave.
class Grid {
 public:
  explicit Grid(const LaunchRequest& request)
      : request_(request),
        blocks_(request.grid.count()),
        counted_(request.counted_blocks == 0 ? blocks_ : std::min(blocks_, request.counted_blocks)) {}

  LaunchOutcome run() {
    const uint64_t threads = std::clamp<uint64_t>(blocks_, 1, std::max(1u, request_.host_threads));
    const uint64_t runners = request_.cooperative ? blocks_ : threads;
    for (uint64_t k = 0; k < runners; ++k)
      runners_.push_back(std::make_unique<BlockRunner>(request_, fences_, releases_));
    const auto work = [&](uint64_t thread) {
      if (request_.cooperative) return take_turns(thread, threads);
      one_by_one(*runners_[thread]);
    };
    std::vector<std::thread> helpers;
    for (uint64_t k = 1; k < threads; ++k) helpers.emplace_back(work, k);
    work(0);
    for (std::thread& helper : helpers) helper.join();
    LaunchOutcome outcome;
    outcome.fault = std::move(fault_);
    std::vector<const BlockRunner*> finished;
    for (const auto& runner : runners_) finished.push_back(runner.get());
    outcome.counters = total_counters(request_, finished);
    return outcome;
  }

 private:
  void one_by_one(BlockRunner& runner) {
    while (!faulted_.load(std::memory_order_relaxed)) {
      const uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
      if (number >= blocks_) return;
      if (auto fault = runner.run(number, is_counted(number))) note(number, std::move(*fault));
    }
  }

  /// Every block has a runner; this thread advances those of numbers `first`, `first` + `threads`, ...
  void take_turns(uint64_t first, uint64_t threads) {
    std::vector<uint64_t> open;
    for (uint64_t number = first; number < blocks_; number += threads) {
      runners_[number]->start(number, is_counted(number));
      open.push_back(number);
    }
    while (!open.empty()) {
      std::vector<uint64_t> unfinished;
      for (const uint64_t number : open) {
        if (faulted_.load(std::memory_order_relaxed)) return;
        BlockRunner& runner = *runners_[number];
        if (runner.step()) {
          unfinished.push_back(number);
        } else if (runner.fault()) {
          note(number, *runner.fault());
        }
      }
      open = std::move(unfinished);
    }
  }

  // Evenly spread over the grid: the first block of each of so many equal stretches.
  bool is_counted(uint64_t number) const {
    return counted_ == blocks_ || number == 0 || (number * counted_) / blocks_ != ((number - 1) * counted_) / blocks_;
  }

  void note(uint64_t number, Fault fault) {
    const std::lock_guard lock(mutex_);
    faulted_.store(true, std::memory_order_relaxed);
    if (fault_ && number > fault_block_) return;
    fault_ = std::move(fault);
    fault_block_ = number;
  }

  const LaunchRequest& request_;
  const uint64_t blocks_, counted_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> faulted_{false};
  std::atomic<uint32_t> fences_{0};
  ReleaseTable releases_;  // of full checks
  std::vector<std::unique_ptr<BlockRunner>> runners_;
  std::mutex mutex_;  // guards the two below
  std::optional<Fault> fault_;
  uint64_t fault_block_ = 0;
};

}  // namespace

LaunchOutcome run(const LaunchRequest& request) {
  return Grid(request).run();
}

}  // namespace kiln::emulator
