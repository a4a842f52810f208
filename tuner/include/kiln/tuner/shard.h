// Shards: parts of a plan that jobs of a cluster work off without talking to one another.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kiln::tuner {

/// One of `count` parts of a plan.
struct Shard {
  static constexpr uint64_t most = 100'000;  ///< As many as an array of jobs may have where people run one.

  uint64_t index = 0;  ///< From 0
  uint64_t count = 1;

  /// Parses `i/N` with 0 <= i < N <= most, as index jobs number themselves. Throws Error(parse_error).
  static Shard parse(const std::string& text);
};

/// A request by its key, and what tuning it is expected to take.
struct Load {
  std::string key;
  double seconds = 0;
};

/// The shard of each of `loads`, from 0 to `count` - 1: the same on every machine, whatever their order.
///
/// A load goes to the first shard of an order of its own, which is drawn from its key, that has room: shards are full
/// at 1.1 of the mean, and the largest loads choose first. So shards take about equally long, and further loads leave
/// nearly all others where they were (rendezvous hashing with bounded loads: Thaler and Ravishankar, 1998; Mirrokni,
/// Thorup and Zadimoghaddam, "Consistent Hashing with Bounded Loads", 2018).
std::vector<uint64_t> shards_of(std::span<const Load> loads, uint64_t count);

}  // namespace kiln::tuner
