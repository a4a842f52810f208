// Warps, blocks and barriers of a replay.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kiln/timing/interpret.h"
#include "kiln/timing/replay.h"

namespace kiln::timing {

inline constexpr uint32_t schedulers = 4, counters = 6;

struct WarpState {
  const Executed* at = nullptr;
  const Executed* end = nullptr;
  const WarpPath* path = nullptr;
  uint32_t place = 0;  // of its block
  uint32_t age = 0;
  std::array<uint16_t, counters> pending{};  // results that each counter still waits for
  std::array<Stall, counters> cause{};
  uint32_t fetched = ~uint32_t{0};   // the line of the instruction cache it is in
  uint64_t since = 0;                // it does not issue
  uint64_t copies = 0;               // the last asynchronous copy is there
  uint64_t stores = 0;               // the last copy in bulk has read shared memory
  std::array<uint64_t, 8> groups{};  // when groups of products are there
  uint32_t group = 0;                // that comes next
  Stall stall = Stall::counted;
  bool blocked = false;  // until a counter is released
};

// A warp whose counter is released when a barrier has completed so many phases.
struct PhaseWaiter {
  uint32_t warp = 0, age = 0;
  uint8_t counter = 0;
  uint64_t phase = 0;
};

struct PhaseState {
  int64_t count = 0, pending = 0;  // arrivals
  int64_t bytes = 0;               // expected, less those that came
  uint64_t phase = 0;
  std::vector<PhaseWaiter> waiting;
};

// Arrivals and bytes that reach an mbarrier at some later cycle.
struct Effect {
  uint32_t place = 0, block = 0;
  uint16_t barrier = 0;
  int64_t arrivals = 0, bytes = 0;
};

struct Place {
  std::shared_ptr<const BlockPath> path;
  uint32_t live = 0;  // warps
  uint32_t block = 0;
  std::array<uint32_t, cluster_barrier + 1> arrived{};
  std::vector<PhaseState> phases;
  std::vector<std::pair<uint32_t, uint32_t>> waiting;  // warp, barrier
};

}  // namespace kiln::timing
