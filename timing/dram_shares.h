// Which part of the sectors that blocks load comes from DRAM: docs/time-model.md, "hits in L2".
#pragma once

#include <cstdint>
#include <vector>

#include "block_paths.h"
#include "kiln/timing/address_ranges.h"
#include "kiln/timing/card.h"
#include "kiln/timing/interpret.h"
#include "kiln/timing/replay.h"
#include "kiln/timing/sass.h"

namespace kiln::timing {

struct DramShares {
  std::vector<DramShare> operands;  ///< One for each operand that is loaded.
  double all = 0;                   ///< Share of all sectors, 0 to 1.
};

/// A launch whose blocks load from L2 and DRAM.
struct LoadingLaunch {
  const Sass& sass;
  const Launch& launch;
  uint64_t beside = 1;  ///< Blocks that run at the same time.
  uint64_t l2_bytes = 0;
  AddressRanges in_l2;  ///< Left by earlier launches.
  uint64_t middle = 0;  ///< A block like most others.
};

/// By the blocks' paths, cut as `cut` says. Throws as BlockPaths::of().
DramShares dram_shares(const LoadingLaunch& loading, Interpreter& interpreter, BlockPaths& paths, const Cut& cut);

}  // namespace kiln::timing
