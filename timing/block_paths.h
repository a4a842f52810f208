// Paths of a launch's blocks, kept for when they are asked for again.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "kiln/timing/interpret.h"

namespace kiln::timing {

class BlockPaths {
 public:
  /// `interpreter` has to outlive it.
  explicit BlockPaths(Interpreter& interpreter) : interpreter_(interpreter) {}

  /// Throws as Interpreter::run().
  std::shared_ptr<const BlockPath> of(uint64_t index, const Cut& cut) {
    const auto key = std::make_pair(index, cut.turns);
    const auto found = kept_.find(key);
    if (found != kept_.end()) return found->second;
    auto path = std::make_shared<const BlockPath>(interpreter_.run(index, cut));
    for (const WarpPath& warp : path->warps) kept_instructions_ += warp.executed.size();
    if (kept_instructions_ <= most_kept) kept_.emplace(key, path);
    return path;
  }

 private:
  static constexpr uint64_t most_kept = 4'000'000;  // instructions: a few hundred MB

  Interpreter& interpreter_;
  std::map<std::pair<uint64_t, uint64_t>, std::shared_ptr<const BlockPath>> kept_;  // by block and turns
  uint64_t kept_instructions_ = 0;
};

}  // namespace kiln::timing
