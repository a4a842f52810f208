// The time of a launch on a card, from its machine code.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "kiln/timing/card.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/replay.h"

namespace kiln::timing {

/// Raised with every change that changes times; then bench_time_model judges anew (cards/judged.txt).
inline constexpr int model_version = 10;

struct Occupancy {
  uint32_t blocks = 0;  ///< Resident on an SM.
  std::string limit;    ///< "warps", "registers", "shared memory", "blocks".
};

/// Throws Error(invalid_argument) if not one block fits.
Occupancy occupancy(const KernelFacts& facts, const Launch& launch, const Card& card);

struct ModelOptions {
  uint64_t instructions = 3'000'000;  ///< About as many are replayed; the rest of the blocks is extrapolated.
  ReplayTrace* trace = nullptr;       ///< Records the longer replay, if there is one.
};

struct ModelledTime {
  double seconds = 0;
  Occupancy occupancy;
  double waves = 0;       ///< Blocks of an SM over those resident.
  ReplayResult replayed;  ///< Result of the longer replay.
  uint32_t replayed_blocks = 0;
  uint32_t code_bytes = 0;
  double dram_share = 0;  ///< DRAM's share of the sectors that L1 lacks.
  /// Share of a warp's instructions that were replayed; the rest is extrapolated from a loop's turns.
  double path_share = 1;
  /// Units, and the part of the time that each is busy, the busiest first: issue slots, pipes, the load/store unit, the
  /// instruction cache, L2 and DRAM (this SM's share of both).
  std::vector<std::pair<std::string, double>> units;
  std::string bound;  ///< The busiest unit, with its share, and what warps wait for most.
  InterpreterReport report;
  /// Global memory that the launch stores to, by its first, middle and last block: of each instruction, all that lies
  /// between. Of long paths, by their first warps. Empty if that is not known.
  AddressRanges stored;
  std::vector<std::string> unclassified;
};

/// Models the time of a launch. Ranges of `launch.in_l2` that the launch itself stores to count as not in L2: so in a
/// loop of launches the first is like the others.
ModelledTime model_time(const Sass& sass, const KernelFacts& facts, const Launch& launch, const Card& card,
                        const ModelOptions& options = {});

}  // namespace kiln::timing
