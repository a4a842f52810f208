// Memory shared by what does not live at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace kiln::graph {

/// Bytes that are needed from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  size_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< One for each lifetime, multiples of memory_alignment.
  int64_t bytes = 0;             ///< Bytes of the whole.
  /// The most bytes that are needed at one step: no plan has less.
  int64_t least = 0;
};

inline constexpr int64_t memory_alignment = 256;

/// Places each so that none shares memory with another of its time: the largest first, each at the lowest place that is
/// free over all of its time (greedy by size: Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net
/// Inference", 2020). Throws Error(out_of_memory) where the sum of all sizes does not fit 64 bits.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes);

}  // namespace kiln::graph
